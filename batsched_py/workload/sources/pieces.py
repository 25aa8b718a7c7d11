"""Reading the jobs of a large log piece by piece, so that only the columns of a workload are kept of each.

A source that can do so gives :class:`Piece` after :class:`Piece`. What a whole file decides, and a piece
cannot know, is put together here: the numbers of names, and the order of submissions. Where pieces disagree
about what a column is, such as users with numbers in one and with names in another, the file has to be read
as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.columns import Numbers, gather
from batsched_py.workload.model import Workload
from batsched_py.workload.sources.accounting import NAMED, Account, most_in_use
from batsched_py.workload.swf.log import COLUMNS, WHOLE
from batsched_py.workload.swf.workload import JobColumns


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
    """The workload of a file, without ever having all of it in memory; None if it must be read as a whole."""
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
