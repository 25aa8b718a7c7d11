"""Users who react to nothing, users who take back what was cancelled, and what notes say of jobs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from math import inf
from typing import Any, ClassVar

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.users import Action, Behaviour, Submission, User, Withdrawal, WrappedUser, Wrapper
from batsched_py.workload.model import CANCELLED_AFTER, Workload, as_jobs


def recorded_note(job: Job, session: int | None = None) -> str:
    """Who submitted a recorded job, in which of their sessions, and when that was in the log.

    >>> recorded_note(Job("w0!7", 3600.0, 4, 60.0, "run_30", {"user": 12}), session=3)
    'user=12 session=3 recorded=3600'
    """
    user, time = job.user, job.submission_time
    facts = [] if user is None else [who(user)]
    if session is not None:
        facts.append(f"session={session}")
    return " ".join([*facts, f"recorded={int(time) if time.is_integer() else time!r}"])


@lru_cache(maxsize=1024)
def who(user: str) -> str:
    """Who submitted a job.

    >>> who("J. Doe")
    'user=J.%20Doe'
    """
    from urllib.parse import quote

    return f"user={quote(user, safe='')}"


class Rigid(Behaviour):
    """Every job at its recorded time, whatever happens."""

    name = "rigid"

    def native_users(self) -> tuple[str, dict[str, Any]]:
        """The native engine has such a user."""
        return "rigid", {}

    def users(self, workload: Workload) -> list[User]:
        """One user who submits for all, since none of them reacts to anything.

        Jobs of one instant go in the order in which Batsim itself submits those of a workload file.
        """
        jobs = as_jobs(workload.jobs).in_submission_order()
        return [RigidUser(workload.name, jobs, workload.profiles)]


class RigidUser(User):
    """Submits each job at its own submission time."""

    def __init__(self, name: str, jobs: Iterator[Job], profiles: Mapping[str, Profile]) -> None:
        self.name = name
        self._jobs = jobs
        self._profiles = profiles
        self._next = next(jobs, None)

    def next_time(self) -> float:
        """The time of the next job."""
        return inf if self._next is None else self._next.submission_time

    def submit(self, now: float) -> list[Submission]:
        """All jobs whose time has come."""
        submissions = []
        job = self._next
        while job is not None and job.submission_time <= now:
            submissions.append(Submission(job, self._profiles[job.profile], recorded_note(job)))
            job = next(self._jobs, None)
        self._next = job
        return submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Take no notice."""


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
