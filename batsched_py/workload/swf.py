"""Logs in the Standard Workload Format (SWF): 18 numbers a job, comments behind a ``;``.

A log is kept as columns, one numpy array a field, because everything that is asked of a whole log
(sessions, cleaning, statistics) is quick there. A simulation needs less: :func:`read_swf_workload` keeps
some thirty bytes a job, and :func:`swf_to_workload` does the same with a log that is in memory already.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.columns import BLOCK, Numbers, distinct, gather, narrow
from batsched_py.workload.logged_jobs import LoggedJobs, RecordedFinishes
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.swf_log import COLUMNS, WHOLE, SwfLog
from batsched_py.workload.swf_records import Records, choose
from batsched_py.workload.swf_text import EXTRA, LOG_SPEED, check_factor, machine_size, spelled

__all__ = [
    "COLUMNS",
    "LOG_SPEED",
    "SwfLog",
    "WalltimeRule",
    "read_swf",
    "read_swf_workload",
    "swf_log",
    "swf_to_workload",
    "write_swf",
]

_log = logging.getLogger(__name__)

#: So many records are written at a time.
_PIECE = 10_000


def swf_log(columns: Mapping[str, NDArray[Any]], **rest: Any) -> SwfLog:
    """A log of some columns of equal length, sorted by submission time; what is not given is unknown.

    ``rest`` are the other fields of :class:`SwfLog`. Jobs without numbers are counted from 1.
    """
    order = np.argsort(columns["submit"], kind="stable")
    unknown = np.full(len(order), -1)
    full: dict[str, Any] = {"job_number": np.arange(1, len(order) + 1)}
    for name in COLUMNS:
        if name in columns or name not in full:
            full[name] = columns.get(name, unknown)[order]
        full[name] = full[name].astype(np.int64 if name in WHOLE else np.float64)
    more = {name: column[order] for name, column in rest.pop("more", {}).items()}
    return SwfLog(**full, more=more, **rest)


def read_swf(path: str | Path) -> SwfLog:
    """Read a log, plain or compressed with gzip.

    Records that cannot be used are left out, and one warning says how many and why: bad lines (another
    number of fields than 18, a field that is no finite number, a job number that came before, a negative
    submission or run time), and jobs whose run time is unknown (-1), as no simulation can run them.
    Records are sorted by submission time; those of equal time keep their order.
    """
    records = Records(path)
    columns = records.settle(gather(records))
    for name in COLUMNS:
        columns[name] = columns[name].astype(np.int64 if name in WHOLE else np.float64)
    full: dict[str, Any] = dict(columns)
    return SwfLog(**full, header=records.header, path=str(path), left_out=records.left_out)


def write_swf(path: str | Path, log: SwfLog) -> None:
    """Write a log so that :func:`read_swf` gives it back; compressed when the name ends in ``.gz``."""
    path = Path(path)
    with path.open("wb") as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else nullcontext(raw)
        with packed as file:
            file.writelines(line.encode() for line in _lines(log))


def _lines(log: SwfLog) -> Iterator[str]:
    """The lines of a log's file; records come in pieces, so that a large log is never in memory as text."""
    for key, value in log.header.items():
        for line in value.split("\n"):
            yield f"; {key}: {line}\n" if key else f"; {line}\n"
    for start in range(0, len(log), _PIECE):
        piece = slice(start, start + _PIECE)
        columns = [_numbers(getattr(log, name)[piece]) for name in COLUMNS]
        yield "\n".join(map(" ".join, zip(*columns, strict=True))) + "\n"


def _numbers(values: NDArray[Any]) -> Iterable[str]:
    """Each value as text; those of a column that is whole, as most are, without looking at each."""
    whole = values.astype(np.int64)
    return map(str, whole.tolist()) if np.array_equal(whole, values) else map(spelled, values.tolist())


