"""What an experiment is: what is simulated, and who acts in it.

The two parts are the two sides of the conversation. A :class:`Scenario` is all that a simulator needs to
know, :class:`Actors` are all that a decision process does, but for the jobs that its users submit. Both are
plain data that can be compared, sent to another process and written as JSON. Files are named, not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from batsched_py.protocol.events import Settings
from batsched_py.workload.model import WalltimeRule

#: Changes the name of a file.
Rename = Callable[[str], str]


class Workloads(Struct, frozen=True, kw_only=True):
    """Logs and workload files that are played together, and how walltimes are made of the logs."""

    files: tuple[str, ...] = ()
    walltime: WalltimeRule = "at-least-run-time"
    walltime_factor: float = 2.0
    """Of the rule ``max``."""

    @property
    def walltime_rule(self) -> str:
        """How walltimes are made of the logs, in words."""
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
    """A platform file or so many equal hosts; when neither is said, the recorded machine of the workloads."""

    file: str | None = None
    hosts: int | None = None
    speed: float | None = None
    """Of the equal hosts, relative to the recorded machine."""
    master_host: str = "master_host"
    """The host of a platform file on which no job runs."""
    roles: tuple[str, ...] = ()
    """Further roles of its hosts, each as Batsim's ``HOST[,HOST...]:ROLE``."""
    mmax: int = 0
    """Keep the first so many hosts only; 0 keeps all."""
    mmax_workload: bool = False
    """Keep as many hosts as the largest workload was made for."""


class Scenario(Struct, frozen=True, kw_only=True):
    """What is simulated."""

    workloads: Workloads = Workloads()
    machine: Machine = Machine()
    settings: Settings = Settings()
    """What the simulator allows and promises to whoever decides."""
    energy: bool = False
    """Whether the energy that hosts draw is accounted for."""
    events: tuple[str, ...] = ()
    """Files that tell what happens from outside."""
    ignore_communication: bool = False
    """Whether jobs that send bytes run as if sending took no time."""
    machine_states: bool | None = None
    """Whether the states of the machines are traced; when nothing is said, they are with ``energy``."""

    @property
    def traces_machine_states(self) -> bool:
        """Whether the states of the machines are traced."""
        return self.energy if self.machine_states is None else self.machine_states


class Choice(Struct, frozen=True):
    """A scheduler or a behaviour of users: its name, and its options as the command line gives them.

    An option whose name ends in ``file`` names a file.
    """

    name: str
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, options: Mapping[str, object]) -> Choice:
        """A choice whose options are not yet texts.

        >>> Choice.of("sleeper", {"idle_time": 600, "eager": True}).options
        {'idle_time': '600', 'eager': 'true'}
        """
        return cls(name, {key: _text(value) for key, value in options.items()})

    @property
    def code_files(self) -> list[str]:
        """The files with its code, as far as that is installed nowhere.

        >>> Choice("mine/easy.py:Easy").code_files, Choice("pybatsim:sched.py").code_files
        (['mine/easy.py'], ['sched.py'])
        >>> Choice("calm.py:Calm(patience(own.py:Own))").code_files
        ['calm.py', 'own.py']
        """
        return [file for _, file, _ in map(_parts, _layers(self.name)) if file is not None]

    @property
    def files(self) -> list[str]:
        """All files that it reads: its code, and what its options name."""
        return self.code_files + [value for key, value in self.options.items() if _names_a_file(key, value)]

    def renamed(self, rename: Rename) -> Choice:
        """The same choice with its files called otherwise."""
        layers = [
            before if file is None else f"{before}{rename(file)}{after}"
            for before, file, after in map(_parts, _layers(self.name))
        ]
        options = {
            key: rename(value) if _names_a_file(key, value) else value for key, value in self.options.items()
        }
        return Choice("(".join(layers) + ")" * (len(layers) - 1), options)


def _layers(name: str) -> list[str]:
    """The names in ``outer(inner)``, from the outermost to the innermost."""
    layers = []
    while name.endswith(")") and "(" in name:
        outer, _, name = name[:-1].partition("(")
        layers.append(outer)
    return [*layers, name]


def _parts(layer: str) -> tuple[str, str | None, str]:
    """What stands in front of the file in a name, the file, and what stands behind it."""
    head, colon, tail = layer.rpartition(":")
    if head.endswith(".py"):
        return "", head, f":{tail}"
    if colon and tail.endswith(".py"):
        return f"{head}:", tail, ""
    return layer, None, ""


def _names_a_file(option: str, value: str) -> bool:
    return option.endswith("file") and bool(value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Actors(Struct, frozen=True, kw_only=True):
    """Who acts: the scheduler, and the users who submit the jobs."""

    scheduler: Choice
    users: Choice | None = None
    """Without users the simulator submits the jobs, at their recorded times."""
    scheduling_delay: float = 0.0
    """How many seconds the scheduler needs for each reply."""


class Experiment(Struct, frozen=True, kw_only=True):
    """A whole simulation: what ``batsched-py run`` runs."""

    scenario: Scenario
    actors: Actors
    remarks: bool = False
    """Whether it is written down what the scheduler remarks on jobs."""

    @property
    def simulated(self) -> Scenario:
        """The scenario as the simulator is to be given it: jobs that users submit are no business of its."""
        if self.actors.users is None:
            return self.scenario
        settings = replace(self.scenario.settings, dynamic_jobs=True, profile_reuse=True)
        return replace(self.scenario, workloads=Workloads(), settings=settings)

    @property
    def files(self) -> list[str]:
        """The files that are read, code of one's own included."""
        scenario, actors = self.scenario, self.actors
        chosen = [choice for choice in (actors.scheduler, actors.users) if choice is not None]
        plugins = [file for choice in chosen for file in choice.files]
        named = (*scenario.workloads.files, scenario.machine.file, *scenario.events, *plugins)
        return [file for file in named if file is not None]

    def renamed(self, rename: Rename) -> Experiment:
        """The same experiment with its files called otherwise."""
        scenario, actors = self.scenario, self.actors
        workloads = replace(scenario.workloads, files=tuple(map(rename, scenario.workloads.files)))
        machine = scenario.machine
        if machine.file is not None:
            machine = replace(machine, file=rename(machine.file))
        events = tuple(map(rename, scenario.events))
        users = None if actors.users is None else actors.users.renamed(rename)
        return replace(
            self,
            scenario=replace(scenario, workloads=workloads, machine=machine, events=events),
            actors=replace(actors, scheduler=actors.scheduler.renamed(rename), users=users),
        )
