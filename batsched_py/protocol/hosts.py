"""Sets of hosts, written as Batsim writes them: ``"0-3 7"``.

A set is one Python integer whose bit *i* says whether host *i* belongs to it. Union, intersection and
difference are then single machine operations, which is what makes scheduling thousands of hosts cheap.
Allocations recur, so the intervals of recent sets are remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from batsched_py.protocol.shown import shown

#: No machine has more hosts; a larger number in a text is a mistake that would fill the memory.
MOST_HOSTS = 1 << 24

#: No interval takes more letters, with zeros in front and all.
_LONGEST = 100


class HostSet(Struct, frozen=True, gc=False):
    """An immutable set of host numbers."""

    mask: int = 0
    """Bit *i* says whether host *i* is in the set."""

    @classmethod
    def of(cls, hosts: Iterable[int]) -> HostSet:
        """The set of these hosts."""
        mask = 0
        for host in hosts:
            mask |= 1 << host
        return cls(mask)

    @classmethod
    def range(cls, count: int) -> HostSet:
        """The hosts ``0`` to ``count - 1``."""
        return cls((1 << count) - 1)

    @classmethod
    def parse(cls, text: str) -> HostSet:
        """Read an interval string; pieces may come in any order and overlap.

        >>> str(HostSet.parse("7 0-2 3"))
        '0-3 7'
        """
        mask, plain = 0, text.isascii()
        for piece in text.split():
            first, dash, last = piece.partition("-")
            if not (plain and first.isdigit() and (last.isdigit() or not dash) and len(piece) < _LONGEST):
                raise ValueError(f"{shown(piece)} is not a host or an interval of hosts like '3' or '0-3'")
            low = int(first)
            high = int(last) if dash else low
            if high < low:
                raise ValueError(f"interval {piece!r} ends before it begins")
            if high >= MOST_HOSTS:
                raise ValueError(f"{piece!r} names a host beyond {MOST_HOSTS}")
            mask |= ((1 << (high - low + 1)) - 1) << low
        return cls(mask)

    def runs(self) -> tuple[tuple[int, int], ...]:
        """The maximal intervals ``(first, last)``, in order."""
        return _runs(self.mask)

    def lowest(self, count: int) -> HostSet:
        """The ``count`` lowest-numbered hosts of the set (all of it when it has fewer)."""
        rest, taken = self.mask, 0
        while count > 0 and rest:
            window = rest & (((rest & -rest) << count) - 1)
            rest ^= window
            taken |= window
            count -= window.bit_count()
        return HostSet(taken)

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return self.mask != 0

    def __iter__(self) -> Iterator[int]:
        for first, last in self.runs():
            yield from range(first, last + 1)

    def __contains__(self, host: int) -> bool:
        return bool(self.mask >> host & 1)

    def __or__(self, other: HostSet) -> HostSet:
        return HostSet(self.mask | other.mask)

    def __and__(self, other: HostSet) -> HostSet:
        return HostSet(self.mask & other.mask)

    def __sub__(self, other: HostSet) -> HostSet:
        return HostSet(self.mask & ~other.mask)

    def __le__(self, other: HostSet) -> bool:
        return not self.mask & ~other.mask

    def __str__(self) -> str:
        return _text(self.mask)

    def __repr__(self) -> str:
        return f"HostSet.parse({str(self)!r})"


@lru_cache(maxsize=4096)
def _runs(mask: int) -> tuple[tuple[int, int], ...]:
    runs = []
    base = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        length = (~mask & (mask + 1)).bit_length() - 1
        base += gap
        runs.append((base, base + length - 1))
        mask >>= length
        base += length
    return tuple(runs)


@lru_cache(maxsize=4096)
def _text(mask: int) -> str:
    return " ".join([str(first) if first == last else f"{first}-{last}" for first, last in _runs(mask)])
