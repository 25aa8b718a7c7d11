"""A job that runs: which task of its profile it is at, and how far it has come."""

from __future__ import annotations

from math import inf

from msgspec import Struct

from batsched_py.protocol.events import Progress
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.profiles import Composed, Task


class Frame(Struct):
    """A composed profile that is under way."""

    profile: Composed
    step: int = 0


class Execution(Struct, gc=False, eq=False):
    """A running job.

    Its profile is walked task by task; of a composed profile, the stack of frames says where the walk is.
    """

    job: Job
    hosts: HostSet
    speeds: list[float]
    """Of the host of each executor, in flop/s."""
    start: float
    remaining: float
    """What is left of the walltime."""
    task: Task
    frames: tuple[Frame, ...] = ()
    task_start: float = 0.0
    task_seconds: float = 0.0
    agenda_number: int = 0

    def spend(self, seconds: float) -> None:
        """A task took this much of the walltime.

        Overspent, if only by a rounding error, the walltime binds no more: Batsim takes what is left for
        its mark of having none.
        """
        self.remaining -= seconds
        if self.remaining < 0:
            self.remaining = inf

    def progress(self, now: float) -> Progress:
        """How far the job has come."""
        done = (now - self.task_start) / self.task_seconds if self.task_seconds > 0 else 1.0
        node = Progress(self.task.name, done=min(done, 1.0))
        for frame in reversed(self.frames):
            node = Progress(frame.profile.name, task_index=frame.step, task=node)
        return node


def first_task(profile: Task | Composed, job: Job, catalog: Catalog) -> tuple[Task, tuple[Frame, ...]]:
    """Where the walk through a profile begins."""
    frames: tuple[Frame, ...] = ()
    while isinstance(profile, Composed):
        frames = (*frames, Frame(profile))
        profile = catalog.get(job.workload, profile.sequence[0])
    return profile, frames


def next_task(execution: Execution, catalog: Catalog) -> bool:
    """Go on to the next task of the profile, if there is one."""
    frames = execution.frames
    while frames:
        frame = frames[-1]
        frame.step += 1
        if frame.step < frame.profile.length:
            profile = catalog.get(execution.job.workload, frame.profile.step_name(frame.step))
            execution.task, below = first_task(profile, execution.job, catalog)
            execution.frames = frames + below
            return True
        frames = frames[:-1]
    return False
