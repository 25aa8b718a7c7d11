"""``batsched_py.simulate``: a whole simulation in one process, in the words of ``batsched-py run``."""

from __future__ import annotations

import inspect
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batsched_py import __version__
from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.result import Overview, Result
from batsched_py.api.terminal import shown, somebody_looks
from batsched_py.decision.observers import DATA, MONITORS, AdditionalData, Monitor, memory_in_use
from batsched_py.engines import Simulation
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment
from batsched_py.experiment.build import NOTHING_GIVEN, Given, read_workloads, words_of
from batsched_py.experiment.run import GoThrough, run_experiment
from batsched_py.plugins import Registry
from batsched_py.protocol.jobs import HostState
from batsched_py.schedulers import SCHEDULERS, Scheduler, Wrapper
from batsched_py.settings import settings_of, struct_from
from batsched_py.simulator.outputs import PREFIX, MemoryFiles, OutputFile
from batsched_py.users import USERS, Behaviour
from batsched_py.workload.doubts import Figures, doubts
from batsched_py.workload.model import Workload

_log = logging.getLogger(__name__)

Plugin = TypeVar("Plugin")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Names, classes or objects, one or several.
Observers: TypeAlias = str | type[Plugin] | Plugin | Sequence[str | type[Plugin] | Plugin]

#: Options of a scheduler or of users, as texts or as what they are.
Options = Mapping[str, Any]

_WORDS = {setting.option.word: setting for setting in settings_of(Experiment)}


