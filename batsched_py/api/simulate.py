"""A whole simulation in one process, from the words of ``batsched-py run`` to its result."""

from __future__ import annotations

import gc
import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from batsched_py.api.overview import Overview
from batsched_py.api.progress import shown, somebody_looks
from batsched_py.api.result import Result
from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.experiment.sides import BY_NAME, Cast, read_workloads, sides
from batsched_py.plugins import Registry
from batsched_py.protocol.events import Settings
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.simulation import simulate as converse0


def converse(simulation, process, on_turn=None):
    simulation.run(on_turn)


from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.memory_files import PREFIX, MemoryFiles
from batsched_py.simulator.outputs import OutputFile
from batsched_py.users import USERS, Behaviour
from batsched_py.workload.model import WalltimeRule

if TYPE_CHECKING:
    from batsched_py.api.log import FileName, Log
    from batsched_py.decision.pybatsim import PyBatsimProcess
    from batsched_py.workload.swf.log import SwfLog

Plugin = TypeVar("Plugin")

#: Goes through a simulation of so many jobs, or of 0 where nobody knows how many.
GoThrough: TypeAlias = "Callable[[Batsim, DecisionProcess | PyBatsimProcess, int], None]"

#: So many objects more than before may be there until garbage is searched for.
_RARELY = 20_000

#: Options of a scheduler or of users, as texts or as what they are.
Options = Mapping[str, Any]


def simulate(
    workload: Log | FileName | Sequence[Log | FileName],
    scheduler: str | type[Scheduler] | Scheduler,
    *,
    options: Options | None = None,
    users: str | type[Behaviour] | Behaviour | None = None,
    sessions: str | None = None,
    user_options: Options | None = None,
    scheduling_delay: float = 0.0,
    walltime: WalltimeRule = "at-least-run-time",
    walltime_factor: float = 2.0,
    platform: FileName | None = None,
    hosts: int | None = None,
    speed: float | None = None,
    master_host: str = "master_host",
    add_role_to_hosts: Sequence[str] = (),
    mmax: int = 0,
    mmax_workload: bool = False,
    energy: bool = False,
    events: FileName | Sequence[FileName] = (),
    forward_unknown_events: bool = False,
    enable_compute_sharing: bool = False,
    disable_storage_sharing: bool = False,
    forward_profiles_on_submission: bool = False,
    enable_dynamic_jobs: bool = False,
    acknowledge_dynamic_jobs: bool = False,
    enable_profile_reuse: bool = False,
    sched_cfg: str = "",
    ignore_communication: bool = False,
    enable_machine_state_tracing: bool | None = None,
    remarks: bool = False,
    export: FileName | None = None,
    progress: bool | None = None,
) -> Result:
    """Simulate a workload on a machine under a scheduler.

    The words are the options of `batsched-py run`, where each is explained. The ``workload`` is a log, the
    name of a file (a log, or a Batsim workload), or several that are played together. The ``scheduler`` and
    the ``users`` are names, classes or objects; ``options`` and ``user_options`` go with names and classes.
    An object is used as it is, with whatever it remembers of a simulation before.

    Results are kept in memory, unless ``export`` says where Batsim's files go, as ``-e`` does. Progress is
    shown on terminals and in notebooks, or as ``progress`` says.
    """
    policy, chosen = _actor(SCHEDULERS, scheduler, options)
    behaviour, who = (None, None) if users is None else _actor(USERS, users, _with(sessions, user_options))
    if users is None and (sessions is not None or user_options):
        raise InputError("there are options for users, but no users; give users=NAME")
    played = _several(workload)
    files, logs = _files_and_logs(played)
    experiment = Experiment(
        scenario=Scenario(
            workloads=Workloads(files=files, walltime=walltime, walltime_factor=walltime_factor),
            machine=Machine(
                file=None if platform is None else os.fspath(platform),
                hosts=hosts,
                speed=speed,
                master_host=master_host,
                roles=tuple(add_role_to_hosts),
                mmax=mmax,
                mmax_workload=mmax_workload,
            ),
            settings=Settings(
                dynamic_jobs=enable_dynamic_jobs,
                acknowledge_dynamic_jobs=acknowledge_dynamic_jobs,
                profile_reuse=enable_profile_reuse,
                forward_profiles=forward_profiles_on_submission,
                forward_unknown_events=forward_unknown_events,
                compute_sharing=enable_compute_sharing,
                storage_sharing=not disable_storage_sharing,
                scheduler_config=sched_cfg,
            ),
            energy=energy,
            events=tuple(map(os.fspath, _several(events))),
            ignore_communication=ignore_communication,
            machine_states=enable_machine_state_tracing,
        ),
        actors=Actors(scheduler=chosen, users=who, scheduling_delay=scheduling_delay),
        remarks=remarks,
    )
    return simulate_experiment(
        experiment,
        export=None if export is None else os.fspath(export),
        progress=somebody_looks() if progress is None else progress,
        logs=logs,
        cast=Cast(policy, behaviour),
    )


