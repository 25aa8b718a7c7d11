"""Sets of hosts, written as Batsim writes them: ``"0-3 7"``.

A set is one Python integer whose bit *i* says whether host *i* belongs to it. Union, intersection and
difference are then single machine operations, which is what makes scheduling thousands of hosts cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class HostSet:
    """An immutable set of host numbers."""

    __slots__ = ("mask",)

    mask: int

    def __init__(self, hosts: Iterable[int] = ()) -> None:
        mask = 0
        for host in hosts:
            mask |= 1 << host
        self.mask = mask

    @classmethod
    def from_mask(cls, mask: int) -> HostSet:
        """The set whose bit mask is ``mask``."""
        hosts = cls.__new__(cls)
        hosts.mask = mask
        return hosts

    @classmethod
    def range(cls, count: int) -> HostSet:
        """The hosts ``0`` to ``count - 1``."""
        return cls.from_mask((1 << count) - 1)

    @classmethod
    def parse(cls, text: str) -> HostSet:
        """Read an interval string; pieces may come in any order and overlap.

        >>> str(HostSet.parse("7 0-2 3"))
        '0-3 7'
        """
        mask = 0
        for piece in text.split():
            first, dash, last = piece.partition("-")
            if not (first.isascii() and first.isdigit() and (last.isascii() and last.isdigit() if dash else True)):
                raise ValueError(f"{piece!r} is not a host or an interval of hosts like '3' or '0-3'")
            low = int(first)
            high = int(last) if dash else low
            if high < low:
                raise ValueError(f"interval {piece!r} ends before it begins")
            mask |= ((1 << (high - low + 1)) - 1) << low
        return cls.from_mask(mask)

    def runs(self) -> list[tuple[int, int]]:
        """The maximal intervals ``(first, last)``, in order."""
        runs = []
        mask, base = self.mask, 0
        while mask:
            gap = (mask & -mask).bit_length() - 1
            mask >>= gap
            length = (~mask & (mask + 1)).bit_length() - 1
            base += gap
            runs.append((base, base + length - 1))
            mask >>= length
            base += length
        return runs

    def lowest(self, count: int) -> HostSet:
        """The ``count`` lowest-numbered hosts of the set (all of it when it has fewer)."""
        mask = self.mask
        if mask.bit_count() <= count:
            return self
        low, high = 0, mask.bit_length()
        while low < high:
            middle = (low + high) >> 1
            if (mask & ((1 << middle) - 1)).bit_count() < count:
                low = middle + 1
            else:
                high = middle
        return HostSet.from_mask(mask & ((1 << low) - 1))

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
        return HostSet.from_mask(self.mask | other.mask)

    def __and__(self, other: HostSet) -> HostSet:
        return HostSet.from_mask(self.mask & other.mask)

    def __sub__(self, other: HostSet) -> HostSet:
        return HostSet.from_mask(self.mask & ~other.mask)

    def __le__(self, other: HostSet) -> bool:
        return not self.mask & ~other.mask

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostSet) and self.mask == other.mask

    def __hash__(self) -> int:
        return hash(self.mask)

    def __str__(self) -> str:
        return " ".join([str(a) if a == b else f"{a}-{b}" for a, b in self.runs()])

    def __repr__(self) -> str:
        return f"HostSet.parse({str(self)!r})"
