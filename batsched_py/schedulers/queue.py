"""The waiting jobs, in submission order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from batsched_py.protocol.jobs import Job

#: A condition on size and walltime, true or false for one job, or for whole columns of them at once.
Condition = Callable[[Any, Any], Any]

_SHORT = 24
_GONE = np.iinfo(np.int64).max


class JobQueue:
    """Waiting jobs in submission order.

    Sizes and walltimes are also kept as numpy columns, so that :meth:`where` can look at ten thousand
    waiting jobs in some microseconds instead of walking them one by one.
    """

    def __init__(self) -> None:
        self._jobs: list[Job | None] = []
        self._place: dict[str, int] = {}
        self._first = 0
        self._sizes = np.empty(64, np.int64)
        self._walltimes = np.empty(64, np.float64)

    def append(self, job: Job) -> None:
        """Let a job join at the end."""
        place = len(self._jobs)
        if place == len(self._sizes):
            self._make_room()
            place = len(self._jobs)
        self._jobs.append(job)
        self._place[job.id] = place
        self._sizes[place] = job.size
        self._walltimes[place] = job.walltime

    def discard(self, job: Job) -> None:
        """Let a job leave, wherever it stands, if it is there."""
        place = self._place.pop(job.id, None)
        if place is None:
            return
        self._jobs[place] = None
        self._sizes[place] = _GONE
        if place == self._first:
            while place < len(self._jobs) and self._jobs[place] is None:
                place += 1
            self._first = place

    @property
    def head(self) -> Job:
        """The job that waits first in line."""
        job = self._jobs[self._first]
        assert job is not None
        return job

    def where(self, condition: Condition) -> list[Job]:
        """The jobs whose size and walltime meet a condition, in order.

        The condition is a plain expression such as ``lambda size, walltime: (size <= 4) & (walltime < 60)``;
        it is given numbers or numpy columns, whichever is quicker.
        """
        if len(self._place) < _SHORT:
            waiting = self._jobs[self._first :]
            return [job for job in waiting if job is not None and condition(job.size, job.walltime)]
        window = slice(self._first, len(self._jobs))
        sizes = self._sizes[window]
        found = np.flatnonzero(condition(sizes, self._walltimes[window]) & (sizes != _GONE))
        jobs, first = self._jobs, self._first
        return [jobs[first + place] for place in found.tolist()]  # type: ignore[misc]

    def _make_room(self) -> None:
        """Close the gaps that departed jobs left, and double the columns while they are mostly full."""
        jobs = list(self)
        capacity = len(self._sizes)
        while len(jobs) > capacity // 2:
            capacity *= 2
        self._jobs = list(jobs)
        self._place = {job.id: place for place, job in enumerate(jobs)}
        self._first = 0
        self._sizes = np.empty(capacity, np.int64)
        self._walltimes = np.empty(capacity, np.float64)
        self._sizes[: len(jobs)] = [job.size for job in jobs]
        self._walltimes[: len(jobs)] = [job.walltime for job in jobs]

    def __iter__(self) -> Iterator[Job]:
        jobs = self._jobs
        for place in range(self._first, len(jobs)):
            job = jobs[place]
            if job is not None:
                yield job

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, job: Job) -> bool:
        return job.id in self._place
