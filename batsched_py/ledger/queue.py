"""The waiting jobs."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from batsched_py.ledger import kinds
from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from batsched_py.ledger.columns import Columns
    from batsched_py.ledger.free import FreeHosts
    from batsched_py.ledger.profile import Reservation

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
else:
    Floats = Integers = Any

T = TypeVar("T")

#: A condition on the size and the estimated run time of a job.
Condition = Callable[[int, float], object]

#: Fewer jobs than this are gone through one by one.
FEW = 256

#: So many gaps more than there are jobs are left open.
GAPS = 32

#: A size that no job has.
_GONE = sys.maxsize


class Waiting(kinds.Live):
    """Some waiting jobs as columns of numbers, in submission order, until jobs join or leave the queue."""

    __slots__ = ("_columns", "_places", "_queue", "_state")

    def __init__(self, queue: JobQueue, columns: Columns, places: Integers) -> None:
        self._queue = queue
        self._columns = columns
        self._places = places
        self._state = queue._state

    def __len__(self) -> int:
        return len(self._places)

    def _current(self) -> Columns:
        if self._queue._state != self._state:
            raise RuntimeError("jobs have joined or left the queue since these columns were asked for")
        return self._columns

    @property
    def size(self) -> Integers:
        """How many hosts each job asks for."""
        return self._current().sizes[self._places]

    @property
    def estimate(self) -> Floats:
        """How long each job is expected to run: its walltime, unless the policy knows better."""
        return self._current().estimates[self._places]

    @property
    def submission(self) -> Floats:
        """When each job was submitted."""
        return self._current().submissions[self._places]

    @property
    def user(self) -> Integers:
        """Who submitted each job, by number in :attr:`JobQueue.users`."""
        return self._current().users[self._places]


#: Gives each of some waiting jobs a score; the lowest goes first, equal ones go in submission order.
Score = Callable[[Waiting], Floats]


class JobQueue(kinds.Live):
    """Waiting jobs, in submission order or in the one that the policy has chosen.

    Methods with an underscore are the ledger's. A job that leaves in the middle leaves a gap; gaps are closed
    before they are more than the jobs. Where many jobs wait, or where they wait in an order, what searches
    and scores are about also stands in numpy columns, so that ten thousand waiting jobs are compared in some
    microseconds instead of one by one.
    """

    __slots__ = (
        "_arrivals",
        "_columns",
        "_epoch",
        "_estimates",
        "_first",
        "_jobs",
        "_most",
        "_nb_arrived",
        "_nb_settled",
        "_place",
        "_score",
        "_sizes",
        "_users",
    )

    def __init__(self) -> None:
        self._users: dict[str | None, int] = {}
        self._epoch = 0
        """How often hosts may have become free, or turns of the policy were over."""
        self._nb_arrived = 0
        """How many jobs have joined so far."""
        self._nb_settled = 0
        """How many of them are not new any more."""
        self._score: Score | None = None
        self._place: dict[str, int] = {}
        self._jobs: list[Job | None] = []
        self._sizes: list[int] = []
        """Of the jobs; beyond all hosts where there is a gap."""
        self._estimates: list[float] = []
        self._arrivals: list[int] = []
        """How many jobs had joined with each."""
        self._first = 0
        self._most = 64
        """So many places are used before gaps are closed."""
        self._columns: Columns | None = None

    @property
    def users(self) -> Mapping[str | None, int]:
        """Whose jobs have waited here, numbered; known from when :attr:`Waiting.user` is first asked for."""
        return MappingProxyType(self._users)

    @property
    def nb_joined(self) -> int:
        """How many jobs have joined so far, those included that have left."""
        return self._nb_arrived

    @property
    def head(self) -> Job:
        """The job that is first in line."""
        if not self._place:
            raise IndexError("no job waits")
        place = self._first
        if self._score is not None:
            columns = self._as_columns()
            places = columns.places()
            place = int(places[self._ranked(kinds.lowest, self._score, columns, places)])
        job = self._jobs[place]
        assert job is not None
        return job

    def first(self, count: int) -> Waiting:
        """Those that wait longest, so many or all if they are fewer, as columns of numbers."""
        columns = self._as_columns()
        return Waiting(self, columns, columns.places()[: max(kinds.count(count), 0)])

    def estimate(self, job: Job) -> float:
        """How long a waiting job is expected to run."""
        kinds.check_job(job)
        return self._estimates[self._place[job.id]]

    def __iter__(self) -> Iterator[Job]:
        """The jobs in order; those that leave before their turn are passed over."""
        jobs: list[Job | None] = self._jobs[self._first :]
        if self._score is not None and jobs:
            columns = self._as_columns()
            places = columns.places()
            order = self._ranked(kinds.ranking, self._score, columns, places)
            jobs = [self._jobs[place] for place in places[order].tolist()]
        return (job for job in jobs if job is not None and job.id in self._place)

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, job: Job) -> bool:
        kinds.check_job(job)
        return job.id in self._place

    def get(self, job_id: str) -> Job | None:
        """The waiting job of this name, if there is one."""
        kinds.check_name(job_id)
        place = self._place.get(job_id)
        return None if place is None else self._jobs[place]

    def _as_columns(self) -> Columns:
        if self._columns is None:
            from batsched_py.ledger.columns import Columns

            self._columns = Columns(self._jobs, self._estimates, self._users)
        return self._columns

    @property
    def _state(self) -> tuple[int, int]:
        """Another one after each job that joins or leaves."""
        return self._nb_arrived, len(self._place)

    def _ranked(self, rank: Callable[[Any, int], T], score: Score, columns: Columns, places: Integers) -> T:
        """The jobs in these places by their scores; whoever gives scores only looks at the jobs."""
        waiting = Waiting(self, columns, places)
        scores = score(waiting)
        waiting._current()
        return rank(scores, len(places))

    def _behind(self, arrival: int) -> list[tuple[int, Job]]:
        """The waiting jobs that have joined after so many, in submission order."""
        first = max(bisect_right(self._arrivals, arrival), self._first)
        found = zip(self._arrivals[first:], self._jobs[first:], strict=True)
        return [(number, job) for number, job in found if job is not None]

    # --- searches --------------------------------------------------------------------------------

    def _search(
        self,
        free: FreeHosts,
        behind: int,
        condition: Condition | None,
        score: Score | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        """The jobs behind an arrival that fit, meet a condition and do not delay a reservation.

        Each is looked at again when its turn has come. They come in the order of their scores, else in the
        queue's. When hosts may have become free, they have to be asked for again.
        """
        jobs, first = self._jobs, self._first
        if behind:
            first = max(first, bisect_right(self._arrivals, behind))
        score = score or self._score
        if score is None and len(jobs) - first < FEW:
            sizes, widest = self._sizes, free.count
            found = [place for place in range(first, len(jobs)) if sizes[place] <= widest]
            if not found:
                return iter(())
            lists = (jobs, sizes, self._estimates)
            return self._search_places(self._epoch, found, lists, free, condition, beside)
        columns = self._as_columns()
        places = columns.not_wider(first, free.count)
        if score is not None:
            places = places[self._ranked(kinds.ranking, score, columns, places)]
        return self._search_columns(self._epoch, columns, places, jobs, free, condition, beside)

    def _check_epoch(self, epoch: int) -> None:
        if self._epoch != epoch:
            raise RuntimeError("hosts may have become free since the jobs that fit were asked for; ask again")

    def _search_places(
        self,
        epoch: int,
        places: list[int],
        lists: tuple[list[Job | None], list[int], list[float]],
        free: FreeHosts,
        condition: Condition | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        jobs, sizes, estimates = lists
        self._check_epoch(epoch)
        for place in places:
            size, estimate, job = sizes[place], estimates[place], jobs[place]
            if (
                size <= free.count
                and job is not None
                and job.id in self._place
                and (beside is None or beside._allows(size, estimate))
                and (condition is None or self._meets(condition, size, estimate, job))
            ):
                yield job
                self._check_epoch(epoch)

    def _meets(self, condition: Condition, size: int, estimate: float, job: Job) -> bool:
        """Whether a job meets a condition, and still waits when that is known."""
        return bool(condition(size, estimate)) and job.id in self._place

    def _search_columns(
        self,
        epoch: int,
        columns: Columns,
        found: Integers,
        jobs: list[Job | None],
        free: FreeHosts,
        condition: Condition | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        self._check_epoch(epoch)
        sizes, estimates = columns.sizes[found], columns.estimates[found]
        start = 0
        while start < len(found):
            meets = sizes[start:] <= free.count
            if beside is not None:
                meets &= beside._allows_each(sizes[start:], estimates[start:])
            next_one = int(meets.argmax())
            if not meets[next_one]:
                return
            place = start + next_one
            start = place + 1
            job = jobs[found[place]]
            if (
                job is not None
                and job.id in self._place
                and (
                    condition is None
                    or self._meets(condition, int(sizes[place]), float(estimates[place]), job)
                )
            ):
                yield job
                self._check_epoch(epoch)

    # --- changes ---------------------------------------------------------------------------------

    def _order_by(self, score: Score | None) -> None:
        """Keep the jobs in the order of their scores; without them, in submission order."""
        self._score = score

    def _settle(self) -> None:
        """The jobs that are here are not new any more."""
        self._nb_settled = self._nb_arrived
        self._epoch += 1

    def _append(self, job: Job, estimate: float) -> None:
        """A job joins; it is expected to run for so long."""
        if len(self._jobs) == self._most:
            self._close_gaps()
        self._place[job.id] = len(self._jobs)
        self._jobs.append(job)
        self._sizes.append(job.size)
        self._estimates.append(estimate)
        self._nb_arrived = arrival = self._nb_arrived + 1
        self._arrivals.append(arrival)
        if self._columns is not None:
            self._columns.append(job, estimate)

    def _discard(self, job_id: str) -> float:
        """A job leaves; how long it was expected to run."""
        jobs, place = self._jobs, self._place.pop(job_id)
        estimate, end = self._estimates[place], len(jobs)
        jobs[place], self._sizes[place] = None, _GONE
        if self._columns is not None:
            self._columns.remove(place)
        if place == self._first:
            place += 1
            while place < end and jobs[place] is None:
                place += 1
            self._first = place
        elif place + 1 == end:
            while jobs[place] is None:
                place -= 1
            self._shorten(place + 1)
        elif end - self._first > 2 * len(self._place) + GAPS:
            self._close_gaps()
        return estimate

    def _expect(self, job: Job, estimate: float) -> None:
        """Change how long a waiting job is expected to run."""
        place = self._place[job.id]
        self._estimates[place] = estimate
        if self._columns is not None:
            self._columns.estimates[place] = estimate

    def _shorten(self, end: int) -> None:
        self._jobs = self._jobs[:end]
        self._sizes = self._sizes[:end]
        self._estimates = self._estimates[:end]
        del self._arrivals[end:]
        if self._columns is not None:
            self._columns.shorten(end)

    def _close_gaps(self) -> None:
        """Move the jobs together, and make room for as many more."""
        places = [place for place, job in enumerate(self._jobs) if job is not None]
        self._jobs = [self._jobs[place] for place in places]
        self._sizes = [self._sizes[place] for place in places]
        self._estimates = [self._estimates[place] for place in places]
        self._arrivals = [self._arrivals[place] for place in places]
        self._place = {job.id: place for place, job in enumerate(self._jobs) if job is not None}
        self._first = 0
        self._columns = None
        while len(places) > self._most // 2:
            self._most *= 2
