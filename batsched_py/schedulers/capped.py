"""A cap on the power of the machine, under any policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Annotated

from msgspec import Meta

from batsched_py.errors import PolicyError, RuleBroken
from batsched_py.ledger.availability import AvailabilityProfile
from batsched_py.ledger.queue import Condition
from batsched_py.ledger.reservation import Limit, Reservation
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.idle_hosts import nodes_of
from batsched_py.schedulers.power import PowerAccount, PowerLimit
from batsched_py.schedulers.sleeping import AmongSleepers
from batsched_py.schedulers.wrapping import View, Wrapper


class UnderACap(View):
    """Lets jobs fit, and hosts switch, only if the machine does not draw more than it may."""

    _power: PowerAccount
    _nodes: list[HostSet]

    @property
    def predicted(self) -> float:
        """The power that the machine draws now, at most."""
        return self._power.predicted(self.asleep & self.hosts, self.switching & self.hosts)

    def _allows(self, size: int) -> bool:
        return self._power.allows(self.predicted + self._power.of_job(size, self.free))

    def fits(self, job: Job) -> bool:
        """Whether what a job asks for is free, and its power may be drawn."""
        return super().fits(job) and self._allows(job.size)

    def fitting(
        self,
        condition: Condition | None = None,
        order: Order | None = None,
        only_new: bool = False,
        beside: Reservation | None = None,
    ) -> Iterator[Job]:
        """The waiting jobs that fit and whose power may be drawn, now and at the time of a reservation."""

        def allowed(size: int, estimate: float) -> object:
            return (
                self._allows(size)
                and (beside is None or beside.allows(size, estimate))
                and (condition is None or condition(size, estimate))
            )

        return super().fitting(allowed, order, only_new, beside)

    @property
    def _predicted_awake(self) -> float:
        """The power that the machine draws when those are awake that can be woken, at most."""
        others = self.hosts - self.to_wake
        return self._power.predicted(self.asleep & others, self.switching & others)

    def limit(self, job: Job) -> Limit | None:
        """The power of the job."""
        return PowerLimit(self._power, self._predicted_awake, job.size)

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and may draw the power of a job, and when."""
        profile = super().profile()
        now = profile.free_at(self.now)
        allowed = PowerLimit(self._power, self._predicted_awake, 0).extra()
        profile.take(self.now, inf, max(now - allowed, 0))
        return profile

    def switch(self, hosts: HostSet, pstate: int) -> None:
        """Switch as many of the nodes as the cap allows; the others stay as they are."""
        sleep = HostSet.of(host for host in hosts if pstate in self.machines[host].sleep_pstates)
        at_once = hosts - sleep - self.asleep
        left = hosts - at_once
        switched, watts = at_once, self.predicted
        for node in self._nodes if left else ():
            mine = node & left
            more = self._power.of_switch(mine, self.asleep)
            if mine and self._power.allows(watts + more):
                switched, watts = switched | mine, watts + more
        if switched:
            super().switch(switched, pstate)
        elif not (sleep or self.running or self.switching):
            raise PolicyError(
                f"scheduler 'capped': {self._power.cap:g} W do not suffice to wake a single node"
            )


@dataclass
class Capped(Wrapper):
    """Around a policy: jobs start only while the machine draws no more power than a cap.

    What is predicted is the most that the platform allows: the full power of each host with a job, the idle
    power of others, and what the platform says of hosts that sleep or switch. Reservations respect the cap.
    A job that would exceed it on an otherwise idle machine is rejected. Around ``sleeping``, hosts fall
    asleep and wake only as far as the cap allows.
    """

    name = "capped"
    view = UnderACap

    watts: Annotated[float, Meta(gt=0, description="The most power that all hosts together may draw.")] = inf

    def begin(self, cluster: Cluster) -> None:
        """Look up what hosts draw."""
        power = PowerAccount(cluster.machines, self.watts)
        if isinstance(cluster, AmongSleepers):
            raise PolicyError(
                "scheduler 'capped': write capped(sleeping(...)), so that the cap holds for hosts "
                "that fall asleep and wake"
            )
        if not power.allows(power.idle):
            raise PolicyError(
                f"scheduler 'capped': all hosts draw {power.idle:g} W when they are idle, more than the cap "
                f"of {self.watts:g} W"
            )
        if self.watts < inf and not power.largest:
            raise PolicyError(
                "scheduler 'capped': no host says that it draws more power with a job; give hosts the "
                "property wattage_per_state in the platform file, or idle_watts and full_watts in TOML"
            )
        self._power = power
        cluster._set(_power=power, _nodes=nodes_of(cluster.machines))
        self._last = 0
        cluster.on_end(power.ended)
        cluster.on_start(self._started)
        super().begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        """Reject what can never run, then let the policy inside decide."""
        for arrival, job in cluster.queue._behind(self._last):
            self._last = arrival
            watts = self._power.idle + self._power.of_job(job.size)
            if not self._power.allows(watts):
                cluster.remark(job, f"would make the machine draw {watts:g} W")
                cluster.reject(job)
        super().schedule(cluster)

    def _started(self, running: RunningJob) -> None:
        """The policy inside may have started a job without asking whether it fits."""
        self._power.started(running)
        if not self._power.allows(self.seen.predicted):  # type: ignore[attr-defined]
            job = running.job
            raise self.seen._broke(
                f"ExecuteJob {job.id}", RuleBroken(f"the cap of {self.watts:g} W is exceeded")
            )
