"""The complete reader of logs: it checks every record and reports every fault.

Logs have hundreds of thousands of lines, nearly all of them good and nearly all of their fields whole
numbers. So a text is read in pieces of many lines at once, and only a piece that has anything else in it
is read line by line. Pieces are small enough for the arrays in between to stay in the processor's cache.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.columns import Numbers, gather, select
from batsched_py.workload.lines import SHOWN_BAD_LINES, read_lines
from batsched_py.workload.swf.conventions import (
    LARGEST,
    RECORDS_LEFT_OUT,
    BadLines,
    Comments,
    check_extent,
    never_started,
)
from batsched_py.workload.swf.log import COLUMNS, WHOLE, Floats, SwfLog

_log = logging.getLogger(__name__)

Indices = NDArray[np.intp]

_PIECE = 1 << 19


def read_table(text: bytes, columns: int, comment: bytes) -> tuple[Floats, Indices, dict[int, str]]:
    """The rows of numbers in ``text``, the line of each, and what is wrong with other lines.

    Lines count from 1. Blank lines and those that begin with ``comment`` are neither rows nor wrong.

    >>> rows, lines, wrong = read_table(b"# size time\\n1 2.5\\n3\\n4 five\\n6 7\\n", columns=2, comment=b"#")
    >>> rows.tolist(), lines.tolist()
    ([[1.0, 2.5], [6.0, 7.0]], [2, 5])
    >>> wrong
    {3: '1 field instead of 2', 4: "'five' is not a number"}
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    inside = np.zeros(len(letters) + 2, dtype=np.int8)
    inside[1:-1] = letters > ord(" ")
    change = np.diff(inside)
    starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    line_starts = np.concatenate(([0], np.flatnonzero(letters == ord("\n")) + 1, [len(letters)]))
    first_word = np.searchsorted(starts, line_starts)
    widths = np.diff(first_word)
    filled = np.flatnonzero(widths)
    filled = filled[letters[starts[first_word[filled]]] != ord(comment)]
    lines = filled[widths[filled] == columns]
    wrong = {
        int(line) + 1: f"{widths[line]} field{'s' if widths[line] > 1 else ''} instead of {columns}"
        for line in filled[widths[filled] != columns]
    }
    words = (first_word[lines, None] + np.arange(columns)).ravel()
    starts, ends = starts[words], ends[words]
    try:
        numbers = _convert(text, starts, ends)
    except ValueError:
        numbers, faults = _convert_one_by_one(text, starts, ends)
        for word, fault in faults.items():
            wrong.setdefault(int(lines[word // columns]) + 1, fault)
    rows = numbers.reshape(-1, columns)
    good = ~np.isnan(rows).any(axis=1)
    return rows[good], lines[good] + 1, wrong


def _convert(text: bytes, starts: Indices, ends: Indices) -> Floats:
    """The numbers between ``starts`` and ``ends``; ValueError when one word may be no number.

    numpy reads whole numbers several times faster than others. So fractions are blanked out first, every
    word is read as a whole number, and the few words that had a fraction are then read again.
    """
    if not len(starts):
        return np.empty(0)
    letters = np.frombuffer(text, dtype=np.uint8)
    dots = np.flatnonzero(letters == ord("."))
    words = np.searchsorted(starts, dots, side="right") - 1
    inside = (words >= 0) & (dots < ends[words])
    dots, words = dots[inside], words[inside]
    whole_ends = ends.copy()
    whole_ends[words] = dots
    last = letters[whole_ends - 1]
    if ((whole_ends == starts) | (last < ord("0")) | (last > ord("9"))).any():
        raise ValueError("a word has no whole part that ends in a digit")
    change = np.zeros(len(letters) + 1, dtype=np.int8)
    change[starts] = 1
    change[whole_ends] = -1
    kept = np.cumsum(change[:-1], dtype=np.int8)
    blanked = np.where(kept, letters, np.uint8(ord(" "))).tobytes().decode("latin-1")
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers = np.fromstring(blanked, dtype=np.int64, sep=" ").astype(np.float64)
        except DeprecationWarning as warning:  # how numpy before 2.3 says that a word is no number
            raise ValueError(str(warning)) from None
    if len(numbers) != len(starts):
        raise ValueError("a word is more than one number")
    numbers[words] = [float(text[starts[word] : ends[word]]) for word in words]
    if not np.isfinite(numbers).all():
        raise ValueError("a number is too large")
    return numbers


def _convert_one_by_one(text: bytes, starts: Indices, ends: Indices) -> tuple[Floats, dict[int, str]]:
    """The same, word by word: NaN for each word that is no finite number, and what is wrong with it."""
    numbers = np.full(len(starts), np.nan)
    faults: dict[int, str] = {}
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        word = text[start:end]
        try:
            number = float(word)
        except ValueError:
            number = np.nan
        if np.isfinite(number):
            numbers[index] = number
        else:
            faults[index] = f"{word.decode(errors='replace')[:20]!r} is not a number"
    return numbers, faults


def read_swf(path: str | Path) -> SwfLog:
    """Read a log, plain or compressed with gzip.

    Records that cannot be used are left out, and one warning says how many and why: bad lines (another
    number of fields than 18, a field that is no finite number, a job number that came before, a negative
    submission or run time), and jobs whose run time is unknown (-1), as no simulation can run them. A job
    that was cancelled while it waited (status 5) has a run time of 0 on 0 processors.
    Records are sorted by submission time; those of equal time keep their order.
    """
    reader = SwfReader(path)
    columns = reader.usable(gather(reader.pieces()))
    for name in COLUMNS:
        columns[name] = columns[name].astype(np.int64 if name in WHOLE else np.float64)
    full: dict[str, Any] = dict(columns)
    return SwfLog(**full, header=reader.header, path=str(path), left_out=reader.left_out)


class SwfReader:
    """Reads a log in two steps: all its :meth:`pieces`, then the :meth:`usable` ones of the records in them.

    In between the caller may derive other columns from each piece, so that no more of a large log is in
    memory than the caller needs.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._comments = Comments()
        self._bad = BadLines()
        self._nb_unknown = 0

    @property
    def left_out(self) -> dict[str, int]:
        """How many records cannot be used, by the reason."""
        unknown = {"run time is unknown": self._nb_unknown} if self._nb_unknown else {}
        return dict(self._bad.kinds) | unknown

    @property
    def header(self) -> dict[str, str]:
        """The comments by their keys."""
        return self._comments.header()

    def pieces(self) -> Iterator[dict[str, Numbers]]:
        """The records that are not in bad lines, a few thousand at a time.

        A piece has a column for each field, and ``skipped``: how many lines above each record are not
        records of a piece.
        """
        nb_records, nb_lines = 0, 0
        for text in read_lines(self._path, _PIECE):
            rows, lines, bad = read_table(text, columns=len(COLUMNS), comment=b";")
            values: dict[str, Numbers] = dict(zip(COLUMNS, np.ascontiguousarray(rows.T), strict=True))
            faults = _faults(values)
            bad |= {int(lines[row]): fault for row, fault in faults.items()}
            self._bad.add({line + nb_lines: fault for line, fault in bad.items()})
            if faults:
                values = {name: np.delete(column, list(faults)) for name, column in values.items()}
                lines = np.delete(lines, list(faults))
            self._comments.add(re.findall(rb";.*", text))
            said = (values[name] for name in ("status", "run_time", "allocated_processors"))
            values |= settled(values, never_started(*said))
            values["skipped"] = lines + (nb_lines - nb_records - 1.0) - np.arange(len(lines))
            nb_records += len(lines)
            nb_lines += text.count(b"\n")
            check_extent(self._path, nb_records, self._comments.nb_bytes)
            yield values

    def usable(self, columns: dict[str, Numbers]) -> dict[str, Numbers]:
        """The usable records of all pieces, in the order of their submissions.

        ``columns`` must have ``job_number``, ``submit``, ``run_time`` and ``skipped``. Records whose number
        came before are bad lines as well, and those whose run time is unknown (-1) cannot be used. One
        warning says what was left out.
        """
        if not columns:
            raise self._refusal([])
        again = _repeated(columns["job_number"])
        rows = np.flatnonzero(again)
        lines = rows[:SHOWN_BAD_LINES] + columns.pop("skipped")[rows[:SHOWN_BAD_LINES]] + 1
        total = len(again) + self._bad.count
        self._bad.add(dict.fromkeys(lines.tolist(), "job_number came before"), count=len(rows))
        kept = ~again & (columns["run_time"] != -1)
        nb_kept = int(np.count_nonzero(kept))
        self._nb_unknown = len(again) - len(rows) - nb_kept
        reasons = self._bad.reasons(self._nb_unknown)
        if not nb_kept:
            raise self._refusal(reasons)
        if reasons:
            left_out = total - nb_kept
            _log.warning(RECORDS_LEFT_OUT, self._path, left_out, total, ", ".join(reasons))
        keep(columns, kept)
        sort_by_submission(columns)
        return columns

    def _refusal(self, reasons: list[str]) -> InputError:
        why = ", ".join(reasons) or "it has none"
        return InputError(f"{self._path}: no usable record of an SWF log: {why}")


def settled(values: Mapping[str, Numbers], cancelled: NDArray[np.bool_]) -> dict[str, Numbers]:
    """Jobs that were cancelled while they waited ran for 0 s on 0 processors, however the log writes it."""
    allocated, requested = values["allocated_processors"], values["requested_processors"]
    return {
        "run_time": np.where(cancelled, 0.0, values["run_time"]),
        "allocated_processors": np.where(cancelled, 0.0, allocated),
        "requested_processors": np.where(cancelled & ~(requested > 0), allocated, requested),
    }


def sort_by_submission(columns: dict[str, Numbers]) -> bool:
    """Put records into the order of their submissions; tells whether they were in another one."""
    submit = columns["submit"]
    if not (submit[1:] < submit[:-1]).any():
        return False
    order = np.argsort(submit, kind="stable")
    for name in columns:  # one after the other, since there may be no memory for two of all
        columns[name] = columns[name][order]
    return True


def keep(columns: dict[str, Numbers], kept: NDArray[np.bool_]) -> None:
    """Keep these records only."""
    if not kept.all():
        for name in columns:
            columns[name] = select(columns[name], kept)


def _faults(values: Mapping[str, Floats]) -> dict[int, str]:
    """What is wrong with rows whose fields are all numbers."""
    found: dict[int, str] = {}

    def report(wrong: NDArray[np.bool_], reason: str) -> None:
        for row in np.flatnonzero(wrong).tolist():
            found.setdefault(row, reason)

    for name, column in values.items():
        report(np.abs(column) > LARGEST, f"{name} is too large")
        if name in WHOLE:
            report(column != np.floor(column), f"{name} is not a whole number")
    report(values["submit"] < 0, "submit is negative")
    report((values["run_time"] < 0) & (values["run_time"] != -1), "run_time is negative")
    return found


def _repeated(numbers: Numbers) -> NDArray[np.bool_]:
    """Which of the numbers came before."""
    again = np.zeros(len(numbers), dtype=bool)
    if (numbers[1:] <= numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        again[order[1:]] = ordered[1:] == ordered[:-1]
    return again
