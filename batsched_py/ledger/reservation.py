"""Reservations: when a job that does not fit now will start at the latest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from batsched_py.ledger.kinds import count, expected, number
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import Job


class Limit(Protocol):
    """What a job has to wait for beside hosts, such as power; running jobs give it back when they end."""

    def suffices(self, time: float) -> bool:
        """Whether there is enough of it for a job that starts then."""

    def job_ends(self, running: RunningJob) -> None:
        """A running job gives back what it has of it."""

    def extra(self, time: float) -> int:
        """For how many hosts more it suffices then."""

    def changes(self) -> Sequence[float]:
        """When there will be more or less of it, although no job ends."""


def what_comes(
    now: float, running: Iterable[RunningJob], times: Iterable[float]
) -> Iterator[RunningJob | float]:
    """The jobs that will end and the times at which other things change, in order."""
    later: Sequence[RunningJob | float] = sorted(time for time in times if time > now)
    return merge(running, later, key=_time_of) if later else iter(running)


def _time_of(coming: RunningJob | float) -> float:
    return coming.expected_end if isinstance(coming, RunningJob) else coming


class Reservation(Struct, frozen=True, gc=False, eq=False):
    """The promise to a job that it starts at the *shadow time* at the latest.

    At that time it leaves so many hosts free, the *extra* ones. A job that starts now does not delay it if it
    ends by the shadow time or needs no other hosts than extra ones. ``shadow_time, extra = reservation``
    gives both numbers.
    """

    job: Job
    now: float
    shadow_time: float
    """Infinite if the job can never start."""
    extra: int

    def __iter__(self) -> Iterator[float]:
        return iter((self.shadow_time, self.extra))

    def allows(self, size: int, estimate: float) -> bool:
        """Whether a job of this size that starts now and runs for so long would not delay it."""
        return self._allows(count(size), number(estimate))

    def _allows(self, size: int, estimate: float) -> bool:
        return self.now + estimate <= self.shadow_time or size <= self.extra

    def _allows_each(self, sizes: Any, estimates: Any) -> Any:
        """The same for whole columns of jobs."""
        return (self.now + estimates <= self.shadow_time) | (sizes <= self.extra)

    def admit(self, running: RunningJob) -> None:
        """A job was started beside it: one that does not end by the shadow time has taken extra hosts."""
        if not isinstance(running, RunningJob):
            raise expected("a RunningJob", running)
        if running.expected_end > self.shadow_time:
            force_setattr(self, "extra", self.extra - running.nb_hosts)
