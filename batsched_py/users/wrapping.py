"""Behaviours around behaviours: ``patience(think-time)`` are users with think times who may lose patience."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from batsched_py.plugins import LayeredRegistry
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users.base import Action, Behaviour, Remark, Submission, User, Withdrawal


class Wrapper(Behaviour):
    """A behaviour that changes what the users of another one do.

    A subclass asks :attr:`inner` for users, and hands on others who speak to these.
    """

    around: ClassVar[str] = "think-time"
    """What it is around when nothing is said."""
    outermost: ClassVar[bool] = False
    """Whether nothing can go around it."""
    inner: ClassVar[Behaviour]
    """What it is around; each instance has its own."""


class WrappedUser(User):
    """Hands on what another user does and hears; a subclass changes some of it."""

    def __init__(self, user: User) -> None:
        self.name = user.name
        self.user = user
        self.waiting: dict[str, float] = {}
        """The jobs that were submitted and did not start, and since when they wait."""
        self._submitted: dict[str, Submission] = {}
        """Those that are not over, with what is noted about them."""

    def next_time(self) -> float:
        """When the user acts."""
        return self.user.next_time()

    def submit(self, now: float) -> Sequence[Action]:
        """What the user does, if its time has come."""
        actions = self.user.submit(now) if self.user.next_time() <= now else ()
        for action in actions:
            if isinstance(action, Submission):
                self.waiting[action.job.id] = now
                self._submitted[action.job.id] = action
            elif action.note and (submitted := self._submitted.get(action.job_id)):
                submitted.note = action.note
        return actions

    def withdraw(self, job_id: str, note: str = "") -> Withdrawal:
        """Take back a job, which waits no longer, and add something to its note."""
        self.waiting.pop(job_id, None)
        return Withdrawal(job_id, self._added(job_id, note) if note else "")

    def remark(self, job_id: str, note: str) -> Remark:
        """Add something to the note of a job."""
        return Remark(job_id, self._added(job_id, note))

    def _added(self, job_id: str, note: str) -> str:
        """What is noted about a job, and this."""
        submitted = self._submitted.get(job_id)
        if submitted is None:
            return note
        submitted.note = f"{submitted.note} {note}".strip()
        return submitted.note

    def job_started(self, job: Job, now: float) -> None:
        """It waits no longer."""
        self.waiting.pop(job.id, None)
        self.user.job_started(job, now)

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """It waits no longer, whether it had started or not."""
        self.waiting.pop(job.id, None)
        self._submitted.pop(job.id, None)
        self.user.job_ended(job, state, now)


class Behaviours(LayeredRegistry[Behaviour]):
    """The known behaviours, which may be named one around the other, as in ``outer(inner)``."""

    wrapper = Wrapper
    example = "patience(think-time)"
