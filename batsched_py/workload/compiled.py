"""The jobs of a log by the compiled core, without numpy."""

from __future__ import annotations

import logging
from pathlib import Path

from batsched_py._native import read_jobs
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.workload.lines import read_lines
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.swf_text import LOG_SPEED, Comments, check_factor, machine_size

_log = logging.getLogger(__name__)

#: So many mebibytes a log may have whose jobs are all made at once, some hundred thousand of them.
MOST_PIECES = 64


def read_log(path: Path, name: str, walltime_factor: float, walltime: WalltimeRule) -> Workload | None:
    """The workload of an SWF log, or nothing if there is anything to report about one of its lines.

    Its jobs are made at once, so nothing too of a log that is too large for that.
    """
    check_factor(walltime_factor)
    pieces = []
    for piece in read_lines(path):
        pieces.append(piece)
        if len(pieces) > MOST_PIECES:
            return None
    found = read_jobs(b"".join(pieces), name, walltime_factor, walltime == "requested")
    if found is None:
        return None
    jobs, run_times, finishes, comments, nb_unsized, nb_all = found
    if nb_unsized:
        _log.warning("%s: left out for want of processors: %d of %d jobs", path, nb_unsized, nb_all)
    header = Comments(path)
    header.read(b"\n".join(comments))
    return Workload(
        name=name,
        jobs=jobs,
        profiles={profile: Homogeneous(run_time * LOG_SPEED) for profile, run_time in run_times.items()},
        nb_hosts=machine_size(header.by_key()),
        path=str(path),
        finishes=finishes,
    )
