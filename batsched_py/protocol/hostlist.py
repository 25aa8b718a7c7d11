"""Lists of nodes as Slurm writes them: ``n[001-120,130],login``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from batsched_py.protocol.shown import shown

_PART = re.compile(r"([^,\[\]]|\[[^\[\]]*\])+")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,15})")
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")

#: So many nodes at most are meant by one list.
MOST_NODES = 1 << 20


def expand(text: str) -> list[str]:
    """All nodes of a list.

    >>> expand("n[08-10],login,r[1-2]n[1,3]")
    ['n08', 'n09', 'n10', 'login', 'r1n1', 'r1n3', 'r2n1', 'r2n3']
    """
    names: list[str] = []
    place = 0
    while place < len(text):
        match = _PART.match(text, place)
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
        match = _NUMBERED.fullmatch(name)
        head, digits = (match[1], match[2]) if match else (name, "")
        width = len(digits) if digits.startswith("0") else 0
        last = groups[-1] if groups else ("", 0, [])
        if digits and last[2] and last[0] == head and last[1] in (width, len(digits)):
            number, ranges = int(digits), last[2]
            if number == ranges[-1][1] + 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        else:
            groups.append((head, width, [[int(digits), int(digits)]] if digits else []))
    return ",".join(_written(*group) for group in groups)


def _written(head: str, width: int, ranges: list[list[int]]) -> str:
    if not ranges:
        return head
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f"{head}{ranges[0][0]:0{width}}"
    parts = [f"{a:0{width}}" + (f"-{b:0{width}}" if b > a else "") for a, b in ranges]
    return f"{head}[{','.join(parts)}]"


def _piece(text: str) -> Iterator[str]:
    if not text.startswith("["):
        yield text
        return
    count = 0
    for part in text[1:-1].split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{shown(text)} is not a range of nodes like '[01-12,15]'")
        first, last = match[1], match[2] or match[1]
        count += max(int(last) - int(first) + 1, 0)
        if int(last) < int(first) or count > MOST_NODES:
            raise ValueError(f"the range {shown(part)} goes backwards or is too long")
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}}"
