"""What a workload is, independent of the file it came from.

Its jobs are a sequence, which may make them only when they are asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, overload

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile

if TYPE_CHECKING:
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from batsched_py.workload.calendar import Calendar
    from batsched_py.workload.columns import Numbers

    Places = NDArray[np.signedinteger] | array[int]
else:
    Places = Any

#: A name with more digits is no number of a job.
_MOST_DIGITS = 18

#: How many jobs are made at a time when all of them are visited.
BATCH = 1024


class Jobs(Sequence[Job]):
    """The jobs of a workload, in any order; submission times and users are known without making the jobs."""

    tie: Callable[[Job], Any] = attrgetter("id")
    """What jobs of one instant are ordered by."""

    @property
    def has_usual_ties(self) -> bool:
        """Whether that is what Batsim orders them by."""
        return self.tie is Jobs.tie

    @property
    @abstractmethod
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""

    @abstractmethod
    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""

    def take(self, places: Places) -> list[Job]:
        """The jobs in these places."""
        return self.pick(places.tolist())

    def pick(self, places: list[int]) -> list[Job]:
        """The jobs in these few places."""
        return [self[place] for place in places]

    def part(self, places: Places) -> Sequence[Job]:
        """The jobs in these places, made when they are asked for."""
        return _Part(self, places)

    def submissions_of(self, places: Places) -> Numbers | array[float]:
        """When the jobs in these places are submitted."""
        return self.submission_times[places]

    def by_user(self) -> dict[str | None, Places]:
        """The places of each user's jobs, in the order of submission; jobs without a user are under None."""
        from batsched_py.workload.columns import group

        names, user_of = self.users()
        order = self.by_time()
        groups = group(user_of if order is None else user_of[order], len(names))
        return {
            name: places if order is None else order[places]
            for name, places in zip(names, groups, strict=True)
            if len(places)
        }

    @abstractmethod
    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""

    @abstractmethod
    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""

    def finder(self) -> Callable[[Sequence[str]], Iterator[Job | None]]:
        """What finds jobs by their identifiers, many at a time."""
        return lambda job_ids: map(self.find, job_ids)

    def by_time(self) -> NDArray[np.signedinteger] | None:
        """The places in the order of submission (equal times keep theirs); None if the jobs are in it."""
        import numpy as np

        times = self.submission_times
        return np.argsort(times, kind="stable") if (times[1:] < times[:-1]).any() else None

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids.

        Another order of those of one instant may be asked for (``tie``).
        """
        import numpy as np

        order = self.by_time()
        times = self.submission_times if order is None else self.submission_times[order]
        start = 0
        while start < len(times):
            last = times[min(start + BATCH, len(times)) - 1]
            stop = int(np.searchsorted(times, last, side="right"))
            batch = self.take(np.arange(start, stop) if order is None else order[start:stop])
            batch.sort(key=self.tie)
            batch.sort(key=attrgetter("submission_time"))
            yield from batch
            start = stop


class _Part(Sequence[Job]):
    """Some of the jobs. A log has one part for each user, so a part must not take much memory."""

    __slots__ = ("_jobs", "_places")

    def __init__(self, jobs: Jobs, places: Places) -> None:
        self._jobs = jobs
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> list[Job]: ...
    def __getitem__(self, place: int | slice) -> Job | list[Job]:
        if isinstance(place, slice):
            return self._jobs.pick(self._places[place].tolist())
        return self._jobs[int(self._places[place])]


class ListedJobs(Jobs):
    """Jobs that exist already."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Job]: ...
    def __getitem__(self, place: int | slice) -> Job | Sequence[Job]:
        return self._jobs[place]

    @cached_property
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""
        import numpy as np

        return np.array([job.submission_time for job in self._jobs], dtype=np.float64)

    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""
        import numpy as np

        places: dict[str | None, int] = {}
        users = [places.setdefault(job.user, len(places)) for job in self._jobs]
        return list(places), np.array(users, dtype=np.int32)

    def pick(self, places: list[int]) -> list[Job]:
        """The jobs in these few places."""
        return list(map(self._jobs.__getitem__, places))

    def part(self, places: Places) -> Sequence[Job]:
        """The jobs in these places."""
        return self.pick(places.tolist())

    def submissions_of(self, places: Places) -> array[float]:
        """When the jobs in these places are submitted."""
        return array("d", (self._jobs[place].submission_time for place in places))

    def by_user(self) -> dict[str | None, Places]:
        """The places of each user's jobs, in the order of submission; jobs without a user are under None."""
        jobs = self._jobs
        users: dict[str | None, array[int]] = {}
        for place in sorted(range(len(jobs)), key=lambda place: jobs[place].submission_time):
            users.setdefault(jobs[place].user, array("i")).append(place)
        return dict(users)

    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""
        return sum(job.size > hosts for job in self._jobs)

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs in the order of their submissions."""
        jobs = sorted(self._jobs, key=self.tie)
        jobs.sort(key=attrgetter("submission_time"))
        return iter(jobs)

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        return self._by_id.get(job_id)

    @cached_property
    def _by_id(self) -> dict[str, Job]:
        return {job.id: job for job in self._jobs}


def number_of(job: Job) -> tuple[int, str]:
    """What jobs are ordered by if their numbers count; names that are no numbers come last, by their letters.

    >>> from batsched_py.protocol.jobs import Job
    >>> sorted(["w0!10", "w0!x", "w0!9"], key=lambda id: number_of(Job(id, 0.0, 1, 1.0, "")))
    ['w0!9', 'w0!10', 'w0!x']
    """
    is_number = job.name.isdecimal() and len(job.name) <= _MOST_DIGITS
    return (int(job.name), "") if is_number else (10**_MOST_DIGITS, job.id)


def as_jobs(jobs: Sequence[Job]) -> Jobs:
    """The jobs as :class:`Jobs`, which answers questions about all of them at once."""
    return jobs if isinstance(jobs, Jobs) else ListedJobs(jobs)


#: How the walltimes of jobs are made of a log: as requested, but never less than the run time; the larger one
#: of the requested time and a multiple of the run time; as requested alone; as requested, and a job that
#: is late runs to its end all the same; or as the first, and jobs that requested nothing get round estimates.
WalltimeRule = Literal["at-least-run-time", "max", "requested", "estimate", "modelled"]

#: What the size of a job of a log is: what it was allocated, or what it requested; the other one where the
#: log does not say.
ProcessorsRule = Literal["allocated", "requested"]

#: In which order jobs of one instant are submitted: by the letters of their names, as Batsim does (10 before
#: 9), or by their numbers.
TiesRule = Literal["names", "numbers"]

#: What becomes of the jobs of a log that were cancelled while they waited: they are left out, or they are
#: submitted and withdrawn after the time for which they had waited.
CancelledRule = Literal["leave-out", "withdraw"]

#: Whether jobs of a log wait for their preceding jobs, as the format calls them, and for their think times.
PrecedingRule = Literal["ignore", "wait"]

#: Under this name the ``extra`` of such a job says for how many seconds it had waited.
CANCELLED_AFTER = "cancelled_after"


class Workload(Struct):
    """Jobs and what they do, under one name."""

    name: str
    """The part of each job's identifier before the ``!``."""
    jobs: Sequence[Job]
    """A list, or a sequence of jobs that are made when they are asked for."""
    profiles: Mapping[str, Profile]
    nb_hosts: int | None = None
    """Size of the machine it was made for, where that is known."""
    path: str = ""
    """The file it was read from."""
    finishes: Sequence[float] | NDArray[Any] | None = None
    """When each job had finished on the machine it was recorded on, where that is known."""
    has_cancelled: bool = False
    """Whether the ``extra`` of some jobs says that they were cancelled while they waited."""
    late_jobs_stay: bool = False
    """Whether a walltime is an estimate only, and a job that is late runs to its end."""
    nb_unrequested: int = 0
    """How many jobs of a log requested no time."""
    nb_raised: int = 0
    """How many requested less than the walltime that they have."""
    nb_sized_otherwise: int = 0
    """How many jobs of a log have the other size, requested or allocated, as the one asked for is unknown."""
    measured: tuple[int, int] | None = None
    """From which to before which job an agent's episode is measured; the others surround it."""
    nb_partitions: int = 0
    """How many partitions the machine of a log had, where its header tells."""
    nb_equal: int = 0
    """How many requested exactly their run time, as far as the reader looks at that."""
    calendar: Calendar | None = None
    """Which dates the times of its jobs are, where the log says when it began."""
    scaled: str = ""
    """The change that gave a log other times between arrivals than were recorded, if one did."""

    def date(self, time: float) -> datetime:
        """The date and the time of day at a time of the simulation, where the machine of the log stood."""
        if self.calendar is None:
            raise InputError(
                f"{self.path or self.name}: does not say when it began, as UnixStartTime in the header of a "
                "log would, so its times have no dates"
            )
        return self.calendar.date(time)

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {len(self.jobs):,} jobs>"
