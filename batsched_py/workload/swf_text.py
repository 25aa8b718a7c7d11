"""What is asked of the text of an SWF log, apart from its records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from batsched_py.errors import InputError

#: Speed of a host of the machine that a log was recorded on, in flop/s. It is a convention: a job that ran
#: for t seconds is given t times this many operations on each of its hosts, and so runs for t seconds on a
#: host of this speed, and for t/2 on one that is twice as fast.
LOG_SPEED = 1e9

#: So many bytes of comments are kept.
MOST_COMMENTS = 1 << 24

_COMMENT = re.compile(r";\s*(?:([A-Za-z]\w*):(?=\s|$))?\s*(.*)")


class Comments:
    """Collects the comments by their keys; a line without a key goes on with the one before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, list[str]] = {}
        self._key = ""
        self._size = 0

    def read(self, text: bytes) -> None:
        """Find the comments of a piece."""
        for comment in re.findall(rb";.*", text):
            self._size += len(comment)
            if self._size > MOST_COMMENTS:
                raise InputError(
                    f"{self._path}: has more than {MOST_COMMENTS:,} bytes of comments, as no log has"
                )
            parts = _COMMENT.match(comment.decode(errors="replace").strip())
            assert parts is not None
            self._key = parts[1] or self._key
            if parts[1] or parts[2]:
                self._lines.setdefault(self._key, []).append(parts[2])

    def by_key(self) -> dict[str, str]:
        """A text for each key."""
        return {key: "\n".join(lines) for key, lines in self._lines.items()}


def machine_size(header: Mapping[str, str]) -> int | None:
    """Processors of the recorded machine, as far as the header says."""
    for key in ("MaxProcs", "MaxNodes"):
        if number := re.match(r"\d+", header.get(key, "")):
            return int(number[0])
    return None


def check_factor(walltime_factor: float) -> None:
    """Refuse what no run time can be multiplied with to give a walltime."""
    if not (walltime_factor > 0 and isfinite(walltime_factor)):
        raise InputError(f"the walltime factor must be a positive number, not {walltime_factor}")
