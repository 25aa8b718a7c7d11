"""Idle hosts that sleep, under any policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.ledger.free_nodes import NodeAccount
from batsched_py.ledger.nodes import CORES, Integers, Placement
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.protocol.sizes import shapes_of
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.idle_hosts import Beds, IdleTimes, nodes_of
from batsched_py.schedulers.wrapping import NOWHERE, View, Wrapper


class AmongSleepers(View):
    """Counts on hosts that sleep or are switching: they will be free when a job needs them."""

    @property
    def _to_wake(self) -> HostSet:
        return super()._to_wake | ((self.asleep | self.switching) & self.available & self.hosts)


@dataclass
class Sleeping(Wrapper):
    """Around a policy: hosts that are idle for a while sleep until a waiting job needs them.

    The policy inside counts on hosts that sleep, so reservations hold, but starts jobs on those that are
    awake. When it has decided, hosts wake for jobs that wait: for those at the front of the queue, and once
    for each other job that would not delay the first one that has to wait for running jobs. While hosts
    wake, none falls asleep. The hosts of a node sleep and wake together.
    """

    name = "sleeping"
    view = AmongSleepers

    after: Annotated[float, Meta(ge=0, description="After so many idle seconds a host is put to sleep.")] = (
        300.0
    )
    sleep_pstate: Annotated[
        int | None, Meta(description="The power state to sleep in, if not the first that a host has.")
    ] = None

    def begin(self, cluster: Cluster) -> None:
        """Look up in which power states the hosts sleep and compute."""
        super().begin(cluster)
        self._beds = Beds(cluster.machines, self.sleep_pstate)
        self._nodes = [node for node in nodes_of(cluster.machines) if node <= self._beds.hosts]
        self._alone = HostSet.of(host for node in self._nodes if len(node) == 1 for host in node)
        self._shared = [node for node in self._nodes if len(node) > 1]
        self._idle = IdleTimes()
        self._waking = NOWHERE
        self._woken_for: set[str] = set()
        """The jobs behind the first that has to wait, for which hosts were woken; some still wait."""
        self._call = 0.0

    def schedule(self, cluster: Cluster) -> None:
        """Let the policy inside decide, then wake hosts for waiting jobs, or let idle ones sleep."""
        super().schedule(cluster)
        self._idle.note(self._idle_nodes(cluster.free), cluster.now)
        self._waking = self._waking & cluster.switching
        if cluster.queue:
            self._wake_up(cluster)
        if not self._waking:
            self._put_to_sleep(cluster)

    def _idle_nodes(self, free: HostSet) -> HostSet:
        """The free hosts of nodes all of whose hosts are free and can sleep."""
        idle = free & self._alone
        for node in self._shared:
            if node <= free:
                idle = idle | node
        return idle

    def _wake_up(self, cluster: Cluster) -> None:
        asleep = cluster.asleep & cluster.available
        if not asleep:
            return
        room = _room(cluster, self._waking, asleep, self._nodes)
        reservation = None
        for job in cluster.queue:
            if reservation is None:
                if not any(self._may_start(each) and room.take(each) for each in self._sizes(job)):
                    reservation = self.seen.reservation(job)
            elif job.id not in self._woken_for:
                estimate = cluster.queue.estimate(job)
                if self._may_start(job) and reservation.allows(job.size, estimate) and room.take(job):
                    self._woken_for.add(job.id)
            if room.nothing_sleeps:
                break
        self._woken_for &= {job.id for job in cluster.queue}
        self._beds.wake(cluster, room.woken)
        self._waking = self._waking | (room.woken & cluster.switching)

    def _sizes(self, job: Job) -> list[Job]:
        """A job with each size that the policy inside may choose, the one that ends first before others."""
        if not self.inner.chooses_sizes:
            return [job]
        fastest = sorted(shapes_of(job), key=lambda shape: shape.run_time)
        return [shape.job for shape in fastest] or [job]

    def _may_start(self, job: Job) -> bool:
        """Whether a job has nothing to wait for but hosts."""
        limit = self.seen.limit(job)
        return limit is None or limit.suffices(self.seen.now)

    def _put_to_sleep(self, cluster: Cluster) -> None:
        soon = cluster.now + TICK
        for since, hosts in self._idle.since:
            if since + self.after <= soon:
                self._beds.put_to_sleep(cluster, hosts)
            elif self._call <= soon:
                self._call = since + self.after
                cluster.call_at(self._call)


class _Room:
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


class _NodeRoom(_Room):
    """The same on a machine of nodes, each of which wakes as a whole."""

    def __init__(
        self, account: NodeAccount, awake: HostSet, asleep: HostSet, nodes: list[HostSet], now: float
    ) -> None:
        super().__init__(0, asleep)
        self._account = account
        self._awake = account.with_cores(awake)
        self._nodes = {next(iter(node)): node for node in nodes}
        self._now = now

    def take(self, job: Job) -> bool:
        """Give a job its nodes: those that a plan has chosen, or else those that are awake first."""
        account = self._account
        everything = self._awake + account.with_cores(self._asleep) - account.with_cores(NOWHERE)
        found = account.chosen(job)
        if found is None:
            found = self._place(job, self._awake)
        if found is None:
            found = self._place(job, everything)
        if found is None or (everything[found.nodes] < found.taken).any():
            return False
        for number in found.nodes.tolist():
            first = account.machine.nodes[number].first
            node = self._nodes.get(first, NOWHERE) & self._asleep
            self._awake[number, CORES] += len(node)
            self._wake(node)
        self._awake[found.nodes] -= found.taken
        return bool(np.all(self._awake[found.nodes] >= 0))

    def _place(self, job: Job, free: Integers) -> Placement | None:
        """Where a job goes, on nodes that stay open to it."""
        account = self._account
        free = account.open_at(job.user, self._now, self._now + job.walltime, free)
        return account.place(account.demand(job), free)


def _room(cluster: Cluster, waking: HostSet, asleep: HostSet, nodes: list[HostSet]) -> _Room:
    """The hosts that waiting jobs can have, now or when they are awake."""
    account = cluster._ledger.nodes
    if account is None:
        return _Room(cluster.nb_free + len(waking), asleep)
    return _NodeRoom(account, waking, asleep, nodes, cluster.now)
