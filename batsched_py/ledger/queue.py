"""The waiting jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from batsched_py.ledger.columns import Columns
    from batsched_py.ledger.free import FreeHosts

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
else:
    Floats = Integers = Any

#: A condition on size and estimated run time, true or false for one job, or for a column of them at once.
Condition = Callable[[Any, Any], Any]

#: Fewer jobs than this are gone through one by one.
FEW = 256

#: So many gaps more than there are jobs are left open.
GAPS = 32

#: A size that no job has.
_GONE = sys.maxsize


class Waiting:
    """Some waiting jobs as columns of numbers, in submission order."""

    def __init__(self, columns: Columns, places: Integers) -> None:
        self._columns = columns
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @property
    def size(self) -> Integers:
        """How many hosts each job asks for."""
        return self._columns.sizes[self._places]

    @property
    def estimate(self) -> Floats:
        """How long each job is expected to run: its walltime, unless the policy knows better."""
        return self._columns.estimates[self._places]

    @property
    def submission(self) -> Floats:
        """When each job was submitted."""
        return self._columns.submissions[self._places]

    @property
    def user(self) -> Integers:
        """Who submitted each job, by number in :attr:`JobQueue.users`."""
        return self._columns.users[self._places]


#: Gives each of some waiting jobs a score; the lowest goes first, equal ones go in submission order.
Score = Callable[[Waiting], Floats]


class JobQueue:
    """Waiting jobs, in submission order or in the one that the policy has chosen.

    This is what everybody may look at; who joins and leaves is written in the :class:`QueueBook`. Where many
    jobs wait, or where they wait in an order, what conditions and scores are about also stands in numpy
    columns, so that ten thousand waiting jobs are searched and compared in some microseconds instead of one
    by one.
    """

    def __init__(self) -> None:
        self.users: dict[str | None, int] = {}
        """Whose jobs have waited here, numbered; known from when :attr:`Waiting.user` is first asked for."""
        self._score: Score | None = None
        self._place: dict[str, int] = {}
        self._jobs: list[Job | None] = []
        self._sizes: list[int] = []
        """Of the jobs; beyond all hosts where there is a gap."""
        self._estimates: list[float] = []
        self._first = 0
        self._columns: Columns | None = None

    @property
    def head(self) -> Job:
        """The job that is first in line."""
        place = self._first
        if self._score is not None:
            columns = self._as_columns()
            places = columns.places()
            place = int(places[self._score(Waiting(columns, places)).argmin()])
        job = self._jobs[place]
        assert job is not None
        return job

    def first(self, count: int) -> Waiting:
        """Those so many who wait longest, or all if they are fewer, as columns of numbers."""
        columns = self._as_columns()
        return Waiting(columns, columns.places()[:count])

    def estimate(self, job: Job) -> float:
        """How long a waiting job is expected to run."""
        return self._estimates[self._place[job.id]]

    def __iter__(self) -> Iterator[Job]:
        """The jobs in order; those that leave before their turn are passed over."""
        jobs: list[Job | None] = self._jobs[self._first :]
        if self._score is not None and jobs:
            columns = self._as_columns()
            places = columns.places()
            order = self._score(Waiting(columns, places)).argsort(kind="stable")
            jobs = [self._jobs[place] for place in places[order].tolist()]
        for job in jobs:
            if job is not None and job.id in self._place:
                yield job

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, job: Job) -> bool:
        return job.id in self._place

    def get(self, job_id: str) -> Job | None:
        """The waiting job of this name, if there is one."""
        place = self._place.get(job_id)
        return None if place is None else self._jobs[place]

    def _as_columns(self) -> Columns:
        if self._columns is None:
            from batsched_py.ledger.columns import Columns

            self._columns = Columns(self._jobs, self._estimates, self.users)
        return self._columns


class QueueBook:
    """Writes down who joins a queue and who leaves it, and finds the jobs that can be started.

    A job that leaves in the middle leaves a gap; gaps are closed before they are more than the jobs.
    """

    def __init__(self, queue: JobQueue) -> None:
        self.queue = queue
        self.nb_new = 0
        """How many jobs have joined since this was last made 0."""
        self._most = 64
        """So many places are used before gaps are closed."""

    def where(
        self,
        free: FreeHosts,
        condition: Condition | None = None,
        score: Score | None = None,
        only_new: bool = False,
    ) -> Iterator[Job]:
        """The jobs for which enough hosts are free, and that meet a condition, one after another.

        The condition is a plain expression such as ``lambda size, estimate: (size <= 4) | (estimate < 60)``.
        Both demands may become stricter while the jobs are gone through: they are made anew of each job. Jobs
        come in the order of their scores, else in the queue's. With ``only_new``, only those are looked at
        that have joined since :attr:`nb_new` was last made 0.
        """
        queue = self.queue
        jobs, first = queue._jobs, queue._first
        if only_new:
            first = max(first, len(jobs) - self.nb_new)
        score = score or queue._score
        if score is not None or len(jobs) - first >= FEW:
            return self._where_among_many(free, condition, score, first)
        sizes, widest = queue._sizes, free.count
        found = [place for place in range(first, len(jobs)) if sizes[place] <= widest]
        return self._where_among(found, free, condition) if found else iter(())

    def _where_among(self, places: list[int], free: FreeHosts, condition: Condition | None) -> Iterator[Job]:
        queue = self.queue
        jobs, sizes, estimates = queue._jobs, queue._sizes, queue._estimates
        for place in places:
            size = sizes[place]
            if size <= free.count and (condition is None or condition(size, estimates[place])):
                job = jobs[place]
                if job is not None and job.id in queue._place:
                    yield job

    def _where_among_many(
        self, free: FreeHosts, condition: Condition | None, score: Score | None, first: int
    ) -> Iterator[Job]:
        queue = self.queue
        jobs, columns = queue._jobs, queue._as_columns()
        found = columns.not_wider(first, free.count)
        if score is not None:
            found = found[score(Waiting(columns, found)).argsort(kind="stable")]
        sizes, estimates = columns.sizes[found], columns.estimates[found]
        while len(found):
            meets = sizes <= free.count
            if condition is not None:
                meets &= condition(sizes, estimates)
            next_one = int(meets.argmax())
            if not meets[next_one]:
                return
            job = jobs[found[next_one]]
            if job is not None and job.id in queue._place:
                yield job
            rest = slice(next_one + 1, None)
            found, sizes, estimates = found[rest], sizes[rest], estimates[rest]

    def order_by(self, score: Score | None) -> None:
        """Keep the jobs in the order of their scores; without them, in submission order."""
        self.queue._score = score

    def append(self, job: Job, estimate: float) -> None:
        """A job joins; it is expected to run for so long."""
        queue = self.queue
        if len(queue._jobs) == self._most:
            self._close_gaps()
        queue._place[job.id] = len(queue._jobs)
        queue._jobs.append(job)
        queue._sizes.append(job.size)
        queue._estimates.append(estimate)
        self.nb_new += 1
        if queue._columns is not None:
            queue._columns.append(job, estimate)

    def discard(self, job_id: str) -> float:
        """A job leaves; how long it was expected to run."""
        queue = self.queue
        jobs, place = queue._jobs, queue._place.pop(job_id)
        estimate, end = queue._estimates[place], len(jobs)
        jobs[place], queue._sizes[place] = None, _GONE
        if queue._columns is not None:
            queue._columns.remove(place)
        if place == queue._first:
            place += 1
            while place < end and jobs[place] is None:
                place += 1
            queue._first = place
        elif place + 1 == end:
            while jobs[place] is None:
                place -= 1
            self._shorten(place + 1)
        elif end - queue._first > 2 * len(queue._place) + GAPS:
            self._close_gaps()
        return estimate

    def expect(self, job: Job, estimate: float) -> None:
        """Change how long a waiting job is expected to run."""
        queue = self.queue
        place = queue._place[job.id]
        queue._estimates[place] = estimate
        if queue._columns is not None:
            queue._columns.estimates[place] = estimate

    def _shorten(self, end: int) -> None:
        queue = self.queue
        queue._jobs = queue._jobs[:end]
        queue._sizes = queue._sizes[:end]
        queue._estimates = queue._estimates[:end]
        if queue._columns is not None:
            queue._columns.shorten(end)

    def _close_gaps(self) -> None:
        """Move the jobs together, and make room for as many more."""
        queue = self.queue
        places = [place for place, job in enumerate(queue._jobs) if job is not None]
        queue._jobs = [queue._jobs[place] for place in places]
        queue._sizes = [queue._sizes[place] for place in places]
        queue._estimates = [queue._estimates[place] for place in places]
        queue._place = {job.id: place for place, job in enumerate(queue._jobs) if job is not None}
        queue._first = 0
        queue._columns = None
        while len(places) > self._most // 2:
            self._most *= 2
