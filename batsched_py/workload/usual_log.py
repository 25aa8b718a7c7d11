"""A log in the Standard Workload Format in which nothing is unusual, read without numpy."""

from __future__ import annotations

import logging
from pathlib import Path

from batsched_py.core import fastest
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.workload.lines import read_lines
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.swf_jobs import read_jobs
from batsched_py.workload.swf_text import LOG_SPEED, check_factor, header_of, machine_size

#: Jobs of a log with more bytes are made as they are submitted, so that memory stays flat.
LARGE = 1 << 26

_log = logging.getLogger(__name__)


def read_log(path: Path, name: str, walltime_factor: float, walltime: WalltimeRule) -> Workload | None:
    """The workload of an SWF log, if it is not large and there is nothing to report about its lines."""
    check_factor(walltime_factor)
    text = _text(path)
    factor = walltime_factor if walltime == "max" else 1.0
    found = None if text is None else fastest(read_jobs)(text, name, factor, walltime == "requested")
    if found is None:
        return None
    jobs, run_times, finishes, comments, nb_unsized, nb_all = found
    if nb_unsized:
        _log.warning("%s: left out for want of processors: %d of %d jobs", path, nb_unsized, nb_all)
    return Workload(
        name=name,
        jobs=jobs,
        profiles={profile: Homogeneous(run_time * LOG_SPEED) for profile, run_time in run_times.items()},
        nb_hosts=machine_size(header_of(comments)),
        path=str(path),
        finishes=finishes,
    )


def _text(path: Path) -> bytes | None:
    """The whole text, unless it is so large that its jobs had better be made one by one."""
    pieces, size = [], 0
    for piece in read_lines(path):
        size += len(piece)
        if size > LARGE:
            return None
        pieces.append(piece)
    return b"".join(pieces)
