"""Other sizes of running jobs, under a cap on power."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from batsched_py.ledger.kinds import Live
from batsched_py.ledger.resizing import Resizing
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.power import PowerAccount


class CappedResizing(Live):
    """Jobs grow only as far as the power may be drawn until the last of their walltimes is over.

    Hosts that jobs give up draw no power of theirs any longer. Those that they get are taken to be the ones
    that draw most of all that are free.
    """

    __slots__ = ("_free", "_inside", "_nb_more", "_now", "_power", "_predicted", "_until")

    def __init__(
        self, inside: Resizing, power: PowerAccount, predicted: float, free: HostSet, now: float
    ) -> None:
        self._inside = inside
        self._power = power
        self._predicted = predicted
        self._free = free
        self._now = now
        self._nb_more = 0
        """How many hosts jobs have got so far."""
        self._until = now
        """When the last of these jobs is over."""

    def step(self, running: RunningJob) -> int:
        """By how many hosts a job grows and shrinks."""
        return self._inside.step(running)

    def size(self, running: RunningJob) -> int:
        """How many hosts a job has by now."""
        return self._inside.size(running)

    def shrink(self, running: RunningJob) -> bool:
        """Let a job be a step smaller; whether it can."""
        return self._inside.shrink(running)

    def grow(self, running: RunningJob) -> bool:
        """Let a job be a step larger; whether it can, and may draw the power."""
        step, until = self.step(running), max(self._until, running.start + running.job.walltime)
        if not (self._allows(step, until) and self._inside.grow(running)):
            return False
        self._nb_more += step
        self._until = until
        return True

    def fits(self, job: Job) -> bool:
        """Whether what a waiting job asks for is free then, and its power may be drawn."""
        return self._inside.fits(job) and self._allows(job.size, self._now + job.walltime)

    def most_free(self, running: Iterable[RunningJob]) -> int:
        """How many hosts will be free at most if these jobs shrink."""
        return self._inside.most_free(running)

    @property
    def given_up(self) -> HostSet:
        """The hosts that jobs have given up so far."""
        return self._inside.given_up

    def changes(self) -> Iterator[tuple[Job, int | HostSet]]:
        """The jobs that have another size."""
        return self._inside.changes()

    def _allows(self, nb_hosts: int, end: float) -> bool:
        """Whether so many hosts more may draw the power of a job until a time."""
        given_up = self.given_up
        watts = self._predicted - self._power.more_of(given_up)
        watts += self._power.of_job(self._nb_more + nb_hosts, self._free | given_up)
        return self._power.allows(watts, self._now, end)
