"""What a policy sees and may do."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from math import inf

from msgspec import Struct

from batsched_py.protocol.events import CallMeLater, Event, ExecuteJob, KillJobs, RejectJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.queue import JobQueue

#: The wire rounds times to six decimals, so nothing can be asked for within less than this.
TICK = 1e-6


class RunningJob(Struct, gc=False, eq=False):
    """A job on its hosts."""

    job: Job
    hosts: HostSet
    start: float
    expected_end: float
    """When its walltime will be over."""


class Running:
    """The running jobs, ordered by expected end."""

    def __init__(self) -> None:
        self.by_end: list[tuple[float, int, RunningJob]] = []
        """Expected end, a number that breaks ties in order of start, and the job."""
        self._entry: dict[str, tuple[float, int, RunningJob]] = {}
        self._count = 0

    def add(self, running: RunningJob) -> None:
        """A job was started."""
        self._count += 1
        self._entry[running.job.id] = entry = (running.expected_end, self._count, running)
        insort(self.by_end, entry)

    def pop(self, job_id: str) -> RunningJob | None:
        """A job has ended; it is returned if it was running."""
        entry = self._entry.pop(job_id, None)
        if entry is None:
            return None
        del self.by_end[bisect_left(self.by_end, entry)]
        return entry[2]

    def __iter__(self) -> Iterator[RunningJob]:
        return (running for _, _, running in self.by_end)

    def __len__(self) -> int:
        return len(self.by_end)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._entry


class Cluster:
    """The machine with its queue, as a policy sees it at the moment it is asked.

    A policy reads ``now``, ``queue``, ``running`` and ``free``, and says what to do with :meth:`start`,
    :meth:`reject`, :meth:`kill` and :meth:`call_at`. What it says is checked before it leaves.
    """

    def __init__(self, hosts: HostSet) -> None:
        self.now = 0.0
        self.hosts = hosts
        self.nb_hosts = len(hosts)
        self.nb_free = len(hosts)
        self.queue = JobQueue()
        self.running = Running()
        self._free = hosts.mask
        self._unavailable = 0
        self._decisions: list[Event] = []

    @property
    def free(self) -> HostSet:
        """The hosts that can be given to a job now."""
        return HostSet(self._free)

    def fits(self, job: Job) -> bool:
        """Whether enough hosts are free for the job now."""
        return job.size <= self.nb_free

    def reservation(self, job: Job) -> tuple[float, int]:
        """When the job can start at the latest, and how many hosts it will leave free then.

        Running jobs are gone through in the order of their expected ends, collecting their hosts until there
        are enough: the time at which this happens is the *shadow time*, what is left over then are the
        *extra* hosts. Where that never happens, the shadow time is infinite and there is nothing extra.
        """
        free, needed = self.nb_free, job.size
        if free >= needed:
            return self.now, free - needed
        usable = ~self._unavailable
        for end, _, running in self.running.by_end:
            free += (running.hosts.mask & usable).bit_count()
            if free >= needed:
                return max(end, self.now), free - needed
        return inf, 0

    def start(self, job: Job, hosts: HostSet | None = None) -> None:
        """Run a waiting job now, on the given hosts or on the lowest-numbered free ones."""
        if hosts is None:
            hosts = HostSet(self._free).lowest(job.size)
        self._free &= ~hosts.mask
        self.nb_free = self._free.bit_count()
        self.queue.discard(job)
        self.running.add(RunningJob(job, hosts, self.now, self.now + job.walltime))
        self._decisions.append(ExecuteJob(job.id, hosts, time=self.now))

    def reject(self, job: Job) -> None:
        """Refuse a waiting job for good."""
        self.queue.discard(job)
        self._decisions.append(RejectJob(job.id, time=self.now))

    def kill(self, job: Job) -> None:
        """Stop a running job; it leaves its hosts when the simulator says so."""
        self._decisions.append(KillJobs([job.id], time=self.now))

    def call_at(self, time: float) -> None:
        """Ask to be called at a time in the future."""
        if self.now < time < self.now + TICK:
            time = self.now + TICK
        self._decisions.append(CallMeLater(time, time=self.now))

    def take_decisions(self) -> list[Event]:
        """What was said since the last time this was asked."""
        decisions, self._decisions = self._decisions, []
        return decisions

    def release(self, job_id: str) -> None:
        """A job has ended: its hosts are free again, except those that were taken away meanwhile."""
        running = self.running.pop(job_id)
        if running is not None:
            self._free |= running.hosts.mask & ~self._unavailable
            self.nb_free = self._free.bit_count()

    def take_away(self, hosts: HostSet) -> None:
        """Hosts became unavailable."""
        self._unavailable |= hosts.mask
        self._free &= ~hosts.mask
        self.nb_free = self._free.bit_count()

    def give_back(self, hosts: HostSet) -> None:
        """Hosts became available again; those with a job on them are free when it ends."""
        self._unavailable &= ~hosts.mask
        free = (hosts & self.hosts).mask
        for running in self.running:
            free &= ~running.hosts.mask
        self._free |= free
        self.nb_free = self._free.bit_count()
