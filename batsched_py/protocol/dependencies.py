"""What a job waits for beside hosts: ends and starts of other jobs, and a turn among the tasks of its array.

Batsim knows nothing of this. It passes all further fields of a job on, so a dependency stands in the field
``after`` of a job in a workload file, written as Slurm writes it, and an array in the field ``array``.
"""

import re
from functools import lru_cache
from typing import Any, Literal, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.shown import shown

#: What must have become of the other job: success, any end, any end but success; or its start.
EndKind = Literal["afterok", "afterany", "afternotok", "after"]

#: The kind that waits for a start; a job that is over without one will do, too.
START: EndKind = "after"

#: The fields of a job that say these things.
AFTER, ARRAY = "after", "array"

_KINDS = get_args(EndKind)
_TARGET = r"([^:,?+\s]+)(?:\+([0-9]{1,12}(?:\.[0-9]{1,6})?)s)?"
_ARRAY = r"([^:,?+%\s]+)(?:%([1-9][0-9]{0,8}))?"


class End(Struct, frozen=True, gc=False):
    """The end of a job, or of all tasks of an array; or their start."""

    kind: EndKind
    target: str
    """Its name, in the same workload unless it has the form ``WORKLOAD!NAME``."""
    delay: float = 0.0
    """So many seconds must have passed since."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}" + (f"+{self.delay:g}s" if self.delay else "")


class Dependency(Struct, frozen=True, gc=False):
    """What must have happened before a job may start."""

    ends: tuple[End, ...]
    singleton: bool = False
    """Whether all jobs of the same user and name that were submitted before must be over."""
    any: bool = False
    """Whether one of these things is enough."""

    @property
    def nb_conditions(self) -> int:
        """How many things these are."""
        return len(self.ends) + self.singleton


class Array(Struct, frozen=True, gc=False):
    """The array that a job is a task of."""

    name: str
    limit: int | None
    """How many of its tasks may wait in the queue or run at once."""


@lru_cache(maxsize=1 << 12)
def read_dependency(text: str) -> Dependency:
    """What a field ``after`` says.

    >>> read_dependency("afterok:12:13,singleton").nb_conditions
    3
    >>> str(read_dependency("afternotok:12?afterany:w1!7+90s").ends[1])
    'afterany:w1!7+90s'
    """
    if "," in text and "?" in text:
        raise ValueError(f"after: {shown(text)} has both , (all of them) and ? (any of them)")
    ends: list[End] = []
    singleton = False
    for part in re.split("[,?]", text):
        kind, *targets = part.split(":")
        if part == "singleton":
            singleton = True
        elif kind in _KINDS and targets:
            for target in targets:
                if (match := re.fullmatch(_TARGET, target)) is None:
                    raise ValueError(f"after: {shown(target)} in {shown(text)} is not the name of a job")
                ends.append(End(cast(EndKind, kind), match[1], float(match[2] or 0)))
        else:
            raise ValueError(
                f"after: {shown(part)} in {shown(text)} is none of afterok:JOB, afterany:JOB, "
                "afternotok:JOB, after:JOB and singleton"
            )
    return Dependency(tuple(dict.fromkeys(ends)), singleton, "?" in text)


@lru_cache(maxsize=1 << 12)
def read_array(text: str) -> Array:
    """What a field ``array`` says: its name, and behind a ``%`` how many tasks may run at once.

    >>> read_array("sweep%4")
    Array(name='sweep', limit=4)
    """
    match = re.fullmatch(_ARRAY, text)
    if match is None:
        raise ValueError(f"array: {shown(text)} is not of the form NAME or NAME%LIMIT")
    return Array(match[1], int(match[2]) if match[2] else None)


def depends(job: Job) -> bool:
    """Whether a job says anything about this."""
    return AFTER in job.extra or ARRAY in job.extra


def without_dependencies(job: Job) -> Job:
    """The job as one that waits for no other, and is no task of an array."""
    return replace(job, extra={key: job.extra[key] for key in job.extra if key not in (AFTER, ARRAY)})


def dependency_of(job: Job) -> Dependency | None:
    """What a job waits for, if anything."""
    text = _text(job, AFTER)
    return read_dependency(text) if text else None


def array_of(job: Job) -> Array | None:
    """The array of which a job is a task, if it is; with its full name."""
    text = _text(job, ARRAY)
    if not text:
        return None
    array = read_array(text)
    return Array(full_name(job, array.name), array.limit)


def full_name(job: Job, name: str) -> str:
    """The full identifier of what a job calls by a name."""
    return name if "!" in name else f"{job.workload}!{name}"


def _text(job: Job, field: str) -> str:
    value: Any = job.extra.get(field, "")
    if not isinstance(value, str):
        raise ValueError(f"{field}: {shown(value)} is not a text")
    return value
