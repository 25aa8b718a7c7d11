"""How far a simulation is, for other processes that ask."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from batsched_py import __version__
from batsched_py.decision.meter import memory_in_use
from batsched_py.engines import Simulation
from batsched_py.experiment import Experiment
from batsched_py.protocol.jobs import HostState


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
