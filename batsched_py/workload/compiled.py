"""Listed jobs and those of a log by the compiled core, without numpy."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterator
from pathlib import Path

from batsched_py._native import by_user, in_submission_order, read_jobs
from batsched_py.protocol.jobs import Job
from batsched_py.workload import jobs
from batsched_py.workload.jobs import Places
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.swf_text import LOG_SPEED, check_factor, header_of, machine_size

#: Jobs of a log with more bytes are made as they are submitted, so that memory stays flat.
LARGE = 1 << 26

_log = logging.getLogger(__name__)


class ListedJobs(jobs.ListedJobs):
    """Jobs that are there already."""

    def by_user(self) -> dict[str | None, Places]:
        """The places of each user's jobs, in the order of submission; those of nobody are under None."""
        return {user: array("i", places) for user, places in by_user(self._jobs).items()}

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids."""
        return iter(in_submission_order(self._jobs))


def read_log(path: Path, name: str, walltime_factor: float, walltime: WalltimeRule) -> Workload | None:
    """The workload of an SWF log, if it is not large and there is nothing to report about its lines."""
    from batsched_py.workload.lines import read_lines

    check_factor(walltime_factor)
    factor = walltime_factor if walltime == "max" else 1.0
    found = read_jobs(read_lines(path), LARGE, name, factor, walltime == "requested", LOG_SPEED)
    if found is None:
        return None
    listed, profiles, finishes, comments, nb_unsized, nb_all = found
    if nb_unsized:
        _log.warning("%s: left out for want of processors: %d of %d jobs", path, nb_unsized, nb_all)
    return Workload(
        name=name,
        jobs=listed,
        profiles=profiles,
        nb_hosts=machine_size(header_of(comments)),
        path=str(path),
        finishes=array("d", finishes),
    )
