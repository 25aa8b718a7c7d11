"""The cells of a table of ``squeue``.

Columns have bars between them, or blanks. With blanks a cell may be empty, or touch the next one; a name may
have blanks itself, and a long time limit moves the rest of its row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

BAR = "|"

#: The column of the names of jobs.
NAME = "NAME"

_WORD = re.compile(r"\S+")


class Cutter:
    """Cuts the rows of a table into cells."""

    def __init__(self, header: str, rows: Sequence[str]) -> None:
        self._has_bars = BAR in header
        words = list(_WORD.finditer(header))
        self.names = header.split(BAR) if self._has_bars else [word[0] for word in words]
        self._gaps = [range(before.end(), after.start()) for before, after in pairwise(words)]
        self._starts = [gap.stop for gap in self._gaps]
        self._begins_below_words = all(map(self._is_left_aligned, rows))
        self._blanks = [
            max(gap, key=lambda place: sum(_is_blank(row, place) for row in rows)) for gap in self._gaps
        ]
        """Between the words of the header, where most rows have a blank."""

    def cells(self, row: str) -> list[str]:
        """One text for each column; raises ``ValueError`` if that cannot be told."""
        if self._has_bars:
            found = [cell.strip() for cell in row.split(BAR)]
        elif self._begins_below_words:
            found = _cut(row, self._starts)
        elif all(_is_blank(row, place) for place in self._blanks):
            found = _cut(row, self._blanks)
        else:
            found = self._words(row)
        if len(found) != len(self.names):
            raise ValueError(f"has {len(found)} columns, and the header has {len(self.names)}")
        return found

    def _is_left_aligned(self, row: str) -> bool:
        """Whether each cell begins below the word of the header, after a blank unless columns are wide."""
        cells = _cut(row, self._starts)[1:]
        return all(
            (not cell or not _is_blank(row, gap.stop)) and (len(gap) > 1 or _is_blank(row, gap.start))
            for cell, gap in zip(cells, self._gaps, strict=True)
        )

    def _words(self, row: str) -> list[str]:
        """The words of a row; those of a reason in parentheses, and of the name of a job, are one."""
        words, count = row.split(), len(self.names)
        reason = next((place for place in range(count - 1, len(words)) if words[place][0] == "("), None)
        if reason is not None:
            words[reason:] = [" ".join(words[reason:])]
        surplus = len(words) - count
        if surplus > 0 and NAME in self.names:
            name = self.names.index(NAME)
            words[name : name + surplus + 1] = [" ".join(words[name : name + surplus + 1])]
        return words


def _is_blank(row: str, place: int) -> bool:
    return not row[place : place + 1].strip()


def _cut(row: str, places: Sequence[int]) -> list[str]:
    return [row[begin:end].strip() for begin, end in pairwise([0, *places, len(row) + 1])]
