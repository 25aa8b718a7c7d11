"""The waiting jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.protocol.jobs import Job

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A condition on size and estimated run time, true or false for one job, or for a column of them at once.
Condition = Callable[[Any, Any], Any]

_SHORT = 32
_GONE = np.iinfo(np.int64).max


class Waiting:
    """Some waiting jobs as columns of numbers, in submission order."""

    def __init__(self, queue: JobQueue, places: Integers) -> None:
        self._queue = queue
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @property
    def size(self) -> Integers:
        """How many hosts each job asks for."""
        return self._queue._sizes[self._places]

    @property
    def estimate(self) -> Floats:
        """How long each job is expected to run: its walltime, unless the policy knows better."""
        return self._queue._estimates[self._places]

    @property
    def submission(self) -> Floats:
        """When each job was submitted."""
        return self._queue._submissions[self._places]

    @property
    def user(self) -> Integers:
        """Who submitted each job, by number in :attr:`JobQueue.users`."""
        return self._queue._user_column()[self._places]


#: Gives each of some waiting jobs a score; the lowest goes first, equal ones go in submission order.
Score = Callable[[Waiting], Floats]


class JobQueue:
    """Waiting jobs, in submission order or in the one that the policy has chosen.

    What conditions and scores are about is kept in numpy columns, so that ten thousand waiting jobs are
    searched and compared in some microseconds instead of one by one. A job that leaves in the middle leaves
    a gap in them; gaps are closed before they are more than the jobs.
    """

    def __init__(self) -> None:
        self.users: dict[str | None, int] = {}
        """Whose jobs have waited here, numbered; known from when :attr:`Waiting.user` is first asked for."""
        self._score: Score | None = None
        self._jobs: list[Job | None] = [None] * 64
        self._place: dict[str, int] = {}
        self._first = self._end = 0
        self._nb_new = 0
        self._sizes: Integers = np.empty(64, np.int64)
        self._estimates: Floats = np.empty(64, np.float64)
        self._submissions: Floats = np.empty(64, np.float64)
        self._users: Integers | None = None

    # --- what a policy asks ----------------------------------------------------------------------

    @property
    def head(self) -> Job:
        """The job that is first in line."""
        place = self._first
        if self._score is not None:
            places = self._places()
            place = int(places[np.argmin(self._score(Waiting(self, places)))])
        job = self._jobs[place]
        assert job is not None
        return job

    def estimate(self, job: Job) -> float:
        """How long a waiting job is expected to run."""
        return self._estimates.item(self._place[job.id])

    def where(
        self,
        widest: Callable[[], int],
        condition: Condition | None = None,
        score: Score | None = None,
        only_new: bool = False,
    ) -> Iterator[Job]:
        """The jobs that are not wider than the widest may be, and that meet a condition, one after another.

        The condition is a plain expression such as ``lambda size, estimate: (size <= 4) | (estimate < 60)``.
        Both demands may become stricter while the jobs are gone through: they are made anew of each job. Jobs
        come in the order of their scores, else in the queue's. With ``only_new``, only those are looked at
        that have joined since the last :meth:`mark`.
        """
        jobs, end = self._jobs, self._end
        begin = max(self._first, end - self._nb_new) if only_new else self._first
        sizes, estimates = self._sizes[begin:end], self._estimates[begin:end]
        score = score or self._score
        if score is None and end - begin < _SHORT:
            for job, size, estimate in zip(jobs[begin:end], sizes.tolist(), estimates.tolist(), strict=True):
                meets = size <= widest() and (condition is None or condition(size, estimate))
                if meets and job is not None and job in self:
                    yield job
            return
        found = np.flatnonzero(sizes <= widest())
        if score is not None:
            found = found[np.argsort(score(Waiting(self, found + begin)), kind="stable")]
        sizes, estimates = sizes[found], estimates[found]
        while len(found):
            meets = sizes <= widest()
            if condition is not None:
                meets &= condition(sizes, estimates)
            first = int(meets.argmax())
            if not meets[first]:
                return
            job = jobs[begin + found[first]]
            if job is not None and job in self:
                yield job
            found, sizes, estimates = found[first + 1 :], sizes[first + 1 :], estimates[first + 1 :]

    def __iter__(self) -> Iterator[Job]:
        """The jobs in order; those that leave before their turn are passed over."""
        places = self._places()
        if self._score is not None:
            places = places[np.argsort(self._score(Waiting(self, places)), kind="stable")]
        for job in self._at(places):
            if job.id in self._place:
                yield job

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, job: Job) -> bool:
        return job.id in self._place

    # --- what happens to it ----------------------------------------------------------------------

    def order_by(self, score: Score) -> None:
        """Let the job of the lowest score be first in line, instead of the one submitted first."""
        self._score = score

    def append(self, job: Job, estimate: float) -> None:
        """Let a job join."""
        if self._end == len(self._jobs):
            self._close_gaps()
        place = self._end
        self._end += 1
        self._nb_new += 1
        self._place[job.id] = place
        self._jobs[place] = job
        self._sizes[place] = job.size
        self._estimates[place] = estimate
        self._submissions[place] = job.submission_time
        if self._users is not None:
            self._users[place] = self._user_number(job)

    def discard(self, job: Job) -> float:
        """Let a job leave, wherever it stands, if it is there; how long it is expected to run."""
        place = self._place.pop(job.id, None)
        if place is None:
            return job.walltime
        jobs, estimate = self._jobs, self._estimates.item(place)
        jobs[place] = None
        self._sizes[place] = _GONE
        if place == self._first:
            while place < self._end and jobs[place] is None:
                place += 1
            self._first = place
        elif place + 1 == self._end:
            while jobs[place] is None:
                place -= 1
            self._end = place + 1
        elif self._end - self._first > 2 * len(self._place) + _SHORT:
            self._close_gaps()
        return estimate

    def expect(self, job: Job, estimate: float) -> None:
        """Change how long a waiting job is expected to run."""
        self._estimates[self._place[job.id]] = estimate

    def mark(self) -> None:
        """From here on, a job that joins is new."""
        self._nb_new = 0

    # --- columns ---------------------------------------------------------------------------------

    def _places(self) -> Integers:
        """Where the jobs stand, in submission order."""
        places = np.flatnonzero(self._sizes[self._first : self._end] != _GONE)
        return places + self._first

    def _at(self, places: Integers) -> list[Job]:
        jobs = self._jobs
        return [jobs[place] for place in places.tolist()]

    def _close_gaps(self) -> None:
        """Move the jobs together, into larger columns if they would fill more than half of these."""
        places = self._places()
        jobs = self._at(places)
        capacity = len(self._sizes)
        while len(jobs) > capacity // 2:
            capacity *= 2
        self._jobs = [*jobs, *[None] * (capacity - len(jobs))]
        self._place = {job.id: place for place, job in enumerate(jobs)}
        self._first, self._end = 0, len(jobs)
        self._sizes = _moved(self._sizes, places, capacity)
        self._estimates = _moved(self._estimates, places, capacity)
        self._submissions = _moved(self._submissions, places, capacity)
        if self._users is not None:
            self._users = _moved(self._users, places, capacity)

    def _user_column(self) -> Integers:
        if self._users is None:
            self._users = np.zeros(len(self._sizes), np.int64)
            places = self._places()
            self._users[places] = [self._user_number(job) for job in self._at(places)]
        return self._users

    def _user_number(self, job: Job) -> int:
        return self.users.setdefault(job.user, len(self.users))


def _moved(column: NDArray[Any], places: Integers, capacity: int) -> NDArray[Any]:
    moved = np.empty(capacity, column.dtype)
    moved[: len(places)] = column[places]
    return moved
