"""Jobs that can run on several numbers of hosts.

For a *moldable* job the scheduler chooses one of them; a *malleable* job may grow and shrink while it runs.
Batsim has no words for them, but passes all further fields of a job on. The sizes of a moldable job stand in
its field ``sizes``, each with the expected run time; on a machine of nodes, a size may come with a request of
its own. What makes a job malleable stands in its field ``malleable``; only the built-in simulator makes use
of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    from fractions import Fraction

#: The field of a moldable job.
SIZES = "sizes"

_Seconds = Annotated[float, Meta(gt=0)]


class _Shape(Struct, forbid_unknown_fields=True):
    run_time: _Seconds
    request: dict[str, Any] | None = None


#: What a workload file says of each number of hosts.
_Shapes = dict[Annotated[int, Meta(ge=1)], _Seconds | _Shape]


class Shape(Struct, frozen=True):
    """A size that a job can have, and how long it is expected to run with it."""

    job: Job
    """The job as if it asked for this size."""
    run_time: float


def shapes_of(job: Job) -> list[Shape]:
    """The sizes that a job gives, the smallest first; none if it has only one.

    >>> job = Job("w0!1", 0.0, 4, 900.0, "total", {"sizes": {"2": 400, "4": {"run_time": 210}}})
    >>> [(shape.job.size, shape.run_time) for shape in shapes_of(job)]
    [(2, 400.0), (4, 210.0)]
    """
    if job.extra.get(SIZES) is None:
        return []
    try:
        shapes = msgspec.convert(dict(job.extra[SIZES]), _Shapes, strict=False)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise ValueError(f"{SIZES}: {error}") from None
    found = []
    for size, given in sorted(shapes.items(), key=lambda shape: shape[0]):
        shape = given if isinstance(given, _Shape) else _Shape(given)
        extra = dict(job.extra)
        if shape.request is not None:
            extra["request"] = shape.request
        elif extra.get("request"):
            extra["request"] = {name: value for name, value in extra["request"].items() if name != "tasks"}
        same = shape.request is None and size == job.size
        found.append(Shape(job if same else replace(job, size=size, extra=extra), shape.run_time))
    return found


def shaped(job: Job, size: int) -> Job:
    """The job as if it asked for one of its sizes; as it is, if that is no other one."""
    if size == job.size or SIZES not in job.extra:
        return job
    return next((shape.job for shape in shapes_of(job) if shape.job.size == size), job)


def have_sizes(jobs: Iterable[Job]) -> bool:
    """Whether any job gives several sizes; logs that are kept as columns have no such jobs."""
    return isinstance(jobs, list) and any(SIZES in job.extra for job in jobs)


#: The field of a malleable job.
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
        from fractions import Fraction

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
