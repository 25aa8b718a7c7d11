"""The jobs of a log as columns: a log may have too many jobs to keep an object for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import inf
from typing import Any, overload

import numpy as np

from batsched_py.protocol.jobs import Job
from batsched_py.workload.columns import BLOCK, Numbers, narrow
from batsched_py.workload.model import Jobs, Places
from batsched_py.workload.swf.conventions import extra_fields

#: So many extras are kept; jobs with the same values share one.
_SHARED_EXTRAS = 4096


class LoggedJobs(Jobs):
    """Jobs over the columns ``job_number``, ``submit``, ``size``, ``walltime``, ``run_time`` and ``extra``.

    A walltime of 0 means none. The column ``extra`` has, for each job, a row of ``extras``: a combination of
    the values that jobs have in their ``extra``.
    """

    def __init__(
        self,
        workload: str,
        columns: Mapping[str, Numbers],
        extras: Numbers,
        profiles: Mapping[float, str],
    ) -> None:
        self._workload = workload
        self._columns = columns
        self._extras = extras
        self._extra = lru_cache(_SHARED_EXTRAS)(self._make_extra)
        self._profiles = profiles
        """The name of its profile for each run time."""
        self._numbers = columns["job_number"]
        self._submit = columns["submit"]
        self._sizes = columns["size"]
        self._walltimes = columns["walltime"]
        self._run_times = columns["run_time"]
        self._extra_rows = columns["extra"]

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> LoggedJobs: ...
    def __getitem__(self, place: int | slice) -> Job | LoggedJobs:
        if isinstance(place, slice):
            columns = {name: column[place] for name, column in self._columns.items()}
            return LoggedJobs(self._workload, columns, self._extras, self._profiles)
        return Job(
            f"{self._workload}!{self._numbers.item(place)}",
            float(self._submit.item(place)),
            self._sizes.item(place),
            float(self._walltimes.item(place)) or inf,
            self._profiles[self._run_times.item(place)],
            self._extra(self._extra_rows.item(place)),
        )

    def __iter__(self) -> Iterator[Job]:
        for start in range(0, len(self), BLOCK):
            yield from self.take(np.arange(start, min(start + BLOCK, len(self))))

    @property
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""
        return self._submit

    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""
        places: dict[str | None, int] = {}
        names = (None if user == -1 else str(user) for user in self._extras[:, 0].tolist())
        users = [places.setdefault(name, len(places)) for name in names]
        return list(places), narrow(np.array(users))[self._extra_rows]

    def take(self, places: Places) -> list[Job]:
        """The jobs in these places."""
        workload, profiles, extra = self._workload, self._profiles, self._extra
        return [
            Job(f"{workload}!{number}", submit, size, walltime or inf, profiles[run_time], extra(row))
            for number, submit, size, walltime, run_time, row in zip(
                self._numbers[places].tolist(),
                self._submit[places].astype(np.float64).tolist(),
                self._sizes[places].tolist(),
                self._walltimes[places].astype(np.float64).tolist(),
                self._run_times[places].tolist(),
                self._extra_rows[places].tolist(),
                strict=True,
            )
        ]

    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""
        return int(np.count_nonzero(self._sizes > hosts))

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        workload, _, name = job_id.partition("!")
        if workload != self._workload or not name.lstrip("-").isdecimal() or len(name) > 18:
            return None
        number = int(name)
        rank = int(np.searchsorted(self._numbers, number, sorter=self._by_number))
        if rank == len(self):
            return None
        job = self[int(self._by_number[rank])]
        return job if job.id == job_id else None

    def _make_extra(self, row: int) -> dict[str, Any]:
        return extra_fields(self._extras[row].tolist())

    @cached_property
    def _by_number(self) -> Places:
        return np.argsort(self._numbers, kind="stable").astype(np.int32)


class RecordedFinishes(Sequence[float]):
    """When the jobs of a log had finished, computed when it is asked for."""

    def __init__(self, submit: Numbers, wait: Numbers, run_time: Numbers) -> None:
        self._submit = submit
        self._wait = wait
        self._run_time = run_time

    def __len__(self) -> int:
        return len(self._submit)

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> list[float]: ...
    def __getitem__(self, place: int | slice) -> float | list[float]:
        finishes: float | list[float] = self.take(place).tolist()
        return finishes

    def take(self, places: Places | slice | int) -> Numbers:
        """When the jobs in these places had finished."""
        return self._submit[places].astype(np.float64) + self._wait[places] + self._run_time[places]
