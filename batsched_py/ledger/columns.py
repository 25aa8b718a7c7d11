"""What conditions and orders ask about waiting jobs, in numpy columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.protocol.jobs import Job

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_GONE = np.iinfo(np.int64).max


class Columns:
    """Sizes, estimates, submissions and users of jobs by their places in a queue; some places are gaps."""

    def __init__(
        self, jobs: Sequence[Job | None], estimates: Sequence[float], users: dict[str | None, int]
    ) -> None:
        self._numbers = users
        self._end = len(jobs)
        self._jobs: list[Job | None] | None = list(jobs)
        """As long as nobody has asked for the users of these jobs."""
        self._users: Integers | None = None
        capacity = max(64, 2 * self._end)
        self.sizes: Integers = np.empty(capacity, np.int64)
        self.estimates: Floats = np.empty(capacity, np.float64)
        self.submissions: Floats = np.empty(capacity, np.float64)
        self.sizes[: self._end] = [_GONE if job is None else job.size for job in jobs]
        self.estimates[: self._end] = estimates
        self.submissions[: self._end] = [0.0 if job is None else job.submission_time for job in jobs]

    @property
    def users(self) -> Integers:
        """The numbers of the users."""
        if self._users is None:
            assert self._jobs is not None
            self._users = np.zeros(len(self.sizes), np.int64)
            self._users[: self._end] = [0 if job is None else self._number(job) for job in self._jobs]
            self._jobs = None
        return self._users

    def places(self) -> Integers:
        """Where the jobs stand."""
        places: Integers = (self.sizes[: self._end] != _GONE).nonzero()[0]
        return places

    def not_wider(self, first: int, widest: int) -> Integers:
        """Where from a place on jobs stand that ask for so many hosts at most."""
        places: Integers = (self.sizes[first : self._end] <= widest).nonzero()[0] + first
        return places

    def append(self, job: Job, estimate: float) -> None:
        """A job joins at the end."""
        place = self._end
        if place == len(self.sizes):
            self._grow()
        self.sizes[place] = job.size
        self.estimates[place] = estimate
        self.submissions[place] = job.submission_time
        if self._users is not None:
            self._users[place] = self._number(job)
        elif self._jobs is not None:
            self._jobs.append(job)
        self._end = place + 1

    def remove(self, place: int) -> None:
        """A job leaves a gap."""
        self.sizes[place] = _GONE
        if self._jobs is not None:
            self._jobs[place] = None

    def shorten(self, end: int) -> None:
        """There are only gaps from a place on."""
        self._end = end
        if self._jobs is not None:
            del self._jobs[end:]

    def _grow(self) -> None:
        self.sizes, self.estimates, self.submissions = map(
            _doubled, (self.sizes, self.estimates, self.submissions)
        )
        if self._users is not None:
            self._users = _doubled(self._users)

    def _number(self, job: Job) -> int:
        return self._numbers.setdefault(job.user, len(self._numbers))


def _doubled(column: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate((column, np.empty_like(column)))
