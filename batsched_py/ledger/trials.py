"""What is tried before it is decided: other sizes of running jobs, and hosts that wake for waiting ones.

The classes with ``Host`` in their names are for one pool of hosts; those for nodes are in
:mod:`batsched_py.ledger.node_trials`.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from batsched_py.ledger.kinds import Live
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.hosts import NOWHERE, HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import malleable_of


class Resizing(Protocol):
    """What would be free if running malleable jobs had other sizes.

    They grow and shrink step by step: by a host, or on a machine of nodes by a task. A job that has grown
    does not shrink again, or the other way round. :meth:`changes` tells what has come of it, for
    ``cluster.resize``.
    """

    def step(self, running: RunningJob) -> int:
        """By how many hosts a job grows and shrinks."""

    def shrink(self, running: RunningJob) -> bool:
        """Let a job be a step smaller; whether it can."""

    def grow(self, running: RunningJob) -> bool:
        """Let a job be a step larger; whether it can."""

    def size(self, running: RunningJob) -> int:
        """How many hosts a job has by now."""

    def fits(self, job: Job) -> bool:
        """Whether what a waiting job asks for is free then."""

    def could_fit(self, job: Job, running: Iterable[RunningJob]) -> bool:
        """Whether enough hosts could be free for a waiting job if these jobs shrink; it may still not fit."""

    @property
    def given_up(self) -> HostSet:
        """The hosts that jobs have given up so far."""

    def changes(self) -> Iterator[tuple[Job, int | HostSet]]:
        """The jobs that have another size, and that size, or their hosts; each is to be resized in turn."""


def may_go(running: RunningJob, size: int, to: int) -> bool:
    """Whether a running job may go from one size to another: away from the one that it has, within bounds."""
    malleable, own = malleable_of(running.job), running.nb_hosts
    is_away = to < size <= own or own <= size < to
    return is_away and malleable is not None and malleable.least <= to <= malleable.most


def least_size(running: RunningJob) -> int:
    """The least size that a running job may have; its own, if it is not malleable."""
    malleable = malleable_of(running.job)
    return running.nb_hosts if malleable is None else malleable.least


class HostResizing(Live):
    """On equal hosts: a job that shrinks keeps those with the lowest numbers."""

    __slots__ = ("_nb_free", "_sizes", "_unavailable")

    def __init__(self, nb_free: int, unavailable: HostSet) -> None:
        self._nb_free = nb_free
        self._unavailable = unavailable
        self._sizes: dict[str, tuple[RunningJob, int]] = {}

    def step(self, running: RunningJob) -> int:
        """One host."""
        return 1

    def size(self, running: RunningJob) -> int:
        """How many hosts a job has by now."""
        return self._sizes.get(running.job.id, (running, running.nb_hosts))[1]

    def shrink(self, running: RunningJob) -> bool:
        """Let a job give up the host with the highest number; it is free if it is not away."""
        size = self.size(running) - 1
        if not may_go(running, size + 1, size):
            return False
        if not self._unavailable:
            self._nb_free += 1
        else:
            given_up = running.hosts.lowest(size + 1) - running.hosts.lowest(size)
            self._nb_free += not given_up & self._unavailable
        self._sizes[running.job.id] = running, size
        return True

    def grow(self, running: RunningJob) -> bool:
        """Let a job have one of the free hosts."""
        size = self.size(running) + 1
        if not self._nb_free or not may_go(running, size - 1, size):
            return False
        self._nb_free -= 1
        self._sizes[running.job.id] = running, size
        return True

    def fits(self, job: Job) -> bool:
        """Whether so many hosts are free."""
        return 0 < job.size <= self._nb_free

    def could_fit(self, job: Job, running: Iterable[RunningJob]) -> bool:
        """Whether those that are free, and what these jobs have beyond their least sizes, are enough."""
        return job.size <= self._nb_free + sum(self.size(each) - least_size(each) for each in running)

    @property
    def given_up(self) -> HostSet:
        """The hosts that jobs have given up so far."""
        hosts = HostSet()
        for running, size in self._sizes.values():
            hosts = hosts | running.hosts - running.hosts.lowest(size)
        return hosts

    def changes(self) -> Iterator[tuple[Job, int | HostSet]]:
        """The jobs that have another size, in the order in which they got it."""
        return iter([(running.job, size) for running, size in self._sizes.values()])


class HostsToWake:
    """The hosts that are awake, or are to be woken, shared out among waiting jobs."""

    def __init__(self, nb_awake: int, asleep: HostSet) -> None:
        self._nb_awake = nb_awake
        self._asleep = asleep
        self.woken = NOWHERE
        """Those that jobs need and that sleep."""

    @property
    def nothing_sleeps(self) -> bool:
        """Whether all hosts are awake or woken."""
        return not self._asleep

    def take(self, job: Job) -> bool:
        """Give a job its hosts, if there are enough; those that are awake first."""
        if job.size > self._nb_awake + len(self._asleep):
            return False
        self._nb_awake -= job.size
        if self._nb_awake < 0:
            self._wake(self._asleep.lowest(-self._nb_awake))
            self._nb_awake = 0
        return True

    def _wake(self, hosts: HostSet) -> None:
        self.woken = self.woken | hosts
        self._asleep = self._asleep - hosts