def swf_to_workload(
    log: SwfLog,
    name: str = "w0",
    walltime_factor: float = 2.0,
    walltime: WalltimeRule = "at-least-run-time",
) -> Workload:
    """The jobs of a log, ready to be simulated.

    A job asks for the processors it was allocated, else for those it requested; one with neither is left
    out. Times are shifted so that the first submission is 0. The walltime is the requested time, but never
    less than the run time, so that nothing is killed; with the rule ``"max"`` the larger one of the
    requested time and ``walltime_factor`` times the run time; with ``"requested"`` the requested time
    alone; a job for which this gives nothing has no walltime. A wait that was not recorded counts as 0 in
    the recorded finishes. Users and what else the log says about a job stand in its ``extra``, which jobs
    that agree in it share.
    """
    pieces = (
        {column: getattr(log, column)[start : start + BLOCK] for column in COLUMNS}
        for start in range(0, len(log), BLOCK)
    )
    jobs = _JobColumns(walltime_factor, walltime)
    return jobs.workload(gather(jobs.of(pieces)), name, log.header, log.path)


def read_swf_workload(
    path: str | Path,
    name: str = "w0",
    walltime_factor: float = 2.0,
    walltime: WalltimeRule = "at-least-run-time",
) -> Workload:
    """The jobs of a log, as :func:`swf_to_workload` makes them of what :func:`read_swf` reads.

    Nothing else of the log is ever in memory.
    """
    records = Records(path)
    jobs = _JobColumns(walltime_factor, walltime)
    columns = records.settle(gather(jobs.of(records)))
    return jobs.workload(columns, name, records.header, str(path))


class _JobColumns:
    """Makes what a simulation needs of a log's records, piece by piece."""

    def __init__(self, walltime_factor: float, walltime: WalltimeRule) -> None:
        check_factor(walltime_factor)
        self._factor = walltime_factor
        self._walltime = walltime
        self._extras: dict[tuple[int, ...], int] = {}

    def of(self, pieces: Iterable[Mapping[str, Numbers]]) -> Iterable[dict[str, Numbers]]:
        """The columns of jobs, and those that tell whether a record can be used."""
        for piece in pieces:
            columns = {
                name: piece[name] for name in ("job_number", "submit", "run_time", "skipped") if name in piece
            }
            columns["wait"] = np.maximum(piece["wait"], 0)
            allocated = piece["allocated_processors"]
            columns["size"] = np.where(allocated > 0, allocated, piece["requested_processors"])
            columns["walltime"] = self._walltimes(piece)
            columns["extra"] = self._places_of_extras(piece)
            yield columns

    def _walltimes(self, piece: Mapping[str, Numbers]) -> Numbers:
        requested = np.maximum(piece["requested_time"], 0)
        match self._walltime:
            case "requested":
                return requested
            case "max":
                return np.maximum(requested, self._factor * piece["run_time"])
            case "at-least-run-time":
                return np.maximum(requested, piece["run_time"])

    def _places_of_extras(self, piece: Mapping[str, Numbers]) -> Numbers:
        """For each job who submitted what to where, as the place of the combination among all."""
        places = self._extras
        combinations = zip(*(piece[name].astype(np.int64).tolist() for name in EXTRA), strict=True)
        return np.array([places.setdefault(values, len(places)) for values in combinations], dtype=np.int64)

    def workload(
        self, columns: dict[str, Numbers], name: str, header: Mapping[str, str], path: str
    ) -> Workload:
        """The jobs of all pieces."""
        sized = columns["size"] > 0 if columns else np.zeros(0, dtype=bool)
        if not sized.all():
            _log.warning(
                "%s: left out for want of processors: %d of %d jobs", path, (~sized).sum(), len(sized)
            )
            choose(columns, sized)
        if not sized.any():
            raise InputError(f"{path}: no job has a positive number of processors")
        columns["submit"] = _from_zero(columns["submit"])
        finishes = RecordedFinishes(columns["submit"], columns.pop("wait"), columns["run_time"])
        names = {run_time: f"run_{spelled(run_time)}" for run_time in distinct(columns["run_time"]).tolist()}
        profiles: dict[str, Profile] = {
            profile: Homogeneous(run_time * LOG_SPEED) for run_time, profile in names.items()
        }
        extras = narrow(np.array(list(self._extras), dtype=np.int64))
        return Workload(
            name=name,
            jobs=LoggedJobs(name, columns, extras, names),
            profiles=profiles,
            nb_hosts=machine_size(header),
            path=path,
            finishes=finishes,
        )


def _from_zero(times: Numbers) -> Numbers:
    """The times since the first of them, in the memory of the column itself where they fit."""
    first = times.min()
    if first < 0:
        times = times.astype(np.float64)
    times -= first
    return times
