"""First come, first served on as few waking hosts as possible: an example of a policy that saves energy."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import TICK
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.idle_hosts import IdleTimes, SleepStates


@dataclass
class Sleeper(Scheduler):
    """First come, first served; hosts that are idle for a while sleep until the queue needs them."""

    name = "sleeper"
    uses_estimates = False
    narrows_the_machine = True

    idle_time: Annotated[
        float, Meta(ge=0, description="After so many idle seconds a host is put to sleep.")
    ] = 300.0
    sleep_pstate: Annotated[
        int | None, Meta(description="The power state to sleep in, if not the first that a host has.")
    ] = None

    def begin(self, cluster: Cluster) -> None:
        """Look up in which power states the hosts sleep and compute."""
        self._sleep_states = SleepStates(cluster.machines, self.sleep_pstate)
        self._idle = IdleTimes()
        self._waking = HostSet()
        self._call = 0.0

    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it fits; then wake hosts for those that wait, or let idle ones sleep."""
        queue = cluster.queue
        while queue and cluster.fits(queue.head):
            cluster.start(queue.head)
        self._idle.note(cluster.free & self._sleep_states.hosts, cluster.now)
        if queue:
            self._wake_up(cluster)
        else:
            self._put_to_sleep(cluster)

    def _wake_up(self, cluster: Cluster) -> None:
        self._waking = self._waking & cluster.switching
        lacking = sum(job.size for job in cluster.queue) - cluster.nb_free - len(self._waking)
        hosts = cluster.asleep.lowest(max(lacking, 0))
        self._waking = self._waking | hosts
        self._sleep_states.wake(cluster, hosts)

    def _put_to_sleep(self, cluster: Cluster) -> None:
        soon = cluster.now + TICK
        for since, hosts in self._idle.since:
            if since + self.idle_time <= soon:
                self._sleep_states.put_to_sleep(cluster, hosts)
            elif self._call <= soon:
                self._call = since + self.idle_time
                cluster.call_at(self._call)
