"""What an experiment is: what is simulated, and who decides.

:class:`Scenario` has all that a simulator needs to know, :class:`Actors` all that a decision process does.
Both are plain data that can be compared, sent to another process and written as JSON. Files are named, not
read.

Each field is declared here once, with its :class:`~batsched_py.settings.Option`. The options of the commands,
the parameters of ``batsched_py.simulate``, the keys of a plan, the command in a manifest and the page of
settings in the documentation are made from this declaration.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.experiment.choice import Choice, files_in
from batsched_py.outside import Law
from batsched_py.protocol.events import Settings
from batsched_py.settings import Option, Rename, settings_of, struct_from, values_of
from batsched_py.workload.model import CancelledRule, PrecedingRule, ProcessorsRule, TiesRule, WalltimeRule


class Workloads(Struct, frozen=True, kw_only=True):
    """Logs and workload files that are simulated together, and how the jobs of logs get their walltimes."""

    table: ClassVar[str] = "logs"
    group: ClassVar[str] = "Workload"

    files: Annotated[
        tuple[str, ...],
        Option(
            "-w, --workload FILE",
            "An SWF log (.swf, .swf.gz), a Batsim workload (.json) or another log that `batsched-py convert` "
            "knows; several are played together.",
            "logs.file",
        ),
    ] = ()
    log_kind: Annotated[
        str | None,
        Option(
            "--log-kind KIND|CODE",
            "What the logs are, if their names do not tell: a kind that `batsched-py convert` knows, or a "
            "reader of your own as path/to/file.py:ClassName.",
            "logs.kind",
        ),
    ] = None
    input_options: Annotated[
        tuple[str, ...],
        Option(
            "-i, --input-option KEY=VALUE",
            "An option of the kind of log, where that has any, like columns=submit:SubmitTime for a table; "
            "`batsched-py convert --help` lists them. May be given several times.",
        ),
    ] = ()
    attributes: Annotated[
        tuple[str, ...],
        Option(
            "--attribute COLUMN|NAME=COLUMN|CODE",
            "Give jobs of a log the value of a column as an attribute, job.extra[NAME], for policies and "
            "users; or those that path/to/file.py:ClassName makes of all columns. May be repeated.",
        ),
    ] = ()
    walltime: Annotated[
        WalltimeRule,
        Option(
            "--walltime",
            "Walltime of the jobs of an SWF log: the requested time, but never less than the run time, so "
            "that none is killed; the larger one of the requested time and a multiple of the run time; the "
            "requested time alone; the requested time as an estimate: a late job runs to its end; or as the "
            "first, and jobs that requested nothing get round estimates from a model, as users make them.",
        ),
    ] = "at-least-run-time"
    walltime_factor: Annotated[
        float, Option("--walltime-factor F", "The multiple of the run time in --walltime max.")
    ] = 2.0
    cancelled: Annotated[
        CancelledRule,
        Option(
            "--cancelled",
            "What becomes of the jobs of a log that were cancelled while they waited: they are left out, or "
            "they are submitted and withdrawn after the time for which they had waited.",
        ),
    ] = "leave-out"
    processors: Annotated[
        ProcessorsRule,
        Option(
            "--processors",
            "How large jobs of a log are: as large as what they were allocated, or as what they requested; "
            "the other one where the log does not say.",
        ),
    ] = "allocated"
    ties: Annotated[
        TiesRule,
        Option(
            "--ties",
            "In which order jobs are submitted that have the same submission time: by the letters of their "
            "names, as Batsim does, so that job 10 comes before job 9; or by their numbers, as in a log.",
        ),
    ] = "names"
    preceding: Annotated[
        PrecedingRule,
        Option(
            "--preceding",
            "Whether jobs of a log wait for their preceding jobs (field 17 of SWF): a job is then held until "
            "that one is over and its think time (field 18) has passed.",
        ),
    ] = "ignore"

    @property
    def has_logs(self) -> bool:
        """Whether any file is a log, which no workload of Batsim is."""
        if self.log_kind is not None:
            return self.log_kind not in ("batsim", "batsim5")
        return any(not file.endswith(".json") or file.endswith(".philly.json") for file in self.files)

    @property
    def sizes_rule(self) -> str:
        """What the sizes of the jobs of logs are, in words."""
        if not self.has_logs:
            return "as the workload says"
        return f"{self.processors}, else {self.other_processors}"

    @property
    def other_processors(self) -> ProcessorsRule:
        """What counts where a log does not say how many processors of the other kind a job had."""
        return "requested" if self.processors == "allocated" else "allocated"

    @property
    def walltime_rule(self) -> str:
        """How the jobs of logs get their walltimes, in words."""
        if not self.has_logs:
            return "as the workload says"
        match self.walltime:
            case "requested":
                return "requested"
            case "max":
                return f"requested, at least {self.walltime_factor:g} x run time"
            case "estimate":
                return "requested, late jobs run on"
            case "modelled":
                return "requested, else modelled"
            case "at-least-run-time":
                return "requested, at least run time"


class Machine(Struct, frozen=True, kw_only=True):
    """A platform file or a number of equal hosts; without both, the recorded machine of the workloads."""

    table: ClassVar[str] = "platforms"
    group: ClassVar[str] = "Machine"

    file: Annotated[
        str | None,
        Option(
            "-p, --platform FILE",
            "The machine: a platform of SimGrid (.xml), or nodes (.toml, .conf, .config, .json).",
        ),
    ] = None
    hosts: Annotated[
        int | None,
        Option(
            "--hosts N",
            "A machine of N equal hosts.  [default, without -p: as large as the log says its own was]",
        ),
    ] = None
    speed: Annotated[
        float | None,
        Option("--speed X", "Speed of the --hosts, relative to the machine of the log.", usual="1"),
    ] = None
    bandwidth: Annotated[
        str | None,
        Option(
            "--bandwidth BW",
            "Give the --hosts a network: the bandwidth of each host's link, in each direction, like 1Gbps or "
            "125MBps. Without it, jobs cannot send bytes.",
        ),
    ] = None
    latency: Annotated[
        str | None, Option("--latency T", "Latency of each link of that network, like 50us.", usual="0")
    ] = None
    backbone: Annotated[
        str | None,
        Option(
            "--backbone BW",
            "Let all messages of that network share one link of this bandwidth, between those of the hosts.",
        ),
    ] = None
    fat_tree: Annotated[
        str | None,
        Option(
            "--fat-tree SHAPE",
            "Connect the hosts by a fat tree instead of one switch: LEVELS;CHILDREN;PARENTS;CABLES, with a "
            "number for each level from below, as in SimGrid. 2;4,4;1,2;1,1 has 16 hosts, four to a switch.",
        ),
    ] = None
    master_host: Annotated[
        str, Option("-m, --master-host NAME", "The host of the platform that is left out.")
    ] = "master_host"
    roles: Annotated[
        tuple[str, ...],
        Option(
            "-r, --add-role-to-hosts HOST[,HOST...]:ROLE",
            "Give hosts of the platform a role: master, compute_node or storage.",
        ),
    ] = ()
    reject_larger: Annotated[
        bool,
        Option(
            "--reject-larger",
            "Go on although many jobs are larger than the machine; they are rejected. Otherwise a workload "
            "is refused of which more than ten jobs, and more than a tenth of all, can never run.",
        ),
    ] = False
    mmax: Annotated[int, Meta(ge=0), Option("--mmax N", "Keep the first N hosts only.")] = 0
    mmax_workload: Annotated[
        bool, Option("--mmax-workload", "Keep as many hosts as the largest workload was made for.")
    ] = False


class Failures(Struct, frozen=True, kw_only=True):
    """When nodes fail: at random, or as a trace says."""

    table: ClassVar[str] = "platforms"
    group: ClassVar[str] = "Failures"

    failures: Annotated[
        Law | None,
        Option(
            "--failures LAW",
            "Let nodes fail at random, or hosts where there are no nodes: by an exponential or a Weibull "
            "law. Needs --mtbf.",
        ),
    ] = None
    failure_trace: Annotated[
        str | None,
        Option(
            "--failure-trace FILE",
            "Let nodes fail as a CSV file says, with the columns hosts, down and up. Hosts are named by "
            "node, partition or number.",
        ),
    ] = None
    mtbf: Annotated[
        float | None, Option("--mtbf S", "The mean time from a repair of a node to its next failure.")
    ] = None
    repair_time: Annotated[
        float, Meta(ge=1, le=1e12), Option("--repair-time S", "The mean time of a repair.")
    ] = 3600.0
    weibull_shape: Annotated[
        float,
        Meta(ge=0.1, le=100),
        Option("--weibull-shape K", "The shape of --failures weibull; below 1 they come in bursts."),
    ] = 0.7
    failure_seed: Annotated[
        int, Option("--failure-seed N", "Where the random numbers of failures begin.")
    ] = 0
    failures_until: Annotated[
        float | None,
        Option(
            "--failures-until S",
            "No failure begins at S seconds or later.",
            usual="twice the time of the last submission, or a day if that is longer",
        ),
    ] = None


class OnFailure(Struct, frozen=True, kw_only=True):
    """What becomes of the jobs on hosts that fail."""

    table: ClassVar[str] = "schedulers"
    group: ClassVar[str] = "Failures"

    on_failure: Annotated[
        Literal["kill", "resubmit", "checkpoint"] | None,
        Option(
            "--on-failure",
            "What becomes of a job when hosts of it fail or are taken away: it is killed; killed and "
            "submitted again; or killed and submitted again with what it had not saved at its last "
            "checkpoint.",
            usual="resubmit with --failures or --failure-trace; otherwise jobs go on, as in Batsim",
        ),
    ] = None
    checkpoint_interval: Annotated[
        float,
        Meta(ge=1, le=1e12),
        Option("--checkpoint-interval S", "The work between two checkpoints of a job."),
    ] = 3600.0
    checkpoint_overhead: Annotated[
        float,
        Meta(ge=0, le=1e12),
        Option("--checkpoint-overhead S", "How much longer a job runs for each checkpoint."),
    ] = 60.0


class OutsideFiles(Struct, frozen=True, kw_only=True):
    """What is known beforehand of what comes from outside."""

    table: ClassVar[str] = "schedulers"
    group: ClassVar[str] = "Closures, prices and what else is outside"

    closures: Annotated[
        str | None,
        Option(
            "--closures FILE",
            "When hosts are closed, for maintenance or because they are reserved: a CSV file with the "
            "columns start, end and hosts (all, or nodes, partitions, numbers), and users for whom they are "
            "reserved. No job is started that could run into a closure.",
        ),
    ] = None
    price: Annotated[
        str | None,
        Option(
            "--price FILE",
            "The price of a kWh over time: a CSV file with the columns time and value. With --energy, the "
            "cost is added up.",
        ),
    ] = None
    carbon: Annotated[
        str | None,
        Option(
            "--carbon FILE",
            "The grams of CO2 that a kWh causes over time: a CSV file with the columns time and value. With "
            "--energy, they are added up.",
        ),
    ] = None
    temperature: Annotated[
        str | None,
        Option(
            "--temperature FILE",
            "The temperature outside over time, for policies that ask: a CSV file with the columns time and "
            "value.",
        ),
    ] = None
    power_cap: Annotated[
        str | None,
        Option(
            "--power-cap FILE",
            "The most watts that the machine may draw over time, for capped and other policies that ask: a "
            "CSV file with the columns time and value.",
        ),
    ] = None
    data: Annotated[
        tuple[str, ...],
        Option(
            "--data NAME|CODE",
            "Additional data that path/to/file.py:ClassName computes over time, for policies and metrics; "
            "changes are written to PREFIX_data.csv. May be repeated.",
        ),
    ] = ()
    outside_period: Annotated[
        float | None,
        Option(
            "--outside-period S",
            "Let prices, carbon, temperature and power cap repeat every S seconds, like 86400 for a day.",
        ),
    ] = None


class Scenario(Struct, frozen=True, kw_only=True):
    """What is simulated."""

    table: ClassVar[str] = "platforms"
    group: ClassVar[str] = "Energy, events and traces"

    workloads: Workloads = Workloads()
    machine: Machine = Machine()
    failing: Failures = Failures()
    settings: Settings = Settings()
    energy: Annotated[
        bool,
        Option(
            "-E, --energy",
            "Account for the energy that hosts draw, and let their power states be changed. The platform "
            "file must say what each host draws.",
        ),
    ] = False
    events: Annotated[
        tuple[str, ...],
        Option(
            "--events, --external-events FILE",
            "When machines become unavailable and available, as a JSON object a line; may be repeated.",
        ),
    ] = ()
    ignore_communication: Annotated[
        bool, Option("--ignore-communication", "Run jobs that send bytes as if sending took no time.")
    ] = False
    machine_states: Annotated[
        bool | None,
        Option(
            "--enable-machine-state-tracing / --disable-machine-state-tracing",
            "Whether to write PREFIX_machine_states.csv.",
            usual="with --energy",
        ),
    ] = None

    schedule_trace: Annotated[
        bool | None,
        Option(
            "--enable-schedule-tracing / --disable-schedule-tracing",
            "Whether to write the schedule as a Paje trace, PREFIX_schedule.trace, which ViTE draws.",
            usual="disabled",
        ),
    ] = None
    launch_time: Annotated[
        float,
        Meta(ge=0, le=1e9),
        Option(
            "--launch-time S",
            "Seconds from the decision to start a job to its start. Its hosts are taken at once, and it "
            "waits for so much longer.",
        ),
    ] = 0.0
    cleaning_time: Annotated[
        float,
        Meta(ge=0, le=1e9),
        Option(
            "--cleaning-time S",
            "Seconds from the end of a job until its hosts are free again. Scheduler and users hear of the "
            "end then.",
        ),
    ] = 0.0
    links: Annotated[
        bool,
        Option(
            "--links",
            "Record what links, hosts and storages carry over time, for `batsched-py plot links`, reports "
            "and `batsched-py explain`: PREFIX_uses.csv and PREFIX_rates.csv.",
        ),
    ] = False

    @property
    def traces_machine_states(self) -> bool:
        """Whether the states of the machines are traced."""
        return self.energy if self.machine_states is None else self.machine_states


class Actors(Struct, frozen=True, kw_only=True):
    """The scheduler, and the users if they submit the jobs."""

    table: ClassVar[str] = "schedulers"
    group: ClassVar[str] = "Scheduler and users"

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
                "How users' jobs are cut into sessions, like arrival:60, or path/to/file.py:ClassName, or a "
                "file that `batsched-py sessions` wrote; short for -u sessions=...",
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
    monitors: Annotated[
        tuple[str, ...],
        Option(
            "--monitor NAME|CODE",
            "Let path/to/file.py:ClassName hear what happens: submissions, starts, ends, hosts that go and "
            "come back. May be repeated.",
        ),
    ] = ()
    restarting: OnFailure = OnFailure()
    outside: OutsideFiles = OutsideFiles()


class Experiment(Struct, frozen=True, kw_only=True):
    """A whole simulation: what ``batsched-py run`` runs."""

    table: ClassVar[str] = "schedulers"
    group: ClassVar[str] = "What is written"

    scenario: Scenario
    actors: Actors
    remarks: Annotated[
        bool, Option("--remarks", "Write what the scheduler remarks on jobs to PREFIX_remarks.csv.")
    ] = False
    decisions: Annotated[
        bool,
        Option(
            "--decisions",
            "Measure the processor time and the memory of each decision, and how many jobs waited then, for "
            "`batsched-py plot decisions`: PREFIX_decisions.csv. No other file changes.",
        ),
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
