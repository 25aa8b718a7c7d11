"""Decisions that a policy makes as events: each is checked field by field, and kept as a copy."""

from collections.abc import Callable
from operator import index
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.ledger.kinds import expected
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import checked
from batsched_py.protocol.jobs import Job, JobState, first_tick_from
from batsched_py.protocol.profiles import Profile

T = TypeVar("T")


def own_copy(decision: object, now: float) -> ev.Event:
    """The same decision at ``now``, which the policy cannot change any more."""
    if not isinstance(decision, ev.Event):
        raise expected("an Event", decision)
    fields = {name: getattr(decision, name) for name in decision.__struct_fields__}
    for name, value in fields.items():
        if (check := _CHECKS.get(name)) is not None:
            try:
                fields[name] = check(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{type(decision).__name__}.{name}: {error}") from None
    return replace(decision, **fields | {"time": now})


def _a(kind: type[T]) -> Callable[[Any], T]:
    def check(value: Any) -> T:
        if not isinstance(value, kind):
            raise expected(f"{'an' if kind.__name__[0] in 'aeiouI' else 'a'} {kind.__name__}", value)
        return value

    return check


def _optional(check: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else check(value)


def _list(check: Callable[[Any], T]) -> Callable[[Any], list[T]]:
    def check_each(values: Any) -> list[T]:
        if isinstance(values, str):
            raise expected("a list", values)
        return [check(value) for value in values]

    return check_each


def _job(value: Any) -> Job:
    job = _a(Job)(value)
    _a(str)(job.id), _a(str)(job.profile)
    return replace(
        job,
        size=index(job.size),
        submission_time=float(job.submission_time),
        walltime=float(job.walltime),
    )


#: What each field of a decision is made of.
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "at": lambda time: first_tick_from(float(time)),
    "hosts": checked,
    "io_job": _optional(_a(ev.IoJob)),
    "job": _job,
    "job_id": _a(str),
    "job_ids": _list(_a(str)),
    "mapping": _optional(_list(index)),
    "message": _a(str),
    "metadata": _a(str),
    "name": _a(str),
    "profile": _a(Profile),
    "pstate": index,
    "seconds": float,
    "state": _a(JobState),
    "storage_mapping": _optional(dict),
    "workload": _a(str),
}


#: How a file of remarks begins.
HEADER = "time,job_id,start,text\n"


class Remark(Struct, frozen=True, gc=False):
    """A remark on a job."""

    time: float
    """When it was made."""
    job_id: str
    text: str
    start: float | None = None
    """By when the job is to start, if the remark is about that: its reservation."""


def remark_writer(write: Callable[[str], object]) -> Callable[[Remark], None]:
    """What writes remarks, a line each."""
    import csv
    import io

    def write_line(remark: Remark) -> None:
        line = io.StringIO()
        start = "" if remark.start is None else f"{remark.start:.6f}"
        cells = [f"{remark.time:.6f}", remark.job_id, start, remark.text]
        csv.writer(line, lineterminator="\n").writerow(cells)
        write(line.getvalue())

    return write_line
