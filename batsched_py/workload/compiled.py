"""Listed jobs by the compiled core, without numpy."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from batsched_py._native import by_user, in_submission_order
from batsched_py.protocol.jobs import Job
from batsched_py.workload import jobs
from batsched_py.workload.jobs import Places


class ListedJobs(jobs.ListedJobs):
    """Jobs that are there already."""

    def by_user(self) -> dict[str | None, Places]:
        """The places of each user's jobs, in the order of submission; those of nobody are under None."""
        return {user: array("i", places) for user, places in by_user(self._jobs).items()}

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids."""
        return iter(in_submission_order(self._jobs))
