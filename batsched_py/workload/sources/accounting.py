"""What accounting logs of batch systems have in common.

Durations, memory and hosts as they are written, names, moments, records that cannot be used, and the jobs of
a large log read piece by piece.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.columns import Numbers, gather
from batsched_py.workload.lines import bad_lines_text
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import EXTRA
from batsched_py.workload.swf.log import COLUMNS, WHOLE, Integers, SwfLog, swf_log
from batsched_py.workload.swf.workload import JobColumns

if TYPE_CHECKING:
    import pandas as pd

_log = logging.getLogger(__name__)


#: The most digits of a number; longer ones are taken for mistakes.
_N: Final = "[0-9]{1,15}"
_WHOLE: Final = re.compile(_N)
_DURATION: Final = re.compile(rf"(?:({_N}):)?({_N}):({_N}(?:\.{_N})?)")
_WITH_DAYS: Final = re.compile(rf"({_N})-({_N})(?::({_N})(?::({_N}(?:\.{_N})?))?)?")
_MEMORY: Final = re.compile(rf"({_N}(?:\.{_N})?)\s*([kmgtp]?)i?(?:[bw])?([cn]?)", re.IGNORECASE | re.ASCII)
_KILOBYTES: Final = {"": 1 / 1024, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3, "p": 1024.0**4}
_UNLIMITED: Final = ("", "UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None")


def for_each(texts: NDArray[Any], read: Callable[[str], Any], dtype: type = np.float64) -> NDArray[Any]:
    """What each text says; each distinct one is read once."""
    codes, distinct = distinct_texts(texts)
    return np.array([read(text) for text in distinct], dtype)[codes] if len(texts) else np.empty(0, dtype)


def distinct_texts(texts: NDArray[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """The distinct texts in the order of appearance, and which of them each text is."""
    import pandas as pd

    codes, distinct = pd.factorize(np.asarray(texts, dtype=object))
    return codes, [str(text).strip() for text in distinct]


def whole(text: str) -> int | None:
    """The whole number that a text is, if it is one.

    >>> whole("64"), whole("-1"), whole("x"), whole("9" * 99)
    (64, None, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


@lru_cache(maxsize=1 << 12)
def duration(text: str) -> float:
    """Seconds of a text; -1 for none, NaN for anything that is no duration.

    As Slurm has it: ``[HOURS:]MINUTES:SECONDS``, and with days ``DAYS-HOURS[:MINUTES[:SECONDS]]``.

    >>> duration("05:06"), duration("2-12"), duration("1-02:00"), duration("UNLIMITED")
    (306.0, 216000.0, 93600.0, -1.0)
    """
    if text in _UNLIMITED:
        return -1.0
    if parts := _WITH_DAYS.fullmatch(text):
        days, hours, minutes, seconds = (float(part or 0) for part in parts.groups())
    elif parts := _DURATION.fullmatch(text):
        days, (hours, minutes, seconds) = 0.0, (float(part or 0) for part in parts.groups())
    else:
        return np.nan
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def written_duration(seconds: float) -> str:
    """A duration as Slurm writes it.

    >>> written_duration(93784)
    '1-02:03:04'
    """
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"


@lru_cache(maxsize=1 << 12)
def memory(text: str) -> tuple[float, str]:
    """Kilobytes, and what they are for: ``c`` each processor, ``n`` each node, nothing for all; -1 for none.

    >>> memory("4Gc"), memory("512M"), memory("1024kb")
    ((4194304.0, 'c'), (524288.0, ''), (1024.0, ''))
    """
    parts = _MEMORY.fullmatch(text)
    if parts is None:
        return -1.0, ""
    return float(parts[1]) * _KILOBYTES[parts[2].lower()], parts[3].lower()


def count_hosts(text: str) -> int:
    """How many hosts a list like ``node[001-003,7],login1`` has.

    >>> count_hosts("node[001-003,7],login1"), count_hosts("rack[1-2]n[1-4]"), count_hosts("")
    (5, 8, 0)
    """
    total = 0
    for host in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        count = 1
        for ranges in re.findall(r"\[([^\]]*)\]", host):
            count *= sum(length_of(each) for each in ranges.split(","))
        total += count
    return total


def length_of(text: str) -> int:
    """How many numbers a range like ``2-5`` has; 1 for anything else."""
    first, last = map(whole, text.partition("-")[::2])
    return 1 if first is None or last is None else max(last - first + 1, 0)


#: Columns that are numbers in a log and names elsewhere, with the key of the header that tells the names.
NAMED: Final = {column: column.capitalize() for column in EXTRA}


#: What is guessed where an hour comes twice.
TWICE: Final = "time in the hour that comes twice when summer time ends"

#: So many kinds of odd values are told, those of most jobs.
_SHOWN_ODD: Final = 5


@dataclass
class Account:
    """What happened to the records of a file on their way into a log."""

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    """Records that are not jobs of the log, by the reason."""
    guessed: Counter[str] = field(default_factory=Counter)
    bad: dict[int, str] = field(default_factory=dict)
    """What is wrong with which line, counted from 1."""
    told: list[str] = field(default_factory=list)
    """What was found out about the file and is said when all of it is read."""
    odd: Counter[str] = field(default_factory=Counter)
    """What was made of odd values, with the number of jobs; said, too, and among what is guessed."""
    _numbers: set[float] = field(default_factory=set)

    def tell(self, text: str) -> None:
        """Say something about the file, once."""
        if text not in self.told:
            self.told.append(text)

    def reject(self, line: int, reason: str, kind: str) -> None:
        """Leave out a line that cannot be read."""
        self.bad[line] = reason
        self.left_out[kind] += 1

    def tell_odd(self, text: str, which: NDArray[np.bool_]) -> None:
        """Say of how many jobs something odd was made something of."""
        if which.any():
            self.odd[text] += int(which.sum())

    def came_before(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which numbers of jobs some record before had."""
        found = np.zeros(len(numbers), dtype=bool)
        for row, number in enumerate(numbers.tolist()):
            found[row] = number in self._numbers
            self._numbers.add(number)
        return found

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
        for text in self.told:
            _log.warning("%s: %s", self.path, text)
        for text, count in self.odd.most_common(_SHOWN_ODD):
            _log.warning("%s: %s: %s of %s jobs", self.path, text, f"{count:,}", f"{nb_jobs:,}")
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
            guessed={kind: count for kind, count in (self.guessed + self.odd).items() if count},
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


def in_zone(moments: pd.DatetimeIndex, zone: str, summer: bool = True) -> pd.DatetimeIndex:
    """Moments on the clock of a zone; what is in the hour that comes twice is in the first one, or not."""
    ambiguous = np.full(len(moments), summer)
    return moments.tz_localize(zone_named(zone), ambiguous=ambiguous, nonexistent="shift_forward")


def nb_twice(moments: pd.DatetimeIndex, zone: str) -> int:
    """How many moments on the clock of a zone are in an hour that comes twice."""
    first, second = (in_zone(moments, zone, summer) for summer in (True, False))
    return int(((first != second) & ~moments.isna()).sum())


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


@dataclass(frozen=True)
class Piece:
    """Some records, in the order of the file."""

    columns: Mapping[str, NDArray[Any]]
    """What is known of those of a log; all pieces count times from the same moment."""
    header: Mapping[str, str]
    """What the file says about all of them."""
    names: Mapping[str, str]
    """For each column of names, under its key in a header: a line for each name, in their order here."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What columns are that may be of several kinds, such as ``dates``."""
    has_dependencies: bool = False
    """Whether jobs wait for others; then the file has to be read as a whole, too."""


@runtime_checkable
class ReadsPieces(Protocol):
    """A source whose files may be read in pieces."""

    def pieces(self, path: Path, account: Account) -> Iterator[Piece]:
        """The records of a file."""

    def machine_header(self, header: Mapping[str, str], machine: Callable[[], int]) -> Mapping[str, str]:
        """A header that says how large the machine was, as far as that is known or can be found out."""


class Disagreement(Exception):
    """Pieces do not agree about what a column is."""


def read_in_pieces(source: ReadsPieces, path: Path, name: str, jobs: JobColumns) -> Workload | None:
    """The workload of a file, without ever having all of it in memory; None if it must be read as a whole.

    A source that can do so gives :class:`Piece` after :class:`Piece`. What a whole file decides, and a
    piece cannot know, is put together here: the numbers of names, and the order of submissions. Where
    pieces disagree about what a column is, such as users with numbers in one and with names in another,
    the file has to be read as a whole.
    """
    account, union = Account(path), _Union()
    try:
        pieces = (union.columns(piece) for piece in source.pieces(path, account))
        columns = gather(jobs.derive(pieces))
    except Disagreement:
        return None
    account.check(len(columns["submit"]) if columns else 0)
    jobs.sort(columns)
    if not union.has_numbers:
        columns["job_number"] = np.arange(1, len(columns["submit"]) + 1, dtype=np.int32)
    header = source.machine_header(union.header, lambda: max(_most_in_use(columns), union.largest))
    return jobs.workload(columns, name, header, str(path))


def _most_in_use(columns: Mapping[str, Numbers]) -> int:
    starts = columns["submit"].astype(np.float64) + columns["wait"]
    started = (columns["left_out"] == 0) & (columns["withdrawn"] == 0)
    return most_in_use(starts, starts + columns["run_time"], np.where(started, columns["size"], 0))


class _Union:
    """What the pieces so far have in common."""

    def __init__(self) -> None:
        self.header: Mapping[str, str] = {}
        self.has_numbers = False
        """Whether jobs have numbers of their own."""
        self.largest = 0
        """The most processors that a job asked for."""
        self._kinds: dict[str, str] = {}
        self._names: dict[str, dict[str, int]] = {column: {} for column in NAMED}

    def columns(self, piece: Piece) -> dict[str, Numbers]:
        """All columns of a piece, with the numbers that names have in the whole file."""
        if piece.has_dependencies:
            raise Disagreement("after")
        self.header = piece.header
        self.has_numbers = "job_number" in piece.columns
        self._check("job_number", "known" if self.has_numbers else "unknown")
        for column, kind in piece.kinds.items():
            self._check(column, kind)
        count = len(piece.columns["submit"])
        unknown = np.full(count, -1)
        found: dict[str, Numbers] = {}
        for name in COLUMNS:
            values = piece.columns.get(name, unknown)
            found[name] = values.astype(np.int64 if name in WHOLE else np.float64)
        for name, key in NAMED.items():
            if name in piece.columns:
                found[name] = self._renumbered(name, found[name], piece.names.get(key, ""))
        self.largest = max(self.largest, int(found["requested_processors"].max(initial=0)))
        return found

    def _renumbered(self, column: str, numbers: Numbers, lines: str) -> Numbers:
        if not lines:
            if (numbers != -1).any():
                self._check(column, "numbers")
            return numbers
        self._check(column, "names")
        names = self._names[column]
        new = []
        for number, line in enumerate(lines.split("\n"), start=1):
            said, _, name = line.partition(" ")
            if said != str(number):  # a name of several lines
                raise Disagreement(column)
            new.append(names.setdefault(name, len(names) + 1))
        return np.array([*new, -1])[np.where(numbers > 0, numbers - 1, -1)]

    def _check(self, column: str, kind: str) -> None:
        if self._kinds.setdefault(column, kind) != kind:
            raise Disagreement(column)
