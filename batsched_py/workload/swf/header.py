"""The header of a log: comments such as ``; MaxProcs: 128``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_COMMENT = re.compile(r";\s*(?:([A-Za-z]\w*):(?=\s|$))?\s*(.*)")


class Comments:
    """Collects the comments of a log by their keys; one without a key continues the one before it."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._key = ""
        self.nb_bytes = 0
        """Length of all comments so far."""

    def add(self, comments: Iterable[bytes]) -> None:
        """Add the next comments, each with its ``;``."""
        for comment in comments:
            self.nb_bytes += len(comment)
            parts = _COMMENT.match(comment.decode(errors="replace").strip())
            assert parts is not None
            self._key = parts[1] or self._key
            if parts[1] or parts[2]:
                self._lines.setdefault(self._key, []).append(parts[2])

    def header(self) -> dict[str, str]:
        """For each key its text, which has a line for each comment."""
        return {key: "\n".join(lines) for key, lines in self._lines.items()}


def header_lines(header: Mapping[str, str]) -> Iterator[str]:
    """The comments that a header is written as."""
    for key, value in header.items():
        for line in value.split("\n"):
            yield f"; {key}: {line}\n" if key else f"; {line}\n"


def machine_size(header: Mapping[str, str]) -> int | None:
    """Processors of the recorded machine, if the header says so."""
    for key in ("MaxProcs", "MaxNodes"):
        if number := re.match(r"\d{1,18}(?!\d)", header.get(key, "")):
            return int(number[0])
    return None
