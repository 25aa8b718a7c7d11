"""Columns of numbers that grow piece by piece, in as few bytes as hold every value exactly.

A log may have millions of records. Most of its fields are small whole numbers, so that a job takes some
thirty bytes; as Python objects it would take hundreds.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

#: How many values of a column are processed at a time.
BLOCK = 1 << 16

_NARROW_TYPES = (np.int8, np.int16, np.int32)
_EXACT = 2.0**53


class Column:
    """Numbers that a float holds exactly; each takes as many bytes as the widest of them needs.

    They are kept in memory pages of their own, which take memory only once they are written to and return
    to the system as soon as they are unused. Many growing arrays would fragment the memory instead.
    """

    def __init__(self) -> None:
        self._values: Numbers = np.empty(0, dtype=np.int8)
        self._length = 0

    def extend(self, values: Numbers) -> None:
        """Append numbers."""
        if not len(values):
            return
        wide = np.promote_types(self._values.dtype, _narrowest(values))
        end = self._length + len(values)
        if end > len(self._values) or wide != self._values.dtype:
            room = max(2 * len(self._values), end) if end > len(self._values) else len(self._values)
            larger = np.frombuffer(mmap(-1, room * wide.itemsize), dtype=wide)
            larger[: self._length] = self.values
            self._values = larger
        self._values[self._length : end] = values
        self._length = end

    @property
    def values(self) -> Numbers:
        """All numbers so far."""
        return self._values[: self._length]


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
    return {name: column.values for name, column in columns.items()}


def as_bytes(names: Sequence[str]) -> NDArray[np.bytes_]:
    """Names as bytes that are ordered like them. None ends in a zero, which numpy would drop.

    >>> as_bytes(["w0!1", "w0!12"])
    array([b'w0!1\\x01', b'w0!12\\x01'], dtype='|S6')
    """
    return np.array([f"{name}\1".encode(errors="surrogatepass") for name in names], dtype=np.bytes_)


def distinct(column: Numbers) -> Numbers:
    """The values in a column, each once and in order."""
    blocks = (column[start : start + BLOCK] for start in range(0, len(column), BLOCK))
    return reduce(np.union1d, blocks, column[:0])


def select(column: Numbers, kept: NDArray[np.bool_]) -> Numbers:
    """The values that are kept, moved together in the memory of the column itself."""
    end = 0
    for start in range(0, len(column), BLOCK):
        values = column[start : start + BLOCK][kept[start : start + BLOCK]]
        column[end : end + len(values)] = values
        end += len(values)
    return column[:end]


def group(codes: Numbers, nb_codes: int) -> list[Numbers]:
    """For each code from 0 on, its places, in order.

    >>> group(np.array([1, 0, 1, 3]), 4)
    [array([1], dtype=int32), array([0, 2], dtype=int32), array([], dtype=int32), array([3], dtype=int32)]
    """
    starts = range(0, len(codes), BLOCK)
    blocks = [codes[start : start + BLOCK] for start in starts]
    total = np.zeros(nb_codes, dtype=np.int64)
    for block in blocks:
        total += np.bincount(block, minlength=nb_codes)
    ends = np.cumsum(total)
    free = ends - total
    places = np.empty(len(codes), dtype=np.int32)
    for start, block in zip(starts, blocks, strict=True):
        order = np.argsort(block, kind="stable")
        counts = np.bincount(block, minlength=nb_codes)
        rank = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts, counts)
        places[np.repeat(free, counts) + rank] = start + order
        free += counts
    return np.split(places, ends[:-1])
