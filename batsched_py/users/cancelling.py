"""Users who take back what was cancelled in the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users.base import Action, Submission, User, Withdrawal
from batsched_py.users.wrapping import WrappedUser, Wrapper
from batsched_py.workload.model import CANCELLED_AFTER, Workload


@dataclass
class Cancelling(Wrapper):
    """Users who withdraw a job when it has taken as long as it had waited in the log when it was cancelled.

    One that still waits leaves the queue; one that runs by then is killed, because nobody knows how long it
    would have run. The option `--cancelled withdraw` of `batsched-py run` keeps such jobs in a log, and puts
    these users around all others.
    """

    name = "cancelling"
    around: ClassVar[str] = "rigid"

    def users(self, workload: Workload) -> list[User]:
        """One around each."""
        return [CancellingUser(user) for user in self.inner.users(workload)]

    def learn(self, workload: Workload) -> None:
        """Let the users inside learn."""
        self.inner.learn(workload)


class CancellingUser(WrappedUser):
    """Hands on what another user does, and takes back some of its jobs."""

    def __init__(self, user: User) -> None:
        super().__init__(user)
        self._plan: list[tuple[float, str]] = []
        """When which job is to be withdrawn; some of them may be over."""
        self._outstanding: set[str] = set()
        """The jobs that are to be withdrawn and are not over."""

    def next_time(self) -> float:
        """When it acts, or withdraws a job."""
        while self._plan and self._plan[0][1] not in self._outstanding:
            heappop(self._plan)
        time = self.user.next_time()
        return min(time, self._plan[0][0]) if self._plan else time

    def submit(self, now: float) -> Sequence[Action]:
        """What the user does, and withdrawals whose time has come."""
        actions = list(super().submit(now))
        for action in actions:
            if isinstance(action, Submission) and CANCELLED_AFTER in action.job.extra:
                self._outstanding.add(action.job.id)
                heappush(self._plan, (now + action.job.extra[CANCELLED_AFTER], action.job.id))
            elif isinstance(action, Withdrawal):
                self._outstanding.discard(action.job_id)
        while self._plan and self._plan[0][0] <= now:
            _, job_id = heappop(self._plan)
            if job_id in self._outstanding:
                self._outstanding.remove(job_id)
                actions.append(self.withdraw(job_id, "withdrawn=as-recorded"))
        return actions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """There is nothing left to withdraw."""
        self._outstanding.discard(job.id)
        super().job_ended(job, state, now)
