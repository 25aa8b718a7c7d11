"""What both readers of SWF logs agree on: headers like ``; MaxProcs: 128``, and how records become jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import ReadOnlyDict
from batsched_py.workload.model import WalltimeRule

#: Speed of a host of the machine that a log was recorded on, in flop/s. It is a convention: a job that ran
#: for t seconds is given t times this many operations on each of its hosts, and so runs for t seconds on a
#: host of this speed, and for t/2 on one that is twice as fast.
LOG_SPEED = 1e9

#: The fields of a record that a job's ``extra`` repeats; -1 means unknown.
EXTRA = ("user", "group", "executable", "queue", "partition")

#: What the status of a job says.
FAILED, COMPLETED, CANCELLED = 0, 1, 5

#: The warning about jobs that were cancelled while they waited and are left out of a simulation: the file,
#: how many there are, of how many.
CANCELLED_LEFT_OUT = (
    "%s: left out because they were cancelled while they waited: %d of %d jobs (--cancelled withdraw keeps "
    "them in the queue until then)"
)

#: No number of a log may be larger, so that a float holds each exactly.
LARGEST = 2**53


def never_started(status: Any, run_time: Any, allocated: Any) -> Any:
    """Whether a job was cancelled while it waited, of numbers or of columns of them.

    >>> never_started(5, 0, 0), never_started(5, -1, 8), never_started(5, 0, 8), never_started(1, 0, 0)
    (True, True, False, False)
    """
    return (status == CANCELLED) & ((run_time == -1) | ((run_time == 0) & (allocated <= 0)))


def extra_fields(values: Iterable[int]) -> dict[str, Any]:
    """The ``extra`` of a job: those of the values for ``EXTRA`` that are known."""
    return ReadOnlyDict((name, value) for name, value in zip(EXTRA, values, strict=True) if value != -1)


def number_text(number: float) -> str:
    """A number as logs and the names of profiles write it."""
    return str(int(number)) if number == int(number) else repr(number)


def profile_name(run_time: float) -> str:
    """The name of the profile of jobs that ran this long."""
    return f"run_{number_text(run_time)}"


def run_time_factor(rule: WalltimeRule, walltime_factor: float) -> float:
    """A job's walltime is at least this many times its run time."""
    if not (walltime_factor > 0 and isfinite(walltime_factor)):
        raise InputError(f"the walltime factor must be a positive number, not {walltime_factor}")
    return {"at-least-run-time": 1.0, "max": walltime_factor, "requested": 0.0}[rule]


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
