"""First come, first served on as few waking hosts as possible: an example of a policy that saves energy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.protocol.clock import TICK
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


@dataclass
class Sleeper(Scheduler):
    """First come, first served; hosts that are idle for a while sleep until the queue needs them."""

    name = "sleeper"

    idle_time: Annotated[
        float, Meta(ge=0, description="After so many idle seconds a host is put to sleep.")
    ] = 300.0
    sleep_pstate: Annotated[
        int | None, Meta(description="The power state to sleep in, if not the first that a host has.")
    ] = None

    def begin(self, cluster: Cluster) -> None:
        """Look up in which power states the hosts sleep and compute; one that cannot sleep never does."""
        self._sleeps_in = {
            host.id: pstate for host in cluster.machines if (pstate := self._bed(host)) is not None
        }
        self._wakes_in = {host.id: host.computing_pstate for host in cluster.machines}
        self._sleepers = HostSet.of(self._sleeps_in)
        self._idle: list[tuple[float, HostSet]] = []
        self._waking = HostSet()
        self._call = 0.0

    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it fits; then wake hosts for those that wait, or let idle ones sleep."""
        queue = cluster.queue
        while queue and cluster.fits(queue.head):
            cluster.start(queue.head)
        self._note_idle(cluster)
        if queue:
            self._wake_up(cluster)
        else:
            self._put_to_sleep(cluster)

    def _bed(self, host: Host) -> int | None:
        states = host.sleep_pstates
        if self.sleep_pstate is None:
            return next(iter(states), None)
        return self.sleep_pstate if self.sleep_pstate in states else None

    def _note_idle(self, cluster: Cluster) -> None:
        """Keep who is idle since when, of those who can sleep."""
        free = cluster.free & self._sleepers
        idle = [(since, hosts & free) for since, hosts in self._idle]
        for _, hosts in idle:
            free = free - hosts
        self._idle = [(since, hosts) for since, hosts in (*idle, (cluster.now, free)) if hosts]

    def _wake_up(self, cluster: Cluster) -> None:
        self._waking = self._waking & cluster.switching
        lacking = sum(job.size for job in cluster.queue) - cluster.nb_free - len(self._waking)
        hosts = cluster.asleep.lowest(max(lacking, 0))
        self._waking = self._waking | hosts
        self._switch(cluster, hosts, self._wakes_in)

    def _put_to_sleep(self, cluster: Cluster) -> None:
        soon = cluster.now + TICK
        for since, hosts in self._idle:
            if since + self.idle_time <= soon:
                self._switch(cluster, hosts, self._sleeps_in)
            elif self._call <= soon:
                self._call = since + self.idle_time
                cluster.call_at(self._call)

    def _switch(self, cluster: Cluster, hosts: Iterable[int], states: dict[int, int]) -> None:
        """Switch hosts, those with the same power state together."""
        groups: dict[int, list[int]] = {}
        for host in hosts:
            groups.setdefault(states[host], []).append(host)
        for pstate, group in sorted(groups.items()):
            cluster.switch(HostSet.of(group), pstate)
