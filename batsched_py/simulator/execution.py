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
    next_step: int = 0


class Execution:
    """A running job.

    Its profile is walked task by task; of a composed profile, the stack of frames says where the walk is.
    """

    __slots__ = (
        "_catalog",
        "_frames",
        "agenda_number",
        "hosts",
        "job",
        "remaining",
        "speeds",
        "start",
        "task",
        "task_seconds",
        "task_start",
    )

    def __init__(self, job: Job, profile: Task | Composed, hosts: HostSet, speeds: list[float], start: float, catalog: Catalog) -> None:
        self.job = job
        self.hosts = hosts
        self.speeds = speeds
        self.start = start
        self.remaining = job.walltime
        self.agenda_number = 0
        self.task_start = start
        self.task_seconds = 0.0
        self._catalog = catalog
        self._frames: list[Frame] = []
        self.task: Task | None = self._descend(profile)

    def spend(self, seconds: float) -> None:
        """A task took this much of the walltime.

        Overspent, if only by a rounding error, the walltime binds no more: Batsim takes what is left for
        its mark of having none.
        """
        self.remaining -= seconds
        if self.remaining < 0:
            self.remaining = inf

    def next_task(self) -> Task | None:
        """Go on to the next task of the profile, if there is one."""
        while self._frames:
            frame = self._frames[-1]
            if frame.next_step < frame.profile.length:
                name = frame.profile.step(frame.next_step)
                frame.next_step += 1
                self.task = self._descend(self._catalog.get(self.job.workload, name))
                return self.task
            self._frames.pop()
        return None

    def _descend(self, profile: Task | Composed) -> Task:
        while isinstance(profile, Composed):
            self._frames.append(Frame(profile, 1))
            profile = self._catalog.get(self.job.workload, profile.step(0))
        return profile

    def progress(self, now: float) -> Progress:
        """How far the job has come."""
        assert self.task is not None
        done = (now - self.task_start) / self.task_seconds if self.task_seconds > 0 else 1.0
        node = Progress(self.task.name, done=min(done, 1.0))
        for frame in reversed(self._frames):
            node = Progress(frame.profile.name, task_index=frame.next_step - 1, task=node)
        return node
