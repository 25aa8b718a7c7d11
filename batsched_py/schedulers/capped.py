"""A cap on the power of the machine, under any policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Annotated

from msgspec import Meta

from batsched_py.errors import PolicyError, RuleBroken
from batsched_py.ledger.profile import AvailabilityProfile, Limit, Reservation
from batsched_py.ledger.queue import Condition
from batsched_py.ledger.resizing import Resizing
from batsched_py.ledger.running import RunningJob
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.idle_hosts import nodes_of
from batsched_py.schedulers.power import CappedResizing, PowerAccount, PowerLimit
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

    def _allows(self, size: int, duration: float) -> bool:
        watts = self.predicted + self._power.of_job(size, self.free)
        return self._power.allows(watts, self.now, self.now + duration)

    def fits(self, job: Job) -> bool:
        """Whether what a job asks for is free, and its power may be drawn for all of its walltime."""
        return super().fits(job) and self._allows(job.size, job.walltime)

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
                self._allows(size, estimate)
                and (beside is None or beside.allows(size, estimate))
                and (condition is None or condition(size, estimate))
            )

        for job in super().fitting(allowed, order, only_new, beside):
            if self._allows(job.size, job.walltime):
                yield job

    @property
    def _predicted_awake(self) -> float:
        """The power that the machine draws when those are awake that can be woken, at most."""
        others = self.hosts - self._to_wake
        return self._power.predicted(self.asleep & others, self.switching & others)

    def limit(self, job: Job) -> Limit | None:
        """The power of the job."""
        return PowerLimit(self._power, self._predicted_awake, job.size, job.walltime, self._changes)

    @property
    def _last_end(self) -> float:
        """When the last running job that must end will have ended."""
        ends = (running.expected_end for running in self.running if running.expected_end < inf)
        return max(ends, default=self.now)

    @property
    def _changes(self) -> Sequence[float]:
        """When the cap changes, until all has been seen of it that can matter to a waiting job."""
        cap, last = self._power.cap, max(self._last_end, self.now)
        return list(cap.changes(self.now, cap.settled(last) + TICK))

    def profile(self) -> AvailabilityProfile:
        """How many hosts will be free, and may draw the power of a job, and when."""
        profile = super().profile()
        free, watts = profile.free_at(self.now), self._predicted_awake
        for start, end in pairwise((self.now, *self._changes, inf)):
            allowed = self._power.nb_hosts(self._power.most(start, start) - watts)
            profile.take(start, end, max(free - allowed, 0))
        return profile

    def resizing(self) -> Resizing:
        """Other sizes of running jobs, as far as the power may be drawn."""
        return CappedResizing(super().resizing(), self._power, self.predicted, self.free, self.now)

    def switch(self, hosts: HostSet, pstate: int) -> None:
        """Switch as many of the nodes as the cap allows; the others stay as they are."""
        sleep = HostSet.of(host for host in hosts if pstate in self.machines[host].sleep_pstates)
        at_once = hosts - sleep - self.asleep
        left = hosts - at_once
        switched, watts = at_once, self.predicted
        for node in self._nodes if left else ():
            mine = node & left
            more = self._power.of_switch(mine, self.asleep)
            if mine and self._may_switch(watts + more):
                switched, watts = switched | mine, watts + more
        if switched:
            super().switch(switched, pstate)
        elif not (sleep or self.running or self.switching):
            raise PolicyError("scheduler 'capped': the cap does not suffice to wake a single node")

    def _may_switch(self, watts: float) -> bool:
        """Whether so much may be drawn while jobs run, and what is left of it without them for ever."""
        power, now = self._power, self.now
        without_jobs = watts - sum(power.more_of(running.hosts) for running in self.running)
        last = max((running.expected_end for running in self.running), default=now)
        return power.allows(watts, now, max(last, now)) and power.allows(without_jobs, now, inf)


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
    view = UnderACap

    watts: Annotated[float, Meta(gt=0, description="The most power that all hosts together may draw.")] = inf

    def begin(self, cluster: Cluster) -> None:
        """Look up what hosts draw."""
        cap = cluster.outside.power_cap
        cap = Curve([0.0], [self.watts]) if cap is None else cap.at_most(self.watts)
        power = PowerAccount(cluster.machines, cap)
        least = cap.least(0.0, inf)
        if isinstance(cluster, AmongSleepers):
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
        self._power = power
        cluster._set(_power=power, _nodes=nodes_of(cluster.machines))
        self._last, self._called_for, self._remarked = 0, 0.0, ""
        cluster.on_end(power.ended)
        cluster.on_start(self._started)
        cluster.on_resize(self._resized)
        super().begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        """Reject what can never run, then let the policy inside decide."""
        if 0 < self._called_for <= cluster.now:
            cluster._ledger.note_change()
        for arrival, job in cluster.queue._behind(self._last):
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
        if head.id != self._remarked and cluster.fits(head) and not self.seen.fits(head):
            self._remarked = head.id
            cluster.remark(head, "waits for power; hosts are free for it")

    def _started(self, running: RunningJob) -> None:
        """The policy inside may have started a job without asking whether it fits."""
        self._power.started(running)
        self._check(running, "ExecuteJob")

    def _resized(self, before: RunningJob, after: RunningJob) -> None:
        """A job has other hosts; it may have grown without asking whether it can."""
        self._power.ended(before)
        self._power.started(after)
        if after.hosts - before.hosts:
            self._check(after, "resize")

    def _check(self, running: RunningJob, decision: str) -> None:
        """The power that is drawn now may be drawn for all of the walltime of a job."""
        job, seen = running.job, self.seen
        end = running.start + job.walltime
        if not self._power.allows(seen.predicted, seen.now, end):  # type: ignore[attr-defined]
            most = self._power.cap.least(seen.now, end)
            raise seen._broke(f"{decision} {job.id}", RuleBroken(f"the cap of {most:g} W is exceeded"))
