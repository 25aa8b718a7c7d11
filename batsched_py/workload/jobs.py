"""Jobs as a sequence that need not hold them: made when they are asked for, known by their columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, overload

from batsched_py.core import fastest
from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from batsched_py.workload.columns import Numbers

    Places = NDArray[np.signedinteger]
else:
    Places = Any

#: So many jobs are made at a time by whoever goes through all of them.
BATCH = 1024


class Jobs(Sequence[Job]):
    """The jobs of a workload, in whatever order; their submission times and users are known without them."""

    @property
    @abstractmethod
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""

    @abstractmethod
    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""

    @abstractmethod
    def take(self, places: Places) -> list[Job]:
        """The jobs in these places."""

    def pick(self, places: list[int]) -> list[Job]:
        """The jobs in these few places."""
        return [self[place] for place in places]

    @abstractmethod
    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""

    def by_time(self) -> Places | None:
        """The places in the order of submission, those of one instant in order; None if that is their own."""
        import numpy as np

        times = self.submission_times
        return np.argsort(times, kind="stable") if (times[1:] < times[:-1]).any() else None

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids."""
        import numpy as np

        order = self.by_time()
        times = self.submission_times if order is None else self.submission_times[order]
        start = 0
        while start < len(times):
            last = times[min(start + BATCH, len(times)) - 1]
            stop = int(np.searchsorted(times, last, side="right"))
            batch = self.take(np.arange(start, stop) if order is None else order[start:stop])
            batch.sort(key=attrgetter("id"))
            batch.sort(key=attrgetter("submission_time"))
            yield from batch
            start = stop


class ListedJobs(Jobs):
    """Jobs that are there already."""

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

    def take(self, places: Places) -> list[Job]:
        """The jobs in these places."""
        return self.pick(places.tolist())

    def pick(self, places: list[int]) -> list[Job]:
        """The jobs in these few places."""
        jobs = self._jobs
        return [jobs[place] for place in places]

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids."""
        jobs = sorted(self._jobs, key=attrgetter("id"))
        jobs.sort(key=attrgetter("submission_time"))
        return iter(jobs)

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        return self._by_id.get(job_id)

    @cached_property
    def _by_id(self) -> dict[str, Job]:
        return {job.id: job for job in self._jobs}


def as_jobs(jobs: Sequence[Job]) -> Jobs:
    """The jobs with what is known of them without looking at each."""
    return jobs if isinstance(jobs, Jobs) else fastest(ListedJobs)(jobs)
