"""A job that runs: which task of its profile it is at."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from msgspec import Struct

from batsched_py.protocol.events import Progress
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Composed, Profile, Receive, Speeds

#: The profiles of a workload by name.
Profiles = Mapping[str, Profile]


class Frame(Struct):
    """A profile that consists of others and is under way."""

    name: str
    profile: Composed | Receive
    step: int = 0


class Execution(Struct, gc=False, eq=False):
    """A running job.

    Its profile is walked task by task; of a profile that consists of others, the stack of frames says where
    the walk is.
    """

    job: Job
    hosts: HostSet
    nb_hosts: int
    speeds: Speeds
    """Of the cores that its executors have, in flop/s."""
    start: float
    remaining: float
    """What was left of the walltime when the task began."""
    task_name: str
    task: Profile
    task_start: float
    agenda_number: int = 0
    """Of what happens to the job next, 0 if that depends on others."""
    frames: tuple[Frame, ...] = ()
    executors: list[int] | None = None
    """The host of each executor, when they are not one on each host in order."""
    storage_mapping: dict[str, int] | None = None
    io: tuple[HostSet, Profile] | None = None
    """What is moved beside the job, and the hosts for it."""
    listening: bool = False
    """Whether it waits for a message."""
    joules: float = 0.0
    """What its hosts had drawn when it began."""

    @property
    def nb_executors(self) -> int:
        """How many processes compute for it."""
        return self.nb_hosts if self.executors is None else len(self.executors)

    def places(self) -> list[int]:
        """The host of each executor."""
        return list(self.hosts) if self.executors is None else self.executors

    def spend(self, seconds: float) -> None:
        """A task took this much of the walltime.

        Overspent, if only by a rounding error, the walltime binds no more: Batsim takes what is left for
        its mark of having none.
        """
        self.remaining -= seconds
        if self.remaining < 0:
            self.remaining = inf

    def progress(self, done: float) -> Progress:
        """How far the job has come, when this part of its task is done."""
        node = Progress(self.task_name, done=done)
        for frame in reversed(self.frames):
            nb_tasks = len(frame.profile.parts)
            node = Progress(frame.name, task_index=frame.step, task=node, nb_tasks=nb_tasks)
        return node

    def go_into(self, name: str, profile: Profile, profiles: Profiles) -> None:
        """Go on with the first task of a profile, inside those that are under way."""
        while isinstance(profile, Composed):
            self.frames += (Frame(name, profile),)
            name = profile.step_name(0)
            profile = profiles[name]
        self.task_name, self.task = name, profile

    def go_on(self, profiles: Profiles) -> int | None:
        """Go on to the next task of the profile; if there is none, the return code of the whole."""
        while self.frames:
            frame = self.frames[-1]
            frame.step += 1
            if frame.step < frame.profile.length:
                assert isinstance(frame.profile, Composed)
                name = frame.profile.step_name(frame.step)
                self.go_into(name, profiles[name], profiles)
                return None
            if frame.profile.return_code:
                return frame.profile.return_code
            self.frames = self.frames[:-1]
        return 0
