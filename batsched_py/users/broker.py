"""The broker: speaks for all users, so that whoever asks need not know how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf, isnan

from batsched_py.blame import culprit
from batsched_py.errors import PolicyError
from batsched_py.protocol.clock import to_tick
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users.base import Submission, User


class Broker:
    """Merges users, tells each of the ends of its own jobs, and knows when to be woken next.

    Simulators tell times to six decimals. A user's time has come at the first ``now`` that is not before it
    on that scale; the user itself is then given a time that is not before its own.
    """

    def __init__(self, users: Iterable[User]) -> None:
        self._users = list(users)
        self._plan: list[tuple[float, int]] = []
        """When which user wants to submit, as a heap; wishes that a user has thought better of stay in it."""
        self._wanted = [inf] * len(self._users)
        """For each user, the time of the wish that is valid."""
        self._outstanding: dict[str, tuple[int, Job]] = {}
        """The jobs that may still end, with the number of their user."""
        self._calls: list[float] = []
        """When calls will come that were asked for, as a heap."""
        for number in range(len(self._users)):
            self._ask(number, now=0.0)

    @property
    def done(self) -> bool:
        """Whether nobody will ever submit again."""
        return not self._outstanding and self._next_time() == inf

    def is_due(self, now: float) -> bool:
        """Whether somebody wants to submit now."""
        return self._next_time() <= now

    def submissions(self, now: float) -> list[Submission]:
        """What all users submit now: what was decided first comes first, then user by user."""
        submissions: list[Submission] = []
        while self.is_due(now):
            _, number = heappop(self._plan)
            user = self._users[number]
            try:
                submitted = user.submit(max(now, user.next_time()))
            except (Exception, SystemExit) as error:
                raise _blame(user, error, now) from error
            for submission in submitted:
                self._outstanding[submission.job.id] = (number, submission.job)
            submissions += submitted
            self._wanted[number] = inf
            self._ask(number, now)
            if not submitted and self._wanted[number] <= now:
                raise PolicyError(f"user {user.name} wants to submit at time {now:g}, yet submits nothing")
        submissions.sort(key=lambda submission: submission.decided)
        return submissions

    def job_ended(self, job_id: str, state: JobState, now: float) -> None:
        """Tell the user whose job it was, if it was a user's."""
        number, job = self._outstanding.pop(job_id, (None, None))
        if number is None or job is None:
            return
        user = self._users[number]
        try:
            user.job_ended(job, state, now)
        except (Exception, SystemExit) as error:
            raise _blame(user, error, now) from error
        self._ask(number, now)

    def call_to_ask(self, now: float) -> float | None:
        """When a call is needed that none was asked for yet; exactly one that matters is ever pending.

        A call cannot be taken back. One that comes too early because plans have changed does no harm.
        """
        while self._calls and self._calls[0] <= now:
            heappop(self._calls)
        time = self._next_time()
        if time == inf or (self._calls and self._calls[0] <= time):
            return None
        heappush(self._calls, time)
        return time

    def _ask(self, number: int, now: float) -> None:
        """Ask a user for its next time, and put that down if it is new."""
        user = self._users[number]
        try:
            time = float(user.next_time())
        except (Exception, SystemExit) as error:
            raise _blame(user, error, now) from error
        if isnan(time) or time == -inf:
            raise PolicyError(f"user {user.name} wants to submit at time {time:g}, which never comes")
        if time != inf:
            time = to_tick(time)
        if time != self._wanted[number]:
            self._wanted[number] = time
            if time != inf:
                heappush(self._plan, (time, number))

    def _next_time(self) -> float:
        while self._plan:
            time, number = self._plan[0]
            if self._wanted[number] == time:
                return time
            heappop(self._plan)
        return inf


def _blame(user: User, error: BaseException, now: float) -> PolicyError:
    """What a user raised, told as its fault."""
    return PolicyError(
        f"user {user.name} failed at time {now:g}: {type(error).__name__}: {error} ({culprit(error)})"
    )
