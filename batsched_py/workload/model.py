"""What a workload is, independent of the file it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: How the walltimes of jobs are made of a log: as requested, but never less than the run time; the larger one
#: of the requested time and a multiple of the run time; or as requested alone.
WalltimeRule = Literal["at-least-run-time", "max", "requested"]

#: What becomes of the jobs of a log that were cancelled while they waited: they are left out, or they are
#: submitted and withdrawn after the time for which they had waited.
CancelledRule = Literal["leave-out", "withdraw"]

#: Whether jobs of a log wait for their preceding jobs, as the format calls them, and for their think times.
PrecedingRule = Literal["ignore", "wait"]

#: Under this name the ``extra`` of such a job says for how many seconds it had waited.
CANCELLED_AFTER = "cancelled_after"


class Workload(Struct):
    """Jobs and what they do, under one name."""

    name: str
    """The part of each job's identifier before the ``!``."""
    jobs: Sequence[Job]
    """A list, or a sequence of jobs that are made when they are asked for."""
    profiles: Mapping[str, Profile]
    nb_hosts: int | None = None
    """Size of the machine it was made for, where that is known."""
    path: str = ""
    """The file it was read from."""
    finishes: Sequence[float] | NDArray[Any] | None = None
    """When each job had finished on the machine it was recorded on, where that is known."""
    has_cancelled: bool = False
    """Whether the ``extra`` of some jobs says that they were cancelled while they waited."""