def _explaining_settings(function: Function) -> Function:
    """Put all settings into the signature and the docstring of a function, in place of its ``**settings``."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    settings = {word: setting for word, setting in _WORDS.items() if word not in signature.parameters}
    parameters = [
        inspect.Parameter(
            word,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if setting.turns_off else setting.default,
            annotation=setting.annotation,
        )
        for word, setting in settings.items()
    ]
    lines = [f"    {word}: {setting.option.help}" for word, setting in settings.items()]
    function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "The settings:", "", *lines])
    function.__signature__ = signature.replace(parameters=[*own, *parameters])  # type: ignore[attr-defined]
    return function


@_explaining_settings
def simulate(
    workload: lazy.log.Log | lazy.log.FileName | Sequence[lazy.log.Log | lazy.log.FileName],
    scheduler: str | type[Scheduler] | Scheduler,
    *,
    options: Options | None = None,
    users: str | type[Behaviour] | Behaviour | None = None,
    sessions: str | None = None,
    user_options: Options | None = None,
    monitor: Observers[Monitor] = (),
    data: Observers[AdditionalData] = (),
    export: lazy.log.FileName | None = None,
    measure: str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Result:
    """Simulate a workload on a machine under a scheduler.

    The ``workload`` is a log, the name of a file (a log, or a Batsim workload), or several that are played
    together. The ``scheduler`` and the ``users`` are names, classes or objects; ``options`` and
    ``user_options`` go with names and classes. An object is used as it is, with everything that it remembers
    of a simulation before. ``sessions`` is short for the user option of this name. Each ``monitor`` hears
    what happens, all ``data`` is computed over time: both are names, classes or objects, one or several.

    Results are kept in memory, unless ``export`` says where Batsim's files go, as ``-e`` does. Progress is
    shown on terminals and in notebooks, or as ``progress`` says. All is simulated, and ``measure`` says which
    window is measured, such as ``"7d:300d"``: the jobs that are submitted then.

    The settings are the options of `batsched-py run`, which the page of settings explains.
    """
    experiment, logs, given = experiment_of(
        several(workload), scheduler, options, users, _with(sessions, user_options), settings
    )
    (listening, heard), (computing, computed) = _observers(MONITORS, monitor), _observers(DATA, data)
    actors = replace(
        experiment.actors, monitors=heard, outside=replace(experiment.actors.outside, data=computed)
    )
    experiment = replace(experiment, actors=actors)
    return simulate_experiment(
        experiment,
        export=None if export is None else os.fspath(export),
        progress=somebody_looks() if progress is None else progress,
        logs=logs,
        window=None if measure is None else Window.parse(measure),
        given=Given(given.policy, given.behaviour, listening, computing),
    )


def experiment_of(
    played: Sequence[lazy.log.Log | lazy.log.FileName],
    scheduler: str | type[Scheduler] | Scheduler,
    options: Options | None,
    users: str | type[Behaviour] | Behaviour | None,
    user_options: Options | None,
    settings: Mapping[str, Any],
) -> tuple[Experiment, dict[int, lazy.swf_log.SwfLog], Given]:
    """What a program asks for: an experiment, its logs in memory, and its actors that are objects."""
    policy, chosen = _actor(SCHEDULERS, scheduler, options)
    behaviour, who = (None, None) if users is None else _actor(USERS, users, user_options)
    if users is None and user_options:
        raise InputError("there are options for users, but no users; give users=NAME")
    files, logs = _files_and_logs(played)
    values = dict(_named(word, given) for word, given in settings.items())
    values |= {"files": files, "scheduler": chosen, "users": who}
    return struct_from(Experiment, values), logs, Given(policy, behaviour)


def simulate_experiment(
    experiment: Experiment,
    *,
    export: str | None = None,
    progress: bool = False,
    logs: Mapping[int, lazy.swf_log.SwfLog] | None = None,
    window: Window | None = None,
    given: Given = NOTHING_GIVEN,
    watched: GoThrough | None = None,
    answering: Callable[[Callable[[], bytes]], AbstractContextManager[Any]] | None = None,
) -> Result:
    """Simulate an experiment; some of its logs may be in memory, and some of its actors objects.

    All of it is simulated, and a ``window`` of it is measured if one is given.
    ``watched`` goes through the simulation in place of the usual loop, and shows how far it is.
    ``answering`` gets what tells the status of the simulation, and is entered while it runs.
    """
    began = time.perf_counter()
    workloads = read_workloads(experiment.scenario.workloads, logs, words_of(experiment.scenario.machine))
    nb_jobs = sum(len(workload.jobs) for workload in workloads)
    _warn_of_scaled_users(experiment.actors.users, workloads)

    @contextmanager
    def meanwhile(simulation: Simulation) -> Iterator[None]:
        wanted = progress and watched is None
        bar = shown("jobs", lambda: (simulation.outputs.nb_ended, nb_jobs)) if wanted else nullcontext()
        tell = telling_status(experiment, simulation, nb_jobs)
        simulation.is_looked_at = wanted or answering is not None
        with bar, nullcontext() if answering is None else answering(tell):
            yield

    kept = MemoryFiles() if export is None else None
    simulation = run_experiment(
        experiment,
        workloads,
        export or PREFIX,
        new_file=OutputFile if kept is None else kept.new_file,
        given=given,
        watched=watched,
        meanwhile=meanwhile,
    )
    files = simulation.outputs.files if kept is None else []
    overview = Overview.of(experiment, simulation, workloads, files, time.perf_counter() - began)
    _warn_of_estimates(overview, given.policy)
    if not logs:
        _warn_of_doubts(experiment, overview, workloads)
    return Result(
        experiment,
        overview,
        workloads,
        kept or str(export),
        logs or {},
        window,
        given.policy,
        simulation.busy,
    )


def _warn_of_scaled_users(users: Choice | None, workloads: Sequence[Workload]) -> None:
    """Say that users who react are made of submissions that never were: the waits beside them are others."""
    changes = [workload.scaled for workload in workloads if workload.scaled]
    if changes and users is not None and users.name != "rigid":
        _log.warning(
            "the log's times between arrivals were scaled (%s), and its waits and run times were not, so the "
            "sessions and think times of %s are those of a schedule that never was; take the recorded log, "
            "and more or fewer of its users: --users resample -u load=...",
            changes[0],
            users.name,
        )


#: If a larger share of the jobs requested no time, a policy that goes by estimates knows too much.
_MANY_UNREQUESTED = 0.01


def _warn_of_estimates(overview: Overview, policy: Scheduler | None) -> None:
    """Say that a policy which goes by estimates knew how long many jobs would run."""
    missing = overview.unrequested
    if not (overview.knows_run_times and missing > _MANY_UNREQUESTED * overview.jobs):
        return
    if _uses_estimates(overview.scheduler if policy is None else policy):
        _log.warning(
            "%s of %s jobs requested no time, so %s knows how long they run; "
            "--walltime modelled gives them estimates as users make them",
            f"{missing:,}",
            f"{overview.jobs:,}",
            overview.scheduler,
        )


def _uses_estimates(policy: str | Scheduler) -> bool:
    """Whether a policy, inside of all that goes around it, goes by estimates; foreign ones may."""
    if isinstance(policy, str):
        name = SCHEDULERS.layers(policy)[-1]
        return name.startswith("pybatsim:") or SCHEDULERS.find(name).uses_estimates
    while isinstance(policy, Wrapper):
        policy = policy.inner
    return policy.uses_estimates


def _warn_of_doubts(experiment: Experiment, overview: Overview, workloads: Sequence[Workload]) -> None:
    """Say what makes no sense in logs that were read for a simulation, unless something else may be why."""
    if overview.users is not None or overview.rejected or any(each.finishes is None for each in workloads):
        return
    rule = experiment.scenario.workloads.walltime
    figures = Figures(
        jobs=overview.jobs,
        estimated=overview.jobs - overview.unrequested,
        below=overview.raised if rule == "at-least-run-time" else 0,
        equal=sum(workload.nb_equal for workload in workloads),
        span=max(workload.jobs[-1].submission_time for workload in workloads),
        lasts=overview.makespan or 0.0,
        work=overview.utilization * overview.makespan * overview.hosts if overview.makespan else 0.0,
        machine=overview.hosts,
    )
    for doubt in doubts(figures):
        _log.warning("%s", doubt)


def _named(word: str, given: Any) -> tuple[str, Any]:
    """The name and the value of the setting that Python calls by a word."""
    setting = _WORDS.get(word)
    if setting is None:
        from difflib import get_close_matches

        near = get_close_matches(word, inspect.signature(simulate).parameters)
        hint = f"did you mean {' or '.join(near)}?" if near else "help(batsched_py.simulate) lists all"
        raise InputError(f"simulate has no setting {word!r}; {hint}")
    if setting.is_several:
        return setting.name, tuple(map(os.fspath, several(given)))
    if setting.option.names_files and given is not None:
        return setting.name, os.fspath(given)
    return setting.name, not given if setting.turns_off else given


def several(given: Any) -> list[Any]:
    """One thing or several, as a list."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _files_and_logs(played: Sequence[Any]) -> tuple[tuple[str, ...], dict[int, lazy.swf_log.SwfLog]]:
    """How the workloads are called, and those of them that are in memory, by their places."""
    files, logs = [], {}
    for place, each in enumerate(played):
        if not isinstance(each, str | os.PathLike) and isinstance(each, lazy.log.Log):
            logs[place] = each.columns
            files.append(each.columns.path if each.is_as_read else each.name)
        else:
            files.append(os.fspath(each))
    return tuple(files), logs


