"""Tasks that share hosts or links: the pace of some changes whenever another begins or ends.

This is SimGrid's model of parallel tasks (L07). A task first waits for the latency of its longest route. Then
it advances on all its hosts and links at one rate, which the solver finds again for all tasks that are
connected to one that began or ended.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Protocol

from msgspec import Struct

from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.computing import Computing
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.network.demand import Demand
from batsched_py.simulator.network.links import Link
from batsched_py.simulator.network.record import Record
from batsched_py.simulator.network.routing import TCP_GAMMA, Network
from batsched_py.simulator.network.solver import Fluid, Resource, Use, component, join, leave, solve


class Owner(Protocol):
    """Who has a task: the execution of a job, or a message."""

    agenda_number: int
    """Of what happens to it next, 0 if that is not known."""


#: Says that the task of its owner will be done in so many seconds, or that something else will happen then.
HappenIn = Callable[[Any, float, Callable[[Any], None] | None], None]


class FluidTask(Struct, eq=False):
    """A task under way."""

    owner: Owner
    happen_in: HappenIn
    fluid: Fluid
    left: float = 1.0
    """Which part of the whole was left at the last change of the rate."""
    since: float = 0.0
    rate: float = 0.0
    waits: bool = False
    """Whether its first bytes have not arrived yet."""
    stored: dict[int, float] | None = None
    """Bytes that storages send and receive for it, where that is recorded."""


class FluidTasks:
    """An execution model: tasks on shared hosts and links."""

    def __init__(
        self,
        computing: Computing,
        network: Network | None,
        agenda: Agenda,
        meter: Meter | None,
        record: Record | None = None,
    ) -> None:
        self._computing = computing
        self._tcp_gamma = TCP_GAMMA if network is None else network.tcp_gamma
        self._agenda = agenda
        self._meter = meter
        self._record = record
        self._hosts: dict[int, Resource] = {}
        self._links: dict[Link, Resource] = {}
        self._tasks: dict[Owner, FluidTask] = {}
        self._of: dict[Fluid, FluidTask] = {}
        self._count = 0
        self.unsettled = 0
        """How often the solver stopped before all rates were final."""

    def begin(self, owner: Owner, demand: Demand, happen_in: HappenIn) -> None:
        """A task begins, with its latency; others on its hosts and links slow down then."""
        bound = demand.network_bound(self._tcp_gamma)
        uses: dict[Resource, Use] = {}
        for host, flops in demand.flops:
            if flops > 0:
                bound = min(bound, self._computing.speed(host) / flops)
                resource = self._host(host)
                before = uses.get(resource)
                uses[resource] = (
                    Use(flops, flops)
                    if before is None
                    else Use(before.total + flops, max(before.largest, flops), before.parts + 1)
                )
        for link, amount in demand.bytes.items():
            uses[self._link(link)] = Use(amount, amount)
        if not uses:
            happen_in(owner, 0.0, None)
            return
        self._count += 1
        fluid = Fluid(self._count, uses, bound)
        task = FluidTask(owner, happen_in, fluid, since=self._agenda.clock, waits=demand.latency > 0)
        task.stored = demand.stored
        self._tasks[owner] = self._of[fluid] = task
        if task.waits:
            happen_in(owner, demand.latency, self._latency_is_over)
        else:
            self._flow(task)

    def stop(self, owner: Owner) -> None:
        """A task is under way no more; others on its hosts and links speed up."""
        task = self._tasks.pop(owner)
        del self._of[task.fluid]
        if task.waits:
            return
        neighbours = dict.fromkeys(other for resource in task.fluid.shared for other in resource.users)
        neighbours.pop(task.fluid, None)
        leave(task.fluid)
        if self._record is not None:
            self._record.ends(owner, task.fluid)
        self._solve(component(neighbours))
        if self._meter is not None:
            self._load_hosts(task.fluid)

    def has(self, owner: Owner) -> bool:
        """Whether a task of this owner is under way."""
        return owner in self._tasks

    def done(self, owner: Owner) -> float:
        """Which part of a task is done."""
        task = self._tasks[owner]
        return min(1.0 - task.left + task.rate * (self._agenda.clock - task.since), 1.0)

    def _latency_is_over(self, owner: Owner) -> None:
        task = self._tasks[owner]
        task.waits = False
        task.since = self._agenda.clock
        self._flow(task)

    def _flow(self, task: FluidTask) -> None:
        """A task begins to use its resources."""
        join(task.fluid)
        if self._record is not None:
            self._record.begins(task.owner, task.fluid, task.stored)
        task.owner.agenda_number = 0
        self._solve(component([task.fluid]))

    def _solve(self, fluids: list[Fluid]) -> None:
        """Find the rates of all tasks of a component, and when they will be done."""
        if not fluids:
            return
        if not solve(fluids):
            self.unsettled += 1
        now, agenda = self._agenda.clock, self._agenda
        for fluid in fluids:
            task, rate = self._of[fluid], fluid.rate
            if rate == task.rate:
                continue
            task.left = max(task.left - task.rate * (now - task.since), 0.0)
            task.rate, task.since = rate, now
            if task.owner.agenda_number:
                agenda.cancel(task.owner.agenda_number)
            task.happen_in(task.owner, task.left / rate, None)
            if self._record is not None:
                self._record.changes(task.owner, fluid)
            if self._meter is not None:
                self._load_hosts(fluid)

    def _load_hosts(self, fluid: Fluid) -> None:
        assert self._meter is not None
        for resource in fluid.uses:
            if resource.host >= 0:
                used = sum([use.total * other.rate for other, use in resource.users.items()])
                self._meter.put_load(resource.host, used / resource.capacity)

    def _host(self, host: int) -> Resource:
        resource = self._hosts.get(host)
        if resource is None:
            resource = self._hosts[host] = Resource(f"host {host}", inf, host=host)
        resource.capacity = self._computing.capacity(host)
        return resource

    def _link(self, link: Link) -> Resource:
        resource = self._links.get(link)
        if resource is None:
            resource = self._links[link] = Resource(link.name, link.bandwidth, link.fatpipe)
        return resource
