"""One simulation from its files to its result, and how far it is meanwhile."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import msgspec
from msgspec import Struct

from batsched_py import __version__
from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.result import Overview, Result
from batsched_py.api.terminal import shown
from batsched_py.decision.observers import memory_in_use
from batsched_py.engines import Simulation
from batsched_py.experiment import Choice, Experiment
from batsched_py.experiment.build import NOTHING_GIVEN, Given, read_workloads, words_of
from batsched_py.experiment.run import GoThrough, run_experiment
from batsched_py.protocol.jobs import HostState
from batsched_py.schedulers import SCHEDULERS, Scheduler, Wrapper
from batsched_py.simulator.outputs import PREFIX, MemoryFiles, OutputFile
from batsched_py.workload.doubts import Figures, doubts
from batsched_py.workload.model import Workload


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
        logging.getLogger(__name__).warning(
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
        logging.getLogger(__name__).warning(
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
        logging.getLogger(__name__).warning("%s", doubt)


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
