"""Moldable jobs: those that can run on several numbers of hosts, of which the scheduler chooses one.

Batsim passes all further fields of a job on, so the sizes of a job stand in its field ``sizes``, each with
the expected run time. On a machine of nodes, a size may come with a request of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.protocol.jobs import Job

#: The field of a job that says so.
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
    given = job.extra.get(SIZES)
    if given is None:
        return []
    try:
        shapes = msgspec.convert(dict(given), _Shapes, strict=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{SIZES}: {error}") from None
    return [_shape(job, size, shapes[size]) for size in sorted(shapes)]


def shaped(job: Job, size: int) -> Job:
    """The job as if it asked for one of its sizes; as it is, if that is no other one."""
    if size == job.size or SIZES not in job.extra:
        return job
    return next((shape.job for shape in shapes_of(job) if shape.job.size == size), job)


def have_sizes(jobs: Iterable[Job]) -> bool:
    """Whether any job gives several sizes; logs that are kept as columns have no such jobs."""
    return isinstance(jobs, list) and any(SIZES in job.extra for job in jobs)


def _shape(job: Job, size: int, given: float | _Shape) -> Shape:
    run_time = given.run_time if isinstance(given, _Shape) else given
    request: Mapping[str, Any] | None = given.request if isinstance(given, _Shape) else None
    if request is None and size == job.size:
        return Shape(job, run_time)
    extra = dict(job.extra)
    if request is None and extra.get("request"):
        request = {name: value for name, value in extra["request"].items() if name != "tasks"}
    if request is not None:
        extra["request"] = request
    return Shape(replace(job, size=size, extra=extra), run_time)