def simulate_experiment(
    experiment: Experiment,
    *,
    export: str | None = None,
    progress: bool = False,
    logs: Mapping[int, SwfLog] | None = None,
    cast: Cast = BY_NAME,
    watched: GoThrough | None = None,
) -> Result:
    """Simulate an experiment; some of its logs may be in memory, and some of its actors objects.

    Whoever wants to watch goes through the simulation in place of the usual loop, and shows how far it is.
    """
    began = time.perf_counter()
    workloads = read_workloads(experiment.scenario.workloads, logs)
    kept = MemoryFiles() if export is None else None
    batsim, process = sides(
        experiment, workloads, export or PREFIX, OutputFile if kept is None else kept.new_file, cast
    )
    nb_jobs = sum(len(workload.jobs) for workload in workloads)
    results = batsim.outputs.results
    with _spared_from_search(), _progress(progress and not watched, lambda: (results.nb_jobs, nb_jobs)):
        if watched is None:
            converse(batsim, process)
        else:
            watched(batsim, process, nb_jobs)
    files = batsim.outputs.files if kept is None else []
    overview = Overview.of(experiment, batsim, files, time.perf_counter() - began)
    return Result(experiment, overview, workloads, kept or str(export), logs or {})


def _progress(wanted: bool, how_far: Any) -> AbstractContextManager[None]:
    return shown("jobs", how_far) if wanted else nullcontext()


@contextmanager
def _spared_from_search() -> Iterator[None]:
    """What was read lives until the end of the simulation: no search for garbage need look at it.

    What a simulation makes is hardly ever garbage that must be searched for, so the search is rare.
    """
    if gc.get_freeze_count():
        yield
        return
    thresholds = gc.get_threshold()
    gc.freeze()
    if thresholds[0]:
        gc.set_threshold(max(thresholds[0], _RARELY), *thresholds[1:])
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def _several(given: Any) -> list[Any]:
    """One thing or several, as a list."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _files_and_logs(played: Sequence[Log | FileName]) -> tuple[tuple[str, ...], dict[int, SwfLog]]:
    """How the workloads are called, and those of them that are in memory, by their places."""
    from batsched_py.api.log import Log

    logs = {place: log for place, log in enumerate(played) if isinstance(log, Log)}
    files = [
        (each.columns.path if each.is_as_read else each.name) if isinstance(each, Log) else os.fspath(each)
        for each in played
    ]
    return tuple(files), {place: log.columns for place, log in logs.items()}


def _with(sessions: str | None, options: Options | None) -> Options:
    """The options of users, among which sessions have a word of their own."""
    if sessions is None:
        return options or {}
    if "sessions" in (options or {}):
        raise InputError("sessions are given twice, also among the user_options; give one of them")
    return {**(options or {}), "sessions": sessions}


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
