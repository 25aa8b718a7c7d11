"""A cap on the power of the machine, under any policy."""

from dataclasses import dataclass
from math import inf
from typing import Annotated

from msgspec import Meta

from batsched_py.errors import PolicyError
from batsched_py.outside.curve import Curve
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.power import PowerAccount, PowerCap
from batsched_py.schedulers.wrapping import Wrapper


@dataclass
class Capped(Wrapper):
    """Around a policy: jobs start only while the machine draws no more power than a cap.

    The cap is a number, or changes over time (``--power-cap``); then a job starts only if it may run for all
    of its walltime.
    What is predicted is the most that the platform allows: the full power of each host with a job, the idle
    power of others, and what the platform says of hosts that sleep or switch. Reservations respect the cap.
    A job that would exceed it on an otherwise idle machine is rejected. Around ``sleeping``, hosts fall
    asleep and wake only as far as the cap allows.
    """

    name = "capped"

    watts: Annotated[float, Meta(gt=0, description="The most power that all hosts together may draw.")] = inf

    def begin(self, cluster: Cluster) -> None:
        """Look up what hosts draw."""
        cap = cluster.outside.power_cap
        cap = Curve([0.0], [self.watts]) if cap is None else cap.at_most(self.watts)
        power = PowerAccount(cluster.machines, cap)
        least = cap.least(0.0, inf)
        if cluster.counts_on_sleepers:
            raise PolicyError(
                "scheduler 'capped': write capped(sleeping(...)), so that the cap holds for hosts "
                "that fall asleep and wake"
            )
        if not power.allows(power.idle, 0.0, inf):
            raise PolicyError(
                f"scheduler 'capped': all hosts draw {power.idle:g} W when they are idle, more than the cap "
                f"of {least:g} W"
            )
        if least < inf and not power.largest:
            raise PolicyError(
                "scheduler 'capped': no host says that it draws more power with a job; give hosts the "
                "property wattage_per_state in the platform file, or idle_watts and full_watts in TOML"
            )
        self._power, self._cap = power, PowerCap(cluster, power)
        self._last, self._called_for, self._remarked = 0, 0.0, ""
        cluster.put_beside(self._cap)
        super().begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        """Reject what can never run, then let the policy inside decide."""
        if 0 < self._called_for <= cluster.now:
            cluster.look_again()
        for arrival, job in cluster.joined_after(self._last):
            self._last = arrival
            watts = self._power.idle + self._power.of_job(job.size)
            if not self._power.could_allow(watts, cluster.now, job.walltime):
                cluster.remark(job, f"would make the machine draw {watts:g} W")
                cluster.reject(job)
        super().schedule(cluster)
        if cluster.heeded and cluster.queue:
            self._remark_on(cluster, cluster.queue.head)
        change = self._power.cap.next_change(cluster.now)
        if cluster.queue and self._called_for < change < inf:
            self._called_for = change
            cluster.call_at(change)

    def _remark_on(self, cluster: Cluster, head: Job) -> None:
        """Say that the head waits for power, if it does, once."""
        if head.id != self._remarked and cluster.lacks_only(self._cap, head):
            self._remarked = head.id
            cluster.remark(head, "waits for power; hosts are free for it")
