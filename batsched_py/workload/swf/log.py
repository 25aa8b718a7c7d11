"""A log as columns, how it is written, and its times on the wall clock of its machine's place."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batsched_py.output_files import writing
from batsched_py.workload.calendar import start_in, zone_in
from batsched_py.workload.swf.conventions import header_lines, machine_size, never_started, number_text

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Random: TypeAlias = "np.random.Generator"  # in quotes, as it takes time to import

#: So many records are written at a time.
_PIECE = 10_000


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
    more: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What else the source knew: columns by name, such as ``gpus``, which SWF files cannot keep."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Records of the source that are not here, counted by the reason."""
    guessed: dict[str, int] = field(default_factory=dict)
    """Values that the source did not say and that were filled in, counted by kind."""
    mapping: dict[str, str] = field(default_factory=dict)
    """For each column, what of the source it is, where that is not always the same."""

    def __len__(self) -> int:
        return len(self.job_number)

    @property
    def processors(self) -> Integers:
        """What each job ran on: the processors it was allocated, else those it requested."""
        return np.where(self.allocated_processors > 0, self.allocated_processors, self.requested_processors)

    @property
    def machine_size(self) -> int | None:
        """Processors of the recorded machine, as far as the header says."""
        return machine_size(self.header)

    @property
    def never_started(self) -> NDArray[np.bool_]:
        """Which jobs were cancelled while they waited; such a job waited until it was cancelled."""
        found: NDArray[np.bool_] = never_started(self.status, self.run_time, self.allocated_processors)
        return found

    def select(self, records: NDArray[Any]) -> SwfLog:
        """The log with these records only, given as numpy indexes an array: a mask or positions."""
        return replace(
            self,
            **{name: getattr(self, name)[records] for name in COLUMNS},
            more={name: column[records] for name, column in self.more.items()},
        )


#: The 18 fields of a record, in the order of the format.
COLUMNS = tuple(column.name for column in fields(SwfLog)[:18])

#: Those that hold whole numbers only.
WHOLE = frozenset(column.name for column in fields(SwfLog)[:18] if column.type == "Integers")


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


def write_swf(path: str | Path, log: SwfLog) -> None:
    """Write a log so that the reader gives it back; compressed when the name ends in ``.gz``."""
    path = Path(path)
    with writing(path) as raw:
        packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else nullcontext(raw)
        with packed as file:
            file.writelines(line.encode() for line in header_lines(log.header))
            for start in range(0, len(log), _PIECE):  # so that a large log is never in memory as text
                columns = [_numbers(getattr(log, name)[start : start + _PIECE]) for name in COLUMNS]
                lines = map(" ".join, zip(*columns, strict=True))
                file.write(("\n".join(lines) + "\n").encode())


def _numbers(values: NDArray[Any]) -> Iterable[str]:
    """Each value as text; those of a column that is whole, as most are, without looking at each."""
    whole = values.astype(np.int64)
    return map(str, whole.tolist()) if np.array_equal(whole, values) else map(number_text, values.tolist())


HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

#: The first Monday of Unix time, 1970-01-05, in seconds.
_FIRST_MONDAY: Final = 4 * DAY
_STEP: Final = 900.0


def start_of(log: SwfLog) -> int | None:
    """The Unix time that the times of a log count from, as far as its header says."""
    return start_in(log.header)


def zone_of(log: SwfLog) -> tzinfo:
    """The time zone of the log: the named one, else that of the recorded difference, else UTC."""
    return zone_in(log.header)


def wall_clock(log: SwfLog, times: Floats) -> Floats:
    """Seconds on the wall clock, summer time included, since the Monday 0:00 on or before the log's start.

    ``times`` count from the start of the log. Where the header does not say when that was, the log is taken
    to begin on a Monday at midnight.
    """
    start = start_of(log)
    if start is None:
        return times
    local = on_clock(start + times, zone_of(log))
    first = on_clock(np.array([float(start)]), zone_of(log))[0]
    return local - (first - (first - _FIRST_MONDAY) % WEEK)


def local_time(log: SwfLog, times: Floats) -> NDArray[np.datetime64]:
    """Dates and times of day on the wall clock; 1970 where the header does not say when the log began."""
    return on_clock((start_of(log) or 0) + times, zone_of(log)).astype("datetime64[s]")


def on_clock(moments: Floats, zone: tzinfo) -> Floats:
    """Moments of Unix time as the clock of a zone shows them; offsets are looked up for each quarter hour."""
    steps, step_of = np.unique(np.floor(moments / _STEP), return_inverse=True)
    offsets = [_offset(step * _STEP, zone) for step in steps.tolist()]
    return moments + np.array(offsets)[step_of]


@lru_cache(maxsize=1 << 16)
def _offset(moment: float, zone: tzinfo) -> float:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    assert offset is not None
    return offset.total_seconds()
