"""What accounting logs of batch systems have in common: names, moments, and records that cannot be used."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.lines import bad_lines_text
from batsched_py.workload.sources.quantities import distinct_texts, whole
from batsched_py.workload.swf.log import Integers, SwfLog, swf_log

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)

#: Columns that are numbers in a log and names elsewhere, with the key of the header that tells the names.
NAMED: Final = {
    "user": "User",
    "group": "Group",
    "executable": "Executable",
    "queue": "Queue",
    "partition": "Partition",
}


@dataclass
class Account:
    """What happened to the records of a file on their way into a log."""

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    """Records that are not jobs of the log, by the reason."""
    guessed: Counter[str] = field(default_factory=Counter)
    bad: dict[int, str] = field(default_factory=dict)
    """What is wrong with which line, counted from 1."""

    def reject(self, line: int, reason: str, kind: str) -> None:
        """Leave out a line that cannot be read."""
        self.bad[line] = reason
        self.left_out[kind] += 1

    def header(self, system: str, origin: float, zone: str, machine: int) -> dict[str, str]:
        """The header of a log that begins at a Unix time; the size of its machine is a guess."""
        self.guessed["size of the machine: the most processors that were in use at once"] = 1
        return {
            "Version": "2.2",
            "Computer": system,
            "UnixStartTime": f"{origin:.0f}",
            "TimeZoneString": zone,
            "MaxProcs": str(machine),
        }

    def check(self, nb_jobs: int) -> None:
        """Warn about bad lines; raise an error when there is no job."""
        what = bad_lines_text(self.bad, len(self.bad)) if self.bad else "it has none"
        if not nb_jobs:
            raise InputError(f"{self.path}: no record of a finished job: {what}")
        if self.bad:
            _log.warning("%s: left out: %s", self.path, what)

    def log(self, columns: Mapping[str, NDArray[Any]], header: Mapping[str, str], **rest: Any) -> SwfLog:
        """The log, with a warning about bad lines; an error when there is no job."""
        self.check(len(columns["submit"]))
        return swf_log(
            columns,
            header=dict(header),
            path=str(self.path),
            left_out=dict(self.left_out),
            guessed={kind: count for kind, count in self.guessed.items() if count},
            **rest,
        )


def numbered(names: NDArray[Any]) -> tuple[Integers, str]:
    """A number for each name, from 1 in the order of appearance, -1 for no name; and lines that tell them."""
    codes, distinct = distinct_texts(names)
    named = [text for text in distinct if text]
    numbers = {text: number for number, text in enumerate(named, start=1)} | {"": -1}
    lines = [f"{number} {text}" for text, number in numbers.items() if text]
    return np.array([numbers[text] for text in distinct], dtype=np.int64)[codes], "\n".join(lines)


def names_of(log: SwfLog, column: str) -> NDArray[Any]:
    """The names behind the numbers of a column, as the header tells them; else the numbers, none for -1."""
    names = {-1: ""}
    for line in log.header.get(NAMED[column], "").split("\n"):
        number, _, name = line.strip().partition(" ")
        if (known := whole(number)) is not None and name.strip():
            names[known] = name.strip().split()[0]
    distinct, codes = np.unique(getattr(log, column), return_inverse=True)
    return np.array([names.get(number, str(number)) for number in distinct.tolist()])[codes]


def named_columns(columns: Mapping[str, NDArray[Any]]) -> tuple[dict[str, Integers], dict[str, str]]:
    """Numbers for columns of names, and the header that tells which is which."""
    numbers, header = {}, {}
    for column, names in columns.items():
        numbers[column], lines = numbered(names)
        if lines:
            header[NAMED[column]] = lines
    return numbers, header


def preceding_jobs(ids: NDArray[Any], submit: NDArray[Any]) -> NDArray[np.int64]:
    """For each attempt of a job but the first, the number that the attempt before it has in the log."""
    order = np.argsort(submit, kind="stable")
    codes, _ = distinct_texts(ids[order])
    by_id = np.argsort(codes, kind="stable")
    again = codes[by_id][1:] == codes[by_id][:-1]
    before = np.full(len(codes), -1, dtype=np.int64)
    before[by_id[1:][again]] = by_id[:-1][again] + 1
    preceding = np.empty_like(before)
    preceding[order] = before
    return preceding


def zone_named(name: str) -> ZoneInfo:
    """The time zone of this name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(f"there is no time zone {name!r}; give one like Europe/Stockholm") from None


def unix_times(moments: pd.DatetimeIndex) -> NDArray[np.float64]:
    """Moments that have a zone, as Unix times; NaN for none, and for years that 64 bits cannot tell."""
    import pandas as pd

    naive = moments.tz_convert("UTC").tz_localize(None)
    within = (naive.year > pd.Timestamp.min.year) & (naive.year < pd.Timestamp.max.year)
    since = naive.where(within) - pd.Timestamp(0)
    return (since / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)


def most_in_use(starts: NDArray[Any], ends: NDArray[Any], sizes: NDArray[Any]) -> int:
    """The most processors that are in use at once; those of a job that ends are free for one that starts."""
    by_end, by_start = np.argsort(ends, kind="stable"), np.argsort(starts, kind="stable")
    freed = np.concatenate([[0], np.cumsum(sizes[by_end])])
    freed_by_starts = freed[np.searchsorted(ends[by_end], starts[by_start], side="right")]
    return int((np.cumsum(sizes[by_start]) - freed_by_starts).max(initial=0))
