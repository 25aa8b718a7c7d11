"""What an experiment is: what is simulated, and who decides.

:class:`Scenario` has all that a simulator needs to know, :class:`Actors` all that a decision process does.
Both are plain data that can be compared, sent to another process and written as JSON. Files are named, not
read.

Each field is declared here once, with its :class:`~batsched_py.settings.Option`. The options of the commands,
the parameters of ``batsched_py.simulate``, the keys of a plan, the command in a manifest and the page of
settings in the documentation are made from this declaration.
"""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.experiment.choice import Choice, files_in
from batsched_py.protocol.events import Settings
from batsched_py.settings import Option, Rename, settings_of, struct_from, values_of
from batsched_py.workload.model import CancelledRule, WalltimeRule


class Workloads(Struct, frozen=True, kw_only=True):
    """Logs and workload files that are simulated together, and how the jobs of logs get their walltimes."""

    files: Annotated[
        tuple[str, ...],
        Option(
            "-w, --workload FILE",
            "An SWF log (.swf, .swf.gz), a Batsim workload (.json) or another log that `batsched-py convert` "
            "knows; several are played together.",
            "logs.file",
        ),
    ] = ()
    input_options: Annotated[
        tuple[str, ...],
        Option(
            "-i, --input-option KEY=VALUE",
            "An option of the kind of log, where that has any, like columns=submit:SubmitTime for a table; "
            "`batsched-py convert --help` lists them. May be given several times.",
            "logs",
        ),
    ] = ()
    walltime: Annotated[
        WalltimeRule,
        Option(
            "--walltime",
            "Walltime of the jobs of an SWF log: the requested time, but never less than the run time, so "
            "that none is killed; the larger one of the requested time and a multiple of the run time; or "
            "the requested time alone.",
            "logs",
        ),
    ] = "at-least-run-time"
    walltime_factor: Annotated[
        float, Option("--walltime-factor F", "The multiple of the run time in --walltime max.", "logs")
    ] = 2.0
    cancelled: Annotated[
        CancelledRule,
        Option(
            "--cancelled",
            "What becomes of the jobs of a log that were cancelled while they waited: they are left out, or "
            "they are submitted and withdrawn after the time for which they had waited.",
            "logs",
        ),
    ] = "leave-out"

    @property
    def walltime_rule(self) -> str:
        """How the jobs of logs get their walltimes, in words."""
        if all(file.endswith(".json") for file in self.files):
            return "as the workload says"
        match self.walltime:
            case "requested":
                return "requested"
            case "max":
                return f"requested, at least {self.walltime_factor:g} x run time"
            case "at-least-run-time":
                return "requested, at least run time"


class Machine(Struct, frozen=True, kw_only=True):
    """A platform file or a number of equal hosts; without both, the recorded machine of the workloads."""

    file: Annotated[
        str | None, Option("-p, --platform FILE", "A platform of SimGrid (.xml).", "platforms")
    ] = None
    hosts: Annotated[
        int | None,
        Option(
            "--hosts N",
            "A machine of N equal hosts.  [default, without -p: as large as the log says its own was]",
            "platforms",
        ),
    ] = None
    speed: Annotated[
        float | None,
        Option(
            "--speed X", "Speed of the --hosts, relative to the machine of the log.", "platforms", usual="1"
        ),
    ] = None
    bandwidth: Annotated[
        str | None,
        Option(
            "--bandwidth BW",
            "Give the --hosts a network: the bandwidth of each host's link, in each direction, like 1Gbps or "
            "125MBps. Without it, jobs cannot send bytes.",
            "platforms",
        ),
    ] = None
    latency: Annotated[
        str | None,
        Option("--latency T", "Latency of each link of that network, like 50us.", "platforms", usual="0"),
    ] = None
    backbone: Annotated[
        str | None,
        Option(
            "--backbone BW",
            "Let all messages of that network share one link of this bandwidth, between those of the hosts.",
            "platforms",
        ),
    ] = None
    fat_tree: Annotated[
        str | None,
        Option(
            "--fat-tree SHAPE",
            "Connect the hosts by a fat tree instead of one switch: LEVELS;CHILDREN;PARENTS;CABLES, with a "
            "number for each level from below, as in SimGrid. 2;4,4;1,2;1,1 has 16 hosts, four to a switch.",
            "platforms",
        ),
    ] = None
    master_host: Annotated[
        str, Option("-m, --master-host NAME", "The host of the platform that is left out.", "platforms")
    ] = "master_host"
    roles: Annotated[
        tuple[str, ...],
        Option(
            "-r, --add-role-to-hosts HOST[,HOST...]:ROLE",
            "Give hosts of the platform a role: master, compute_node or storage.",
            "platforms",
        ),
    ] = ()
    reject_larger: Annotated[
        bool,
        Option(
            "--reject-larger",
            "Go on although many jobs are larger than the machine; they are rejected. Otherwise a workload "
            "is refused of which more than ten jobs, and more than a tenth of all, can never run.",
            "platforms",
        ),
    ] = False
    mmax: Annotated[int, Meta(ge=0), Option("--mmax N", "Keep the first N hosts only.", "platforms")] = 0
    mmax_workload: Annotated[
        bool,
        Option("--mmax-workload", "Keep as many hosts as the largest workload was made for.", "platforms"),
    ] = False


