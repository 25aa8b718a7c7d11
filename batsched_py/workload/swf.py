"""Logs in the Standard Workload Format (SWF): 18 numbers a job, comments behind a ``;``.

A log is kept as columns, one numpy array a field, because everything that is asked of a whole log
(sessions, cleaning, statistics) is quick there. :func:`swf_to_workload` makes jobs of its records.
"""

from __future__ import annotations

import gzip
import logging
import re
import zlib
from dataclasses import dataclass, field, fields, replace
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.table import read_table

_log = logging.getLogger(__name__)

#: Speed of a host of the machine that a log was recorded on, in flop/s. It is a convention: a job that ran
#: for t seconds is given t times this many operations on each of its hosts, and so runs for t seconds on a
#: host of this speed, and for t/2 on one that is twice as fast.
LOG_SPEED = 1e9

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST = 2.0**53
_SHOWN_BAD_LINES = 3
_COMMENT = re.compile(r";\s*(?:([A-Za-z]\w*):(?=\s|$))?\s*(.*)")


@dataclass(frozen=True, eq=False)
class SwfLog:
    """The records of a log in the order of their submissions, one array a field; -1 means unknown."""

    job_number: Integers
    submit: Floats
    """Seconds since the start of the log, as are all times here."""
    wait: Floats
    run_time: Floats
    allocated_processors: Integers
    average_cpu_time: Floats
    used_memory: Floats
    requested_processors: Integers
    requested_time: Floats
    requested_memory: Floats
    status: Integers
    user: Integers
    group: Integers
    executable: Integers
    queue: Integers
    partition: Integers
    preceding_job: Integers
    think_time: Floats
    header: dict[str, str] = field(default_factory=dict)
    """The comments ``; Key: value``, in order; a value has a line for each comment under its key."""
    path: str = ""

    def __len__(self) -> int:
        return len(self.job_number)

    @property
    def processors(self) -> Integers:
        """What each job ran on: the processors it was allocated, else those it requested."""
        return np.where(self.allocated_processors > 0, self.allocated_processors, self.requested_processors)

    @property
    def machine_size(self) -> int | None:
        """Processors of the recorded machine, as far as the header says."""
        for key in ("MaxProcs", "MaxNodes"):
            if number := re.match(r"\d{1,15}(?!\d)", self.header.get(key, "")):
                return int(number[0])
        return None

    def select(self, records: NDArray[Any]) -> SwfLog:
        """The log with these records only, given as numpy indexes an array: a mask or positions."""
        return replace(self, **{name: getattr(self, name)[records] for name in COLUMNS})


#: The 18 fields of a record, in the order of the format.
COLUMNS = tuple(column.name for column in fields(SwfLog)[:18])
_WHOLE = tuple(column.name for column in fields(SwfLog)[:18] if column.type == "Integers")


def read_swf(path: str | Path) -> SwfLog:
    """Read a log, plain or compressed with gzip.

    Records that cannot be used are left out, and one warning says how many and why: bad lines (another
    number of fields than 18, a field that is no finite number, a job number that came before, a negative
    submission or run time), and jobs whose run time is unknown (-1), as no simulation can run them.
    Records are sorted by submission time; those of equal time keep their order.
    """
    text = _read_bytes(Path(path))
    rows, lines, bad = read_table(text, columns=len(COLUMNS), comment=b";")
    total = len(rows) + len(bad)
    values = dict(zip(COLUMNS, rows.T, strict=True))
    usable = np.ones(len(rows), dtype=bool)
    for row, fault in _faults(values).items():
        usable[row] = False
        bad[int(lines[row])] = fault
    unknown = usable & (values["run_time"] == -1)
    kept = np.flatnonzero(usable & ~unknown)
    reasons = [_describe(bad)] if bad else []
    if unknown.any():
        reasons.append(f"{unknown.sum()} of unknown run time")
    if not len(kept):
        raise InputError(f"{path}: no usable record of an SWF log: {', '.join(reasons) or 'it has none'}")
    if reasons:
        _log.warning("%s: %d of %d records left out: %s", path, total - len(kept), total, ", ".join(reasons))
    kept = kept[np.argsort(values["submit"][kept], kind="stable")]
    columns = {
        name: values[name][kept].astype(np.int64 if name in _WHOLE else np.float64) for name in COLUMNS
    }
    return SwfLog(**columns, header=_read_header(text), path=str(path))


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _read_header(text: bytes) -> dict[str, str]:
    """The comments by their keys; a line without a key goes on with the one before it."""
    header: dict[str, list[str]] = {}
    key = ""
    for comment in re.findall(rb";.*", text):
        parts = _COMMENT.match(comment.decode(errors="replace").strip())
        assert parts is not None
        key = parts[1] or key
        if parts[1] or parts[2]:
            header.setdefault(key, []).append(parts[2])
    return {key: "\n".join(lines) for key, lines in header.items()}


