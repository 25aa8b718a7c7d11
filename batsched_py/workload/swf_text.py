"""What is known of SWF logs and of their texts without numpy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from batsched_py.errors import InputError

#: Speed of a host of the machine that a log was recorded on, in flop/s. It is a convention: a job that ran
#: for t seconds is given t times this many operations on each of its hosts, and so runs for t seconds on a
#: host of this speed, and for t/2 on one that is twice as fast.
LOG_SPEED = 1e9

#: What a log says about a job and its ``extra`` repeats; -1 stands for nothing.
EXTRA = ("user", "group", "executable", "queue", "partition")

#: No number of a log is larger, so that each is exact.
LARGEST = 2**53

_COMMENT = re.compile(r";\s*(?:([A-Za-z]\w*):(?=\s|$))?\s*(.*)")


def header_of(comments: Iterable[bytes]) -> dict[str, str]:
    """The comments by their keys; a line without a key goes on with the one before it."""
    header: dict[str, list[str]] = {}
    key = ""
    for comment in comments:
        parts = _COMMENT.match(comment.decode(errors="replace").strip())
        assert parts is not None
        key = parts[1] or key
        if parts[1] or parts[2]:
            header.setdefault(key, []).append(parts[2])
    return {key: "\n".join(lines) for key, lines in header.items()}


def machine_size(header: Mapping[str, str]) -> int | None:
    """Processors of the recorded machine, as far as the header says."""
    for key in ("MaxProcs", "MaxNodes"):
        if number := re.match(r"\d{1,18}(?!\d)", header.get(key, "")):
            return int(number[0])
    return None


def extra_of(values: Iterable[int]) -> dict[str, Any]:
    """What a job's ``extra`` says about who submitted what to where."""
    return {name: value for name, value in zip(EXTRA, values, strict=True) if value != -1}


def spelled(number: float) -> str:
    """A number as logs and the names of profiles spell it."""
    return str(int(number)) if number == int(number) else repr(number)


def check_factor(walltime_factor: float) -> None:
    """Refuse what no run time can be multiplied with to give a walltime."""
    if not (walltime_factor > 0 and isfinite(walltime_factor)):
        raise InputError(f"the walltime factor must be a positive number, not {walltime_factor}")
