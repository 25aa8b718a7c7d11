"""A log in the Standard Workload Format in which nothing is unusual, read without numpy."""

from __future__ import annotations

import logging
from array import array
from pathlib import Path
from typing import Any

from batsched_py import native
from batsched_py.workload.lines import read_lines
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.native_jobs import NativeJobs, RecordedFinishes
from batsched_py.workload.profiles import RunTimeProfiles
from batsched_py.workload.swf_jobs import read_jobs
from batsched_py.workload.swf_text import LOG_SPEED, check_factor, header_of, machine_size

#: Jobs of a log with more bytes are made as they are submitted, so that memory stays flat.
LARGE = 1 << 26

#: Bytes that are worked on at a time, which the processor's cache holds with what is made of them.
SMALL = 1 << 16

_log = logging.getLogger(__name__)


def read_log(path: Path, name: str, walltime_factor: float, walltime: WalltimeRule) -> Workload | None:
    """The workload of an SWF log, if it is not large and there is nothing to report about its lines."""
    check_factor(walltime_factor)
    factor = walltime_factor if walltime == "max" else 1.0
    arguments = (read_lines(path, SMALL), LARGE, name, factor, walltime == "requested", LOG_SPEED)
    if native.library is not None:
        return _read_natively(path, name, native.library.read_swf(*arguments))
    found = read_jobs(*arguments)
    if found is None:
        return None
    jobs, profiles, finishes, comments, nb_unsized, nb_all = found
    if nb_unsized:
        _log.warning("%s: left out for want of processors: %d of %d jobs", path, nb_unsized, nb_all)
    return Workload(
        name=name,
        jobs=jobs,
        profiles=profiles,
        nb_hosts=machine_size(header_of(comments)),
        path=str(path),
        finishes=array("d", finishes),
    )


def _read_natively(path: Path, name: str, found: Any) -> Workload | None:
    if found is None:
        return None
    log, comments, nb_unsized, nb_all = found
    if nb_unsized:
        _log.warning("%s: left out for want of processors: %d of %d jobs", path, nb_unsized, nb_all)
    return Workload(
        name=name,
        jobs=NativeJobs(log),
        profiles=RunTimeProfiles(lambda: array("d", bytes(log.run_times()))),
        nb_hosts=machine_size(header_of(comments)),
        path=str(path),
        finishes=RecordedFinishes(log),
    )