class Scenario(Struct, frozen=True, kw_only=True):
    """What is simulated."""

    workloads: Workloads = Workloads()
    machine: Machine = Machine()
    settings: Settings = Settings()
    energy: Annotated[
        bool,
        Option(
            "-E, --energy",
            "Account for the energy that hosts draw, and let their power states be changed. The platform "
            "file must say what each host draws.",
            "platforms",
        ),
    ] = False
    events: Annotated[
        tuple[str, ...],
        Option(
            "--events, --external-events FILE",
            "When machines become unavailable and available, as a JSON object a line; may be repeated.",
            "platforms",
        ),
    ] = ()
    ignore_communication: Annotated[
        bool,
        Option(
            "--ignore-communication",
            "Run jobs that send bytes as if sending took no time.",
            "platforms",
        ),
    ] = False
    machine_states: Annotated[
        bool | None,
        Option(
            "--enable-machine-state-tracing / --disable-machine-state-tracing",
            "Whether to write PREFIX_machine_states.csv.",
            "platforms",
            usual="with --energy",
        ),
    ] = None

    links: Annotated[
        bool,
        Option(
            "--links",
            "Record what links, hosts and storages carry over time, for `batsched-py plot links`, reports "
            "and `batsched-py explain`: PREFIX_uses.csv and PREFIX_rates.csv.",
            "platforms",
        ),
    ] = False

    @property
    def traces_machine_states(self) -> bool:
        """Whether the states of the machines are traced."""
        return self.energy if self.machine_states is None else self.machine_states


class Actors(Struct, frozen=True, kw_only=True):
    """The scheduler, and the users if they submit the jobs."""

    scheduler: Annotated[
        Choice,
        Option(
            "-s, --scheduler NAME",
            "One that `batsched-py schedulers` lists, path/to/file.py:ClassName, or one of PyBatsim's as "
            "pybatsim:NAME or pybatsim:path/to/file.py.",
            "schedulers.name",
            pairs=Option(
                "-o, --option KEY=VALUE",
                "An option of the scheduler; may be given several times.",
                "schedulers.options",
            ),
        ),
    ]
    users: Annotated[
        Choice | None,
        Option(
            "--users NAME",
            "Who submits the jobs while the simulation runs: one that `batsched-py users` lists, or "
            "path/to/file.py:ClassName.",
            "users.name",
            pairs=Option(
                "-u, --user-option KEY=VALUE",
                "An option of the users; may be given several times.",
                "users.options",
            ),
            short=Option(
                "--sessions RULE:MINUTES",
                "How users' jobs are cut into sessions, like arrival:60; short for -u sessions=...",
            ),
        ),
    ] = None
    scheduling_delay: Annotated[
        float,
        Meta(ge=0, le=1e9),
        Option(
            "--scheduling-delay S",
            "Simulate a scheduler that needs S seconds for each reply: what it decides takes effect then, "
            "and what happens meanwhile it hears afterwards.",
            "schedulers.delay",
        ),
    ] = 0.0


class Experiment(Struct, frozen=True, kw_only=True):
    """A whole simulation: what ``batsched-py run`` runs."""

    scenario: Scenario
    actors: Actors
    remarks: Annotated[
        bool,
        Option("--remarks", "Write what the scheduler remarks on jobs to PREFIX_remarks.csv.", "schedulers"),
    ] = False

    @property
    def simulated(self) -> Scenario:
        """The scenario as the simulator gets it: without the jobs, if users submit them."""
        if self.actors.users is None:
            return self.scenario
        settings = replace(self.scenario.settings, dynamic_jobs=True, profile_reuse=True)
        return replace(self.scenario, workloads=Workloads(), settings=settings)

    @property
    def files(self) -> list[str]:
        """The files that are read, including the code of schedulers and users that are not installed."""
        return files_in(self.renamed)

    def renamed(self, rename: Rename) -> "Experiment":
        """The same experiment with other names for its files."""
        values = values_of(self)
        for setting in settings_of(Experiment):
            values[setting.name] = setting.renamed(values[setting.name], rename)
        return struct_from(Experiment, values)
