"""Sets of hosts as Batsim writes them, ``"0-3 7"``, and lists of nodes as Slurm does, ``n[01-12,20],login``.

A set is stored as intervals, or as one Python integer whose bit *i* says whether host *i* belongs to it.
Allocations are made, counted, written and freed as intervals, which cost the same for ten hosts and for a
hundred thousand; union, intersection and difference use the integers. Each form is made from the other when
it is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product
from operator import index

from msgspec import Struct
from msgspec.structs import force_setattr

from batsched_py.protocol.shown import shown

#: The largest number of hosts; a larger number in a text is a mistake that would fill the memory.
MOST_HOSTS = 1 << 24

#: The first and the last host of an interval.
Run = tuple[int, int]

#: The longest text of an interval, leading zeros included.
_LONGEST = 100


class HostSet(Struct, frozen=True, eq=False, gc=False):
    """An immutable set of host numbers, made of a mask: bit *i* says whether host *i* is in it."""

    known_mask: int | None = 0
    known_runs: tuple[Run, ...] | None = None
    known_text: str | None = None

    @classmethod
    def of(cls, hosts: Iterable[int]) -> HostSet:
        """The set of these hosts."""
        mask = 0
        for host in hosts:
            if host >= MOST_HOSTS:
                raise ValueError(f"host {host} is beyond {MOST_HOSTS}")
            mask |= 1 << host
        return cls(mask)

    @classmethod
    def of_runs(cls, runs: Iterable[Run]) -> HostSet:
        """The set of the hosts in these intervals, which are in order and do not touch.

        >>> str(HostSet.of_runs(((0, 3), (7, 7))))
        '0-3 7'
        """
        runs = tuple((index(first), index(last)) for first, last in runs)
        end = -2
        for first, last in runs:
            if not (max(end + 2, 0) <= first <= last < MOST_HOSTS):
                raise ValueError(f"the intervals of hosts {shown(runs)} are not in order, or touch")
            end = last
        return cls(None, runs)

    @classmethod
    def range(cls, count: int) -> HostSet:
        """The hosts ``0`` to ``count - 1``."""
        return cls(None, ((0, index(count) - 1),) if count > 0 else ())

    @classmethod
    def parse(cls, text: str) -> HostSet:
        """Read an interval string; pieces may come in any order and overlap.

        >>> str(HostSet.parse("7 0-2 3"))
        '0-3 7'
        """
        runs: list[Run] = []
        end = -2
        ordered, plain = True, text.isascii()
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
            ordered &= low > end + 1
            end = high
            runs.append((low, high))
        return cls(None, tuple(runs)) if ordered else cls(_mask(runs))

    @property
    def mask(self) -> int:
        """Bit *i* says whether host *i* is in the set."""
        mask = self.known_mask
        if mask is None:
            assert self.known_runs is not None
            mask = _mask(self.known_runs)
            force_setattr(self, "known_mask", mask)
        return mask

    def runs(self) -> tuple[Run, ...]:
        """The maximal intervals ``(first, last)``, in order."""
        if self.known_runs is not None:
            return self.known_runs
        runs: list[Run] = []
        base, mask = 0, self.mask
        while mask:
            gap = (mask & -mask).bit_length() - 1
            mask >>= gap
            length = (~mask & (mask + 1)).bit_length() - 1
            base += gap
            runs.append((base, base + length - 1))
            mask >>= length
            base += length
        force_setattr(self, "known_runs", found := tuple(runs))
        return found

    def lowest(self, count: int) -> HostSet:
        """The ``count`` lowest-numbered hosts of the set (all of it when it has fewer)."""
        taken: list[Run] = []
        for first, last in self.runs():
            if count <= 0:
                break
            last = min(last, first + count - 1)
            taken.append((first, last))
            count -= last + 1 - first
        return HostSet(None, tuple(taken))

    def __len__(self) -> int:
        if self.known_mask is not None:
            return self.known_mask.bit_count()
        count = 0
        for first, last in self.runs():
            count += last + 1 - first
        return count

    def __bool__(self) -> bool:
        return bool(self.known_runs if self.known_mask is None else self.known_mask)

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostSet) and self.runs() == other.runs()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.runs())

    def text(self) -> str:
        """The set as Batsim writes it."""
        text = self.known_text
        if text is None:
            pieces = [f"{first}-{last}" if first != last else f"{first}" for first, last in self.runs()]
            text = " ".join(pieces)
            force_setattr(self, "known_text", text)
        return text

    __str__ = text

    def __repr__(self) -> str:
        return f"HostSet.parse({str(self)!r})"


def checked(hosts: object) -> HostSet:
    """A set of hosts that somebody hands over, who may have made it of anything."""
    if not isinstance(hosts, HostSet):
        raise TypeError(f"a HostSet is expected, not {type(hosts).__name__}")
    mask, runs = hosts.known_mask, hosts.known_runs
    if runs is not None:
        same = HostSet.of_runs(runs)
        if mask is None or mask == same.mask:
            return same
    elif type(mask) is int and mask >= 0 and mask.bit_length() <= MOST_HOSTS:
        return HostSet(mask)
    raise ValueError(f"{shown(mask)} is no mask of these hosts")


def _mask(runs: Iterable[Run]) -> int:
    mask = 0
    for first, last in runs:
        mask |= ((1 << (last - first + 1)) - 1) << first
    return mask


_PART = r"([^,\[\]]|\[[^\[\]]*\])+"
_NUMBERED = r"(.*?)([0-9]{1,15})"
_RANGE = r"([0-9]{1,15})(?:-([0-9]{1,15}))?"

#: So many nodes at most are meant by one list.
MOST_NODES = 1 << 20


def expand(text: str) -> list[str]:
    """All nodes of a list.

    >>> expand("n[08-10],login,r[1-2]n[1,3]"), expand("m[1-2],f[1-2]")
    (['n08', 'n09', 'n10', 'login', 'r1n1', 'r1n3', 'r2n1', 'r2n3'], ['m1', 'm2', 'f1', 'f2'])
    """
    names: list[str] = []
    place = 0
    while place < len(text):
        match = re.compile(_PART).match(text, place)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise ValueError(f"{shown(text)} is not a list of nodes like 'n[1-4],login'")
        pieces = [list(_piece(piece)) for piece in re.split(r"(\[[^\]]*\])", match[0]) if piece]
        for parts in product(*pieces):
            names.append("".join(parts))
            if len(names) > MOST_NODES:
                raise ValueError(f"{shown(text)} means more than {MOST_NODES} nodes")
        place = match.end() + 1
    return names


def compact(names: Iterable[str]) -> str:
    """A list of nodes as short as Slurm writes it, in the order of the names.

    >>> compact(["n08", "n09", "n10", "login", "n12"])
    'n[08-10],login,n12'
    """
    groups: list[tuple[str, int, list[list[int]]]] = []
    """Their beginning, how many digits they have at least, and ranges of their numbers."""
    for name in names:
        match = re.fullmatch(_NUMBERED, name)
        head, digits = (match[1], match[2]) if match else (name, "")
        width = len(digits) if digits.startswith("0") else 0
        number = int(digits or 0)
        before, least, ranges = groups[-1] if groups else ("", 0, [])
        if not (digits and ranges and before == head and least in (width, len(digits))):
            groups.append((head, width, [[number, number]] if digits else []))
        elif number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = []
    for head, width, ranges in groups:
        text = ",".join(f"{a:0{width}}" + (f"-{b:0{width}}" if b > a else "") for a, b in ranges)
        texts.append(f"{head}[{text}]" if "-" in text or "," in text else f"{head}{text}")
    return ",".join(texts)


def _piece(text: str) -> Iterator[str]:
    if not text.startswith("["):
        yield text
        return
    count = 0
    for part in text[1:-1].split(","):
        match = re.fullmatch(_RANGE, part.strip())
        if match is None:
            raise ValueError(f"{shown(text)} is not a range of nodes like '[01-12,15]'")
        first, last = match[1], match[2] or match[1]
        count += max(int(last) - int(first) + 1, 0)
        if int(last) < int(first) or count > MOST_NODES:
            raise ValueError(f"the range {shown(part)} goes backwards or is too long")
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}}"


#: No host at all.
NOWHERE = HostSet()
