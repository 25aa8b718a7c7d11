"""A job that is submitted and may not start yet, because it waits for other jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job

T = TypeVar("T")


class Held(Struct, eq=False):
    """A job that waits for others."""

    number: int
    """Its place in the order of submission."""
    job: Job
    nb_open: int
    """How many of its conditions are neither met nor known to be out of reach."""
    any: bool
    """Whether one met condition is enough."""
    met: bool | None = None
    """Whether its conditions are met, once that is known."""
    reason: str = ""
    """What decided it, in words."""


def read_field(read: Callable[[Job], T], job: Job) -> T:
    """What a field of a job says; a fault in it is told with the name of the job."""
    try:
        return read(job)
    except ValueError as error:
        raise InputError(f"job {job.id}: {error}") from None
