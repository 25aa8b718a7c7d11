"""Where in a TOML text a key stands, so that a mistake can be pointed at.

The parser of the standard library forgets line numbers once a text is well formed. Here a text that parses
is scanned again for its headers and keys; a key inside an inline table is found by the line of that table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: The way to a value: keys, and places in arrays of tables.
Path = tuple[str | int, ...]

_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")


def line_of(text: str, path: Path) -> int:
    """The number of the line that says most about ``path``: its own, or that of the closest table around it.

    >>> line_of('[hosts]\\nsmall = {count = 4}\\n', ("hosts", "small", "count"))
    2
    """
    best, depth = 1, 0
    for number, found in _keys(text):
        common = _common(found, path)
        if common > depth:
            best, depth = number, common
    return best


def _keys(text: str) -> Iterator[tuple[int, Path]]:
    """Every header and assignment with its line."""
    table: Path = ()
    lengths: dict[Path, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                place = lengths.setdefault(table, 0)
                lengths[table] += 1
                table = (*table, place)
            yield number, table
        elif assignment := _ASSIGNMENT.match(line):
            yield number, (*table, *_parts(assignment[1]))


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))


def _common(first: Path, second: Path) -> int:
    """How many steps two paths have in common."""
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length
