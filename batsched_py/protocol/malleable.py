"""Malleable jobs: those that may grow and shrink while they run.

Batsim has no words for them. It passes all further fields of a job on, so what makes a job malleable stands
in its field ``malleable``; only the built-in simulator makes use of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job

#: The field of a job that says so.
MALLEABLE = "malleable"

_Count = Annotated[int, Meta(ge=1)]


class Malleable(Struct, frozen=True, gc=False):
    """On how many hosts a job may run, and how much faster more of them make it."""

    least: int
    most: int
    sequential: float = 0.0
    """The share of its work that one host does while all others wait: Amdahl's law."""

    def speedup(self, hosts: int) -> Fraction:
        """How many times faster so many hosts are than one; without a sequential share, as many times.

        >>> Malleable(1, 8).speedup(4), Malleable(1, 8, 0.5).speedup(4)
        (Fraction(4, 1), Fraction(8, 5))
        """
        share = Fraction(repr(self.sequential))
        return 1 / (share + (1 - share) / hosts)

    def __str__(self) -> str:
        return f"{self.least} to {self.most} hosts"


class _Fields(Struct, forbid_unknown_fields=True):
    """What a workload file says."""

    min: _Count
    max: _Count
    sequential: Annotated[float, Meta(ge=0, lt=1)] = 0.0


def read_malleable(size: int, fields: Mapping[str, Any]) -> Malleable:
    """What the field ``malleable`` of a job of a size says.

    >>> read_malleable(4, {"min": 2, "max": 16})
    Malleable(least=2, most=16, sequential=0.0)
    """
    return _read(size, msgspec.json.encode(fields))


@lru_cache(maxsize=1 << 12)
def _read(size: int, text: bytes) -> Malleable:
    try:
        given = msgspec.json.decode(text, type=_Fields)
    except msgspec.ValidationError as error:
        raise ValueError(f"{MALLEABLE}: {error}") from None
    if not given.min <= size <= given.max:
        raise ValueError(f"{MALLEABLE}: the {size} hosts of res are not from {given.min} to {given.max}")
    return Malleable(given.min, given.max, given.sequential)


def malleable_of(job: Job) -> Malleable | None:
    """How a job may grow and shrink, if it may."""
    fields = job.extra.get(MALLEABLE)
    return None if fields is None else read_malleable(job.size, fields)


def first_malleable(jobs: Iterable[Job]) -> Job | None:
    """The first job that may grow and shrink; logs that are kept as columns have no such jobs."""
    return next((job for job in jobs if MALLEABLE in job.extra), None) if isinstance(jobs, list) else None


def refuse_in_messages(jobs: Iterable[Job]) -> None:
    """What these jobs need is said by messages of Batsim's protocol, which must suffice for it."""
    if (job := first_malleable(jobs)) is not None:
        raise InputError(
            f"job {job.id} is malleable, and Batsim has no words for jobs that grow and shrink; use "
            "`batsched-py run`, with a scheduler of ours and without a scheduling delay, or take the field "
            f"`{MALLEABLE}` out"
        )
