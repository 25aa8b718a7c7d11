"""Columns of numbers that grow piece by piece, in as few bytes as hold every value exactly.

A log has more records than anybody wants to keep objects of. Most of its fields are small whole numbers,
so that a job takes some thirty bytes where ten objects of 64 bits and more would take hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

#: So many values are worked on at a time where a column is made from others.
BLOCK = 1 << 16

_NARROW_TYPES = (np.int8, np.int16, np.int32)
_EXACT = 2.0**53


class Column:
    """Numbers that a float holds exactly; each takes as many bytes as the widest of them needs."""

    def __init__(self) -> None:
        self._values: Numbers = np.empty(0, dtype=np.int8)
        self._length = 0

    def extend(self, values: Numbers) -> None:
        """Append numbers."""
        if not len(values):
            return
        wide = np.promote_types(self._values.dtype, _narrowest(values))
        if wide != self._values.dtype:
            self._values = self._values[: self._length].astype(wide)
        end = self._length + len(values)
        if end > len(self._values):
            self._values.resize(end + max(end >> 3, len(values)), refcheck=False)
        self._values[self._length : end] = values
        self._length = end

    def close(self) -> Numbers:
        """All numbers; nothing can be appended any more."""
        self._values.resize(self._length, refcheck=False)
        return self._values


def narrow(values: Numbers) -> Numbers:
    """The same numbers in as few bytes as hold them."""
    return values.astype(_narrowest(values)) if len(values) else values


def _narrowest(values: Numbers) -> np.dtype[Any]:
    whole = values.dtype.kind == "i"
    if not whole and not (np.floor(values) == values).all():
        return np.dtype(np.float64)
    low, high = values.min(), values.max()
    for kind in _NARROW_TYPES:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return np.dtype(kind)
    return np.dtype(np.int64 if whole or -_EXACT <= low <= high <= _EXACT else np.float64)


def gather(pieces: Iterable[Mapping[str, Numbers]]) -> dict[str, Numbers]:
    """Columns from pieces of them, all of which have the same names.

    >>> gather([{"size": np.array([1.0, 2.0])}, {"size": np.array([300.0])}])
    {'size': array([  1,   2, 300], dtype=int16)}
    """
    columns: dict[str, Column] = {}
    for piece in pieces:
        for name, values in piece.items():
            columns.setdefault(name, Column()).extend(values)
    return {name: column.close() for name, column in columns.items()}


def calculate(function: Callable[..., Numbers], *columns: Numbers) -> Numbers:
    """What a function makes of columns, given to it as floats block by block.

    So the result is all that takes memory, and nothing overflows on the way.

    >>> calculate(np.add, np.array([100], dtype=np.int8), np.array([100], dtype=np.int8))
    array([200], dtype=int16)
    """
    result = Column()
    for start in range(0, len(columns[0]), BLOCK):
        blocks = [column[start : start + BLOCK].astype(np.float64) for column in columns]
        result.extend(function(*blocks))
    return result.close()