def _with(sessions: str | None, options: Options | None) -> Options:
    """The options of users, among which sessions have a word of their own."""
    if sessions is None:
        return options or {}
    if "sessions" in (options or {}):
        raise InputError("sessions are given twice, also among the user_options; give one of them")
    return {**(options or {}), "sessions": sessions}


def _observers(registry: Registry[Plugin], given: Any) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The objects among what is given, one of each class, and the names."""
    each = several(given)
    objects = tuple(registry.instance(one) for one in each if not isinstance(one, str))
    return objects, tuple(name for name in each if isinstance(name, str))


def _actor(registry: Registry[Plugin], given: Any, options: Options | None) -> tuple[Any, Choice]:
    """Who acts, unless that is to be found by a name, and what stands for it in the experiment."""
    if isinstance(given, str):
        return None, Choice.of(given, options or {})
    cls = given if inspect.isclass(given) else type(given)
    if not issubclass(cls, registry.base):
        raise InputError(f"{given!r} is neither the name of a {registry.kind} nor a {registry.base.__name__}")
    name = str(getattr(cls, "name", cls.__name__))
    if cls is not given:
        if options:
            raise InputError(f"the {registry.kind} {name!r} is made already, so it takes no options")
        return given, Choice(name)
    choice = Choice.of(name, options or {})
    return (None if registry.knows(cls) else registry.make(cls, name, options or {})), choice


class Amount(Struct, frozen=True):
    """How much there is of something, and how much of it is in use; memory is in KiB."""

    total: int
    used: int


class JobCounts(Struct, frozen=True):
    """How many jobs there are."""

    total: int
    """In the workloads; users may submit fewer or more."""
    waiting: int
    running: int
    ended: int
    """Finished, killed or rejected."""


class Status(Struct, frozen=True):
    """How far a simulation is."""

    workloads: list[str]
    scheduler: str
    users: str | None
    engine: str
    now: float
    """Simulated seconds."""
    share_done: float | None
    """The share of the jobs that have ended; unknown if users have submitted more than there were."""
    jobs: JobCounts
    hosts: Amount
    resources: dict[str, Amount]
    """Of the nodes, if the machine has any."""
    elapsed_seconds: float
    """Since the simulation began, of real time."""
    processor_seconds: float
    """Of this process."""
    memory_bytes: int
    version: str


def telling_status(experiment: Experiment, simulation: Simulation, nb_jobs: int) -> Callable[[], bytes]:
    """What tells the status of a simulation that begins now, as JSON."""
    began = time.monotonic()

    def tell() -> bytes:
        actors, situation = experiment.actors, simulation.situation()
        ended = simulation.outputs.nb_ended
        computing = simulation.machines.number_in(HostState.COMPUTING)
        status = Status(
            workloads=list(experiment.scenario.workloads.files),
            scheduler=actors.scheduler.name,
            users=None if actors.users is None else actors.users.name,
            engine=simulation.engine,
            now=situation.now,
            share_done=ended / nb_jobs if nb_jobs and ended <= nb_jobs else None,
            jobs=JobCounts(nb_jobs, situation.waiting, situation.running, ended),
            hosts=Amount(simulation.machines.count, computing),
            resources={
                name: Amount(total, total - free) for name, (free, total) in situation.resources.items()
            },
            elapsed_seconds=round(time.monotonic() - began, 3),
            processor_seconds=round(time.process_time(), 3),
            memory_bytes=memory_in_use(),
            version=__version__,
        )
        return msgspec.json.encode(status)

    return tell
