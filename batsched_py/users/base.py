"""What every user is, and where users come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from msgspec import Struct

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.workload.model import Workload


class Submission(Struct, gc=False, eq=False):
    """A job that a user hands in."""

    job: Job
    """The job; its submission time becomes the time at which it is handed in."""
    profile: Profile
    """What the job does. Jobs of one workload that name the same profile do the same."""
    note: str = ""
    """What shall stand in the column ``metadata`` of the results."""
    decided: float = 0.0
    """When the user made up its mind; of jobs that are handed in at once, those decided on first go first."""


class User(ABC):
    """Somebody who submits jobs and waits for them.

    A user is told of nothing but the ends of its own jobs. So it is gone for good once it plans no
    submission and has no job that could still end.
    """

    name: str

    @abstractmethod
    def next_time(self) -> float:
        """When it wants to submit next if none of its jobs ends before; infinite for not at all."""

    @abstractmethod
    def submit(self, now: float) -> list[Submission]:
        """What it submits when the time has come."""

    @abstractmethod
    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Hear that one of its jobs ended at ``now``: completed, failed, killed or rejected."""


class Behaviour(ABC):
    """A way in which the users of a workload submit its jobs.

    A subclass in a file of its own is all it takes. Options are dataclass fields, with their meaning in
    ``Annotated[..., Meta(description=...)]``; the first line of the docstring is what lists show.
    """

    name: ClassVar[str]
    """How the behaviour is called on the command line."""

    @abstractmethod
    def users(self, workload: Workload) -> list[User]:
        """New users for one simulation, who behave in this way."""
