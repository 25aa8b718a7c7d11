"""Idle hosts that sleep, under any policy."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.ledger.trials import HostsToWake
from batsched_py.protocol.hosts import NOWHERE, HostSet
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.protocol.sizes import shapes_of
from batsched_py.schedulers.base import in_library
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.idle_hosts import IdleTimes, SleepStates, nodes_of
from batsched_py.schedulers.wrapping import Wrapper


@dataclass
class Sleeping(Wrapper):
    """Around a policy: hosts that are idle for a while sleep until a waiting job needs them.

    The policy inside counts on hosts that sleep, so reservations hold, but starts jobs on those that are
    awake. When it has decided, hosts wake for jobs that wait: for those at the front of the queue, and once
    for each other job that would not delay the first one that has to wait for running jobs. While hosts
    wake, none falls asleep. The hosts of a node sleep and wake together.
    """

    name = "sleeping"

    after: Annotated[float, Meta(ge=0, description="After so many idle seconds a host is put to sleep.")] = (
        300.0
    )
    sleep_pstate: Annotated[
        int | None, Meta(description="The power state to sleep in, if not the first that a host has.")
    ] = None

    def begin(self, cluster: Cluster) -> None:
        """Look up in which power states the hosts sleep and compute."""
        cluster.count_on_sleepers()
        super().begin(cluster)
        self.sleep_states = SleepStates(cluster.machines, self.sleep_pstate)
        self._nodes = [node for node in nodes_of(cluster.machines) if node <= self.sleep_states.hosts]
        self._alone = HostSet.of(host for node in self._nodes if len(node) == 1 for host in node)
        self._shared = [node for node in self._nodes if len(node) > 1]
        self._idle = IdleTimes()
        self._waking = NOWHERE
        self._woken_for: set[str] = set()
        """The jobs behind the first that has to wait, for which hosts were woken; some still wait."""
        self._call = 0.0

    @in_library("sleeping")
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
        room = cluster.waking(self._waking)
        if room.nothing_sleeps:
            return
        reservation = None
        for job in cluster.queue:
            if reservation is None:
                if not self._finds_room(cluster, job, room):
                    reservation = cluster.reservation(job)
            elif job.id not in self._woken_for:
                allowed = reservation.allows(job.size, cluster.queue.estimate(job))
                if allowed and _may_start(cluster, job) and room.take(job):
                    self._woken_for.add(job.id)
            if room.nothing_sleeps:
                break
        if self._woken_for:
            self._woken_for &= {job.id for job in cluster.queue}
        self.sleep_states.wake(cluster, room.woken)
        self._waking = self._waking | (room.woken & cluster.switching)

    def _finds_room(self, cluster: Cluster, job: Job, room: HostsToWake) -> bool:
        """Give a job hosts, if there are enough, with any size that the policy inside may choose."""
        if not self.inner.chooses_sizes:
            return _may_start(cluster, job) and room.take(job)
        fastest = sorted(shapes_of(job), key=lambda shape: shape.run_time)
        sizes = [shape.job for shape in fastest] or [job]
        return any(_may_start(cluster, each) and room.take(each) for each in sizes)

    def _put_to_sleep(self, cluster: Cluster) -> None:
        soon = cluster.now + TICK
        for since, hosts in self._idle.since:
            if since + self.after <= soon:
                self.sleep_states.put_to_sleep(cluster, hosts)
            elif self._call <= soon:
                self._call = since + self.after
                cluster.call_at(self._call)


def _may_start(cluster: Cluster, job: Job) -> bool:
    """Whether a job has nothing to wait for but hosts, if all are awake that can be woken."""
    return not cluster.limits or all(limit.ahead(job).suffices(cluster.now) for limit in cluster.limits)
