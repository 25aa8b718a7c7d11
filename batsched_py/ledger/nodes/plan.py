"""A plan on a machine of nodes: for each waiting job a reservation, with the place where it goes."""

from __future__ import annotations

from itertools import islice
from math import inf

from msgspec import Struct

from batsched_py.ledger.kinds import Live
from batsched_py.ledger.nodes.account import NOWHERE, NodeAccount
from batsched_py.ledger.nodes.demand import Demand
from batsched_py.ledger.nodes.machine import Integers
from batsched_py.ledger.nodes.placement import Placement
from batsched_py.ledger.nodes.profile import NodeProfile
from batsched_py.ledger.plan import Planned, check_running
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import TICK, Job


class _Slot(Struct, frozen=True, eq=False):
    """A time and a place."""

    start: float
    end: float
    demand: Demand
    nodes: Integers
    taken: Integers


class Plan(Live):
    """What :class:`~batsched_py.ledger.plan.Plan` is for equal hosts, on nodes."""

    __slots__ = ("_account", "_cluster", "_freed_until", "_held", "_profile", "_reserved", "_some_ended")

    def __init__(self, cluster: Planned, account: NodeAccount, to_wake: HostSet = NOWHERE) -> None:
        """Hosts ``to_wake`` count as free."""
        self._cluster = cluster
        self._account = account
        self._profile = NodeProfile(account, cluster.now, to_wake)
        self._reserved: dict[Job, tuple[_Slot, Placement] | None] = {}
        """None for a job that will never have a place, as long as hosts are unavailable."""
        self._held: dict[str, _Slot] = {}
        """What running jobs have."""
        self._some_ended = False
        self._freed_until = 0.0
        unavailable = cluster.hosts - cluster.available
        for running in cluster.running:
            end = max(running.expected_end, cluster.now + TICK)
            demand = account.asked[running.job.id]
            slot = _Slot(cluster.now, end, demand, *account.given_back(running, unavailable))
            self._profile.give(end, inf, demand, slot.nodes, slot.taken)
            self._held[running.job.id] = slot

    def advance(self) -> None:
        """Time has passed, and jobs may have left the queue; their reservations are free again."""
        self._profile.advance(self._cluster.now)
        for job in [job for job in self._reserved if job not in self._cluster.queue]:
            self._give_up(job)

    def job_ended(self, ended: RunningJob) -> None:
        """A job has ended: what it leaves of its time is free."""
        check_running(ended)
        slot = self._held.pop(ended.job.id, None)
        if slot is None:
            return
        self._profile.give(self._cluster.now, slot.end, slot.demand, slot.nodes, slot.taken)
        self._freed_until = max(self._freed_until, slot.end)
        self._some_ended = True

    def move_forward(self) -> None:
        """Let each job in turn have the earliest reservation that all others leave, if jobs have ended.

        Only where something has become free can it be earlier than before. What a job leaves behind when it
        moves may serve those after it at once, and those before it the next time.
        """
        if not self._some_ended:
            return
        freed_until, self._freed_until, self._some_ended = self._freed_until, 0.0, False
        reserved, self._reserved = self._reserved, {}
        for job, before in reserved.items():
            if before is None:
                self._reserve(job, self._earliest(job))
                continue
            slot = before[0]
            latest = min(freed_until, slot.start)
            if latest <= self._cluster.now:
                self._reserved[job] = before
                continue
            self._return(slot)
            found = self._earliest(job, latest)
            if found is None:
                self._take(job, *before)
                continue
            self._reserve(job, found)
            self._freed_until = max(self._freed_until, slot.end)
            freed_until = max(freed_until, self._freed_until)

    def reserve_new(self) -> None:
        """Give the jobs that have none a reservation."""
        for job in list(islice(self._cluster.queue, len(self._reserved), None)):
            self._reserve(job, self._earliest(job))

    def due(self) -> list[Job]:
        """The jobs whose time has come; each goes to the place that is reserved for it."""
        now, jobs = self._cluster.now, []
        for job, reserved in self._reserved.items():
            if reserved is not None and reserved[0].start <= now:
                self._account.choose(job, reserved[1])
                jobs.append(job)
        return jobs

    def job_started(self, running: RunningJob) -> None:
        """A job was started: it has its nodes in place of a reservation."""
        check_running(running)
        job = running.job
        if job in self._reserved:
            self._give_up(job)
        placement = self._account.placements.get(job.id)
        if placement is None:
            return
        demand = self._account.asked[job.id]
        slot = _Slot(running.start, running.expected_end, demand, placement.nodes, placement.taken)
        self._profile.take(slot.start, slot.end, demand, slot.nodes, slot.taken)
        self._held[job.id] = slot

    def reservations(self) -> list[tuple[Job, float]]:
        """When each job is to start."""
        return [
            (job, inf if reserved is None else reserved[0].start) for job, reserved in self._reserved.items()
        ]

    def _earliest(self, job: Job, before: float = inf) -> tuple[float, Placement] | None:
        return self._profile.earliest(self._account.demand(job), job.walltime, job.user, before)

    def _reserve(self, job: Job, found: tuple[float, Placement] | None) -> None:
        if found is None:
            self._reserved[job] = None
            return
        start, placement = found
        demand = self._account.demand(job)
        slot = _Slot(start, start + job.walltime, demand, placement.nodes, placement.taken)
        self._take(job, slot, placement)

    def _take(self, job: Job, slot: _Slot, placement: Placement) -> None:
        self._profile.take(slot.start, slot.end, slot.demand, slot.nodes, slot.taken)
        self._reserved[job] = slot, placement

    def _return(self, slot: _Slot) -> None:
        self._profile.give(slot.start, slot.end, slot.demand, slot.nodes, slot.taken)

    def _give_up(self, job: Job) -> None:
        reserved = self._reserved.pop(job)
        self._account.choose(job, None)
        if reserved is not None:
            self._return(reserved[0])
