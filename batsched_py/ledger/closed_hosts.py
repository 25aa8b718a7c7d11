"""What is free of equal hosts that are closed at known times.

Where no closure matters, any free hosts will do for a job, and they are counted as on a machine without
closures. Where one does, it matters which hosts they are. Plans and jobs that change their size see each host
as a node, of which the tables are made when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from batsched_py.ledger.free import FreeHosts, HostChoice
from batsched_py.ledger.free_nodes import FreeNodes
from batsched_py.ledger.nodes import CORES, PLACES, Demand, Integers, NodeChoice, NodeMachine, Placement
from batsched_py.ledger.profile import Ahead, Reservation, reserve
from batsched_py.ledger.queue import Condition, JobQueue, Score
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.outside.closures import Closure
from batsched_py.protocol.hosts import NOWHERE, HostSet
from batsched_py.protocol.jobs import Job


class Made(dict[str, Any]):
    """Something of each running job, made when it is asked for."""

    def __init__(self, make: Callable[[Job, HostSet], Any], jobs: Mapping[str, tuple[Job, HostSet]]) -> None:
        super().__init__()
        self._make = make
        self._jobs = jobs

    def __missing__(self, job_id: str) -> Any:
        self[job_id] = made = self._make(*self._jobs[job_id])
        return made

    def get(self, job_id: str, default: Any = None) -> Any:
        """What is made of a job, if it runs."""
        return self[job_id] if job_id in self._jobs else default


def closed_by(closures: Iterable[Closure]) -> HostSet:
    """All hosts that these closures close."""
    mask = 0
    for closure in closures:
        mask |= closure.hosts.mask
    return HostSet(mask)


class OpenHostsAhead:
    """The hosts that a job has to wait for, which have to be open to it: how many, and which if that matters.

    A reservation keeps it as it is at the shadow time, before the job starts.
    """

    __slots__ = ("_closed", "_count", "_ended", "_free", "_job", "_machine", "_taken", "_unavailable")

    def __init__(self, machine: ClosedHosts, job: Job, unavailable: HostSet, to_wake: HostSet) -> None:
        self._machine = machine
        self._job = job
        self._unavailable = unavailable
        self._free = machine.hosts()
        self._ended = [to_wake]
        self._count = machine.count + len(to_wake)
        """How many hosts will be free, closed ones included."""
        self._closed = NOWHERE
        self._taken = 0
        """The hosts of jobs that were started since, as a mask."""

    def is_of(self, machine: ClosedHosts) -> bool:
        """Whether this is about the same machine in the same simulation."""
        return self._machine is machine

    @property
    def at_shadow_time(self) -> OpenHostsAhead:
        """Itself."""
        return self

    def changes(self) -> Sequence[float]:
        """When hosts open again."""
        return self._machine.closures.ends

    def job_ends(self, running: RunningJob) -> None:
        """The hosts of a running job are free, but for those that were taken away."""
        hosts = running.hosts - self._unavailable if self._unavailable else running.hosts
        self._count += running.nb_hosts if hosts is running.hosts else len(hosts)
        self._ended.append(hosts)

    def suffices(self, time: float) -> bool:
        """Whether there are enough for the job from a time on, for its walltime."""
        job, self._closed = self._job, NOWHERE
        if self._count < job.size:
            return False
        barred = self._machine.barring(job, time)
        if not barred:
            return True
        self._closed = closed_by(barred)
        return self.left.bit_count() >= job.size

    def extra(self, time: float) -> int:
        """How many hosts are left over."""
        return (self.left.bit_count() if self._closed else self._count) - self._job.size

    @property
    def all_are_open(self) -> bool:
        """Whether the job may have any of the hosts that will be free then."""
        return not self._closed

    @property
    def left(self) -> int:
        """The hosts that the job can have then, as a mask."""
        mask = self._free.mask
        for hosts in self._ended:
            mask |= hosts.mask
        return mask & ~self._closed.mask & ~self._taken

    def allows(self, hosts: HostSet) -> bool:
        """Whether enough are left at the shadow time if another job has these then."""
        return (self.left & ~hosts.mask).bit_count() >= self._job.size

    def beside(self, free: HostSet) -> HostSet:
        """What is free now and stays free when the job with the reservation starts where it would now go."""
        left = HostSet(self.left)
        if len(left) < self._job.size:
            return NOWHERE
        return free & (left - left.lowest(self._job.size))

    def take(self, running: RunningJob) -> None:
        """A job was started that will still run at the shadow time."""
        self._taken |= running.hosts.mask


class ClosedHosts(FreeNodes):
    """The free hosts of a machine without nodes, which are closed at known times."""

    def __init__(
        self, machine: NodeMachine, hosts: HostSet, choice: NodeChoice, selection: HostChoice | None = None
    ) -> None:
        self._table: Integers | None = None
        super().__init__(machine, hosts, choice, selection)
        self._jobs: dict[str, tuple[Job, HostSet]] = {}
        """Those that run, and their hosts."""
        self.placements = Made(self._placement, self._jobs)
        self.asked = Made(self._asked, self._jobs)

    @property
    def amounts(self) -> Integers:
        """What is free of each host as a node, a row each."""
        if self._table is None:
            table = self.machine.has.copy()
            table[:, CORES] = 0
            for first, last in self.hosts().runs():
                table[first : last + 1, CORES] = 1
            for placement in map(self.placements.__getitem__, self._jobs):
                table[placement.nodes, PLACES] -= placement.taken[:, PLACES]
            self._table = table
        return self._table

    @amounts.setter
    def amounts(self, amounts: Integers) -> None:
        self._table = None

    def _placement(self, job: Job, hosts: HostSet) -> Placement:
        nodes = np.array(list(hosts), np.int64)
        tasks = np.ones_like(nodes)
        demand = self.demand(job)
        return Placement(nodes, tasks, tasks[:, None] * demand.per_task + demand.per_node)

    def _asked(self, job: Job, hosts: HostSet) -> Demand:
        return self.demand(job)

    # --- what jobs ask for -----------------------------------------------------------------------

    def barring(self, job: Job, start: float) -> list[Closure]:
        """The closures that a job would run into, if it started then."""
        return self.closures.barring(job.user, start, start + job.walltime)

    def could_grant(self, job: Job) -> bool:
        if "request" in job.extra:
            return super().could_grant(job)
        return 0 < job.size <= self.nb_hosts

    def fits(self, job: Job) -> bool:
        if not self.fits_anywhere(job):
            return False
        if job.id in self._chosen:
            return super().fits(job)
        return not self.barring(job, self._clock()) or len(self._open_hosts(job)) >= job.size

    def hosts_for(self, job: Job) -> HostSet:
        chosen = self._chosen.get(job.id)
        if chosen is not None:
            return HostSet.of(chosen.nodes.tolist())
        hosts = self._open_hosts(job)
        return (hosts if len(hosts) >= job.size else self.hosts()).lowest(job.size)

    def hosts_beside(self, job: Job, estimate: float, beside: Reservation | None) -> HostSet | None:
        found = self._beside(job, estimate, beside)
        return self._open_hosts(job).lowest(job.size) if found is NOWHERE else found

    def _beside(self, job: Job, estimate: float, beside: Reservation | None) -> HostSet | None:
        """Hosts for a job beside a reservation, or nowhere if those that it gets anyway will do."""
        ahead = None if beside is None else self._hosts_ahead(beside)
        if not self.fits_anywhere(job):
            return None
        now = self._clock()
        barred = self.barring(job, now)
        if beside is None or ahead is None or beside.now + estimate <= beside.shadow_time:
            return NOWHERE if not barred or len(self._open_hosts(job)) >= job.size else None
        if self._matters_how_many(beside):
            if job.size > beside.extra:
                return None
            if not barred:
                return NOWHERE
        still_open = self._open_hosts(job) if barred else self.hosts()
        hosts = still_open.lowest(job.size)
        if len(hosts) == job.size and ahead.allows(hosts):
            return NOWHERE
        hosts = ahead.beside(still_open).lowest(job.size)
        return hosts if len(hosts) == job.size and ahead.allows(hosts) else None

    def fits_anywhere(self, job: Job) -> bool:
        """Whether so many hosts are free, closed ones included, of which any would do."""
        return 0 < job.size <= self.count and ("request" not in job.extra or self.could_grant(job))

    def _open_hosts(self, job: Job) -> HostSet:
        """The free hosts that stay open to a job for its walltime."""
        barred = self.barring(job, self._clock())
        return self.hosts() - closed_by(barred) if barred else self.hosts()

    def _hosts_ahead(self, beside: Reservation) -> OpenHostsAhead:
        if not isinstance(beside._nodes, OpenHostsAhead) or not beside._nodes.is_of(self):
            raise ValueError("the reservation is not of this simulation")
        return beside._nodes

    def search(
        self,
        queue: JobQueue,
        behind: int,
        condition: Condition | None,
        score: Score | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        if beside is not None and self._matters_how_many(beside):
            found = queue._search(self, behind, None, score, beside)
        else:
            found = queue._search(self, behind, None, score, None)
        for job in found:
            estimate = queue.estimate(job)
            hosts = self._beside(job, estimate, beside)
            if hosts is not None and (condition is None or (condition(job.size, estimate) and job in queue)):
                if hosts is not NOWHERE:
                    self.choose(job, self._placement(job, hosts))
                try:
                    yield job
                finally:
                    self.choose(job, None)

    def _matters_how_many(self, beside: Reservation) -> bool:
        """Whether it matters to a reservation only how many hosts other jobs take, not which."""
        return beside.now == self._clock() and self._hosts_ahead(beside).all_are_open

    # --- what happens ----------------------------------------------------------------------------

    def take_lowest(self, count: int) -> HostSet:
        self._table = None
        return FreeHosts.take_lowest(self, count)

    def take(self, hosts: HostSet) -> None:
        self._table = None
        FreeHosts.take(self, hosts)

    def give(self, hosts: HostSet) -> None:
        self._table = None
        FreeHosts.give(self, hosts)

    def check(self, job: Job, hosts: HostSet) -> Any:
        if hosts not in self:
            super().check(job, hosts)
        self._check_open(job, hosts, self._clock() + job.walltime)
        return hosts

    def started(self, job: Job, place: Any) -> None:
        self._table = None
        self._chosen.pop(job.id, None)
        self._jobs[job.id] = job, place

    def resized(self, job: Job, place: Placement) -> None:
        self._table = None
        self._jobs[job.id] = self._jobs[job.id][0], HostSet.of(place.nodes.tolist())
        self.placements.pop(job.id, None)

    def ended(self, job: Job) -> HostSet:
        self._table = None
        for known in (self._jobs, self.placements, self.asked):
            known.pop(job.id, None)
        return NOWHERE

    # --- what will be free -----------------------------------------------------------------------

    def reservation(
        self,
        job: Job,
        now: float,
        running: Running,
        unavailable: HostSet,
        to_wake: HostSet = NOWHERE,
        limits: Sequence[Ahead] = (),
        all_ends: bool = False,
    ) -> Reservation:
        ahead = OpenHostsAhead(self, job, unavailable, to_wake)
        if not (unavailable or to_wake or limits or all_ends):
            missing, time, ending = job.size - self.count, now, list[RunningJob]()
            for end, _, each in running._by_end:
                if missing <= 0:
                    break
                missing, time = missing - each.nb_hosts, max(end, now)
                ending.append(each)
            if missing <= 0 and not self.barring(job, time):
                for each in ending:
                    ahead.job_ends(each)
                return Reservation(job, now, time, ahead.extra(time), ahead)
        return reserve(job, now, running, ahead, limits, all_ends)
