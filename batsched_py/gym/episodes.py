"""What is simulated in an episode: a window of a log, or a generated workload."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from batsched_py.api.log import FileName, Log
from batsched_py.errors import InputError
from batsched_py.protocol.profiles import Profile
from batsched_py.workload.jobs import as_jobs
from batsched_py.workload.model import Workload
from batsched_py.workload.models import Model
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf.workload import swf_to_workload

#: Gives the workload of the next episode, by the random numbers of the environment.
Episodes = Callable[[np.random.Generator], Workload]

NAME = "w0"


class Windows:
    """So many jobs of a log that follow each other, from any of them on with the same probability."""

    def __init__(self, log: Log | FileName | Workload, jobs: int = 256) -> None:
        self._workload = workload_of(log)
        self._jobs = as_jobs(self._workload.jobs)
        self._length = min(jobs, len(self._jobs))
        if self._length < 1:
            raise InputError(f"windows of {jobs} jobs of a log of {len(self._jobs)} jobs hold none")
        self._order = self._jobs.by_time()

    def __len__(self) -> int:
        """How many windows there are."""
        return len(self._jobs) - self._length + 1

    def __call__(self, random: np.random.Generator) -> Workload:
        """Any of the windows."""
        return self[int(random.integers(len(self)))]

    def __getitem__(self, first: int) -> Workload:
        """The window that begins with this job."""
        if not 0 <= first < len(self):
            raise IndexError(first)
        workload, places = self._workload, np.arange(first, first + self._length)
        if self._order is not None:
            places = self._order[places]
        jobs, finishes = self._jobs.take(places), workload.finishes
        return replace(
            workload,
            jobs=jobs,
            profiles=_used(workload.profiles, {job.profile for job in jobs}),
            finishes=None if finishes is None else [float(finishes[place]) for place in places.tolist()],
        )


class Generated:
    """So many jobs that a model generates, others in each episode."""

    def __init__(self, model: Model, jobs: int = 256) -> None:
        self._model = model
        self._jobs = jobs

    def __call__(self, random: np.random.Generator) -> Workload:
        """A new workload."""
        return swf_to_workload(self._model.generate(self._jobs, int(random.integers(2**31))), NAME)


def workload_of(log: Log | FileName | Workload) -> Workload:
    """The jobs of a log, or those in a file."""
    if isinstance(log, Workload):
        return log
    return swf_to_workload(log.columns, NAME) if isinstance(log, Log) else read_workload(os.fspath(log), NAME)


def _used(profiles: Mapping[str, Profile], names: Iterable[str]) -> dict[str, Any]:
    """The profiles of these names, and of their parts."""
    used: dict[str, Profile] = {}
    found = list(names)
    while found:
        name = found.pop()
        if name not in used:
            used[name] = profiles[name]
            found += profiles[name].parts
    return used