def _faults(values: dict[str, NDArray[np.float64]]) -> dict[int, str]:
    """What is wrong with rows whose fields are all numbers."""
    found: dict[int, str] = {}

    def blame(wrong: NDArray[np.bool_], reason: str) -> None:
        for row in np.flatnonzero(wrong).tolist():
            found.setdefault(row, reason)

    for name, column in values.items():
        blame(np.abs(column) > _LARGEST, f"{name} is too large")
        if name in _WHOLE:
            blame(column != np.floor(column), f"{name} is not a whole number")
    blame(values["submit"] < 0, "submit is negative")
    blame((values["run_time"] < 0) & (values["run_time"] != -1), "run_time is negative")
    again = np.ones(len(values["job_number"]), dtype=bool)
    again[list(found)] = False
    good = np.flatnonzero(again)
    again[good[np.unique(values["job_number"][good], return_index=True)[1]]] = False
    blame(again, "job_number came before")
    return found


def _describe(bad: dict[int, str]) -> str:
    shown = [f"line {line}: {bad[line]}" for line in sorted(bad)[:_SHOWN_BAD_LINES]]
    if len(bad) > len(shown):
        shown.append("...")
    return f"{len(bad)} bad line{'s' if len(bad) > 1 else ''} ({'; '.join(shown)})"


def write_swf(path: str | Path, log: SwfLog) -> None:
    """Write a log so that :func:`read_swf` gives it back; compressed when the name ends in ``.gz``."""
    comments = [
        f"; {key}: {line}" if key else f"; {line}"
        for key, value in log.header.items()
        for line in value.split("\n")
    ]
    columns = [map(_number, getattr(log, name).tolist()) for name in COLUMNS]
    records = [" ".join(record) for record in zip(*columns, strict=True)]
    content = ("\n".join(comments + records) + "\n").encode()
    path = Path(path)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


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
    if not (walltime_factor > 0 and isfinite(walltime_factor)):
        raise InputError(f"the walltime factor must be a positive number, not {walltime_factor}")
    sized = log.processors > 0
    if not sized.all():
        _log.warning("%s: left out for want of processors: %d of %d jobs", log.path, (~sized).sum(), len(log))
        log = log.select(sized)
    if not len(log):
        raise InputError(f"{log.path}: no job has a positive number of processors")
    walltimes = np.where(log.requested_time > 0, log.requested_time, 0.0)
    if walltime == "max":
        walltimes = np.maximum(walltimes, walltime_factor * log.run_time)
    elif walltime == "at-least-run-time":
        walltimes = np.maximum(walltimes, log.run_time)
    walltimes[walltimes == 0] = inf
    run_times, profile_of = np.unique(log.run_time, return_inverse=True)
    profile_names = [f"run_{_number(run_time)}" for run_time in run_times.tolist()]
    profiles: dict[str, Profile] = {
        profile: Homogeneous(run_time * LOG_SPEED)
        for profile, run_time in zip(profile_names, run_times.tolist(), strict=True)
    }
    jobs = [
        Job(f"{name}!{number}", submit, size, limit, profile_names[profile], extra)
        for number, submit, size, limit, profile, extra in zip(
            log.job_number.tolist(),
            (log.submit - log.submit.min()).tolist(),
            log.processors.tolist(),
            walltimes.tolist(),
            profile_of.tolist(),
            _extras(log),
            strict=True,
        )
    ]
    return Workload(
        name=name,
        jobs=jobs,
        profiles=profiles,
        nb_hosts=log.machine_size,
        path=log.path,
        finishes=(log.submit - log.submit.min() + np.maximum(log.wait, 0) + log.run_time).tolist(),
    )


def _extras(log: SwfLog) -> list[dict[str, Any]]:
    """For each job who submitted what to where, in one dictionary for each combination."""
    names = ("user", "group", "executable", "queue", "partition")
    shared: dict[tuple[int, ...], dict[str, Any]] = {}
    extras = []
    for values in zip(*(getattr(log, name).tolist() for name in names), strict=True):
        extra = shared.get(values)
        if extra is None:
            extra = {name: value for name, value in zip(names, values, strict=True) if value != -1}
            shared[values] = extra
        extras.append(extra)
    return extras
