"""What is free of a machine of nodes: of each node its cores and what else it has, and the licences of all.

Its class has the methods of the one for a single pool, in :mod:`batsched_py.ledger.free`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from batsched_py.errors import InputError, RuleBroken
from batsched_py.ledger.free import FreeHosts, HostChoice
from batsched_py.ledger.node_profile import NodeProfile, NodesAhead
from batsched_py.ledger.nodes import (
    CORES,
    Demand,
    Integers,
    NodeChoice,
    NodeMachine,
    Offer,
    Placement,
    Refusal,
    demand_of,
    place,
    why_never,
)
from batsched_py.ledger.profile import Ahead, JobProfile, Reservation, Seen, reserve
from batsched_py.ledger.queue import Condition, JobQueue, Score
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.ledger.trials import HostResizing, HostsToWake, Resizing
from batsched_py.outside.closures import Closures
from batsched_py.protocol.hosts import NOWHERE, HostSet, Run
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import Amounts, Request, read_request


class Licensed(Protocol):
    """What asks for licences."""

    @property
    def licences(self) -> Amounts:
        """How many of which."""


class Licences:
    """Licences of the whole machine that are free: a limit beside its nodes."""

    __slots__ = ("free",)

    def __init__(self, free: Mapping[str, int]) -> None:
        self.free = dict(free)

    def suffice(self, job: Licensed) -> bool:
        """Whether those that a job asks for are among these."""
        return all(self.free.get(name, 0) >= count for name, count in job.licences)

    def take(self, job: Licensed) -> None:
        """A job has those that it asks for."""
        for name, count in job.licences:
            self.free[name] -= count

    def give(self, job: Licensed) -> None:
        """It gives them back."""
        for name, count in job.licences:
            self.free[name] += count

    def copy(self) -> Licences:
        """As many of each."""
        return Licences(self.free)


class FreeNodes(FreeHosts):
    """The free hosts, the free amounts of each resource of the nodes, and where a job goes.

    A host that is taken or given is a core of its node. Other resources of nodes, and licences of the whole
    machine, are taken and given by jobs.
    """

    def __init__(
        self, machine: NodeMachine, hosts: HostSet, choice: NodeChoice, selection: HostChoice | None = None
    ) -> None:
        super().__init__(hosts, selection or HostSet.lowest)
        self.machine = machine
        self.amounts = machine.has.copy()
        """What is free of each resource, a row a node."""
        self.licences = Licences(machine.licences)
        self._choice = choice
        self._demands: dict[Request, Demand] = {}
        self._instead: dict[str, Job] = {}
        """Jobs that ask for something else than they were submitted with."""
        self.placements: dict[str, Placement] = {}
        """Of the jobs that run."""
        self.asked: dict[str, Demand] = {}
        """What these asked for; a job of several sizes, with the one that it has."""
        self._blocked: dict[str, HostSet] = {}
        """Hosts that nobody may use while a job runs that is exclusive."""
        self._chosen: dict[str, Placement] = {}
        """Where jobs go that a plan or a search has found a place for."""
        self.closures = Closures(())
        """When which nodes are closed."""
        self._closed_nodes: dict[HostSet, Integers] = {}
        self._clock: Callable[[], float] = float
        self._switch_of = np.empty(len(machine.nodes), np.int64)
        for number, nodes in enumerate(machine.switches):
            self._switch_of[nodes] = number

    def have_closures(self, closures: Closures, clock: Callable[[], float]) -> None:
        """Nodes are closed at known times; the clock tells what time it is."""
        self.closures, self._clock = closures, clock
        self._closed_nodes = {each.hosts: self.cores_of(each.hosts)[0] for each in closures.all}

    @property
    def are_hosts(self) -> bool:
        """Whether it does not matter to a job which of the free nodes it gets."""
        return self.machine.are_hosts and not self.closures.all

    # --- what jobs ask for -----------------------------------------------------------------------

    def ask_instead(self, job: Job) -> None:
        self._instead[job.id] = job

    def demand(self, job: Job) -> Demand:
        """What a job asks of this machine."""
        job = self._instead.get(job.id, job)
        try:
            request = read_request(job.size, job.extra.get("request"))
            demand = self._demands.get(request)
            if demand is None:
                self._demands[request] = demand = demand_of(request, self.machine)
        except ValueError as error:
            raise InputError(f"job {job.id}: {error}") from None
        return demand

    def could_grant(self, job: Job) -> bool:
        if not super().could_grant(job):
            return False
        demand = self.demand(job)
        return demand.nodes(self.machine.has) is not None and Licences(self.machine.licences).suffice(demand)

    def why_never(self, job: Job) -> Refusal | None:
        return why_never(self.demand(job), self.machine) if job.size > 0 else None

    def fits(self, job: Job) -> bool:
        if not super().fits(job):
            return False
        demand, chosen = self.demand(job), self._chosen.get(job.id)
        if not self.licences.suffice(demand):
            return False
        free = self.open_now(job)
        if chosen is not None:
            return bool((free[chosen.nodes] >= chosen.taken).all())
        return demand.nodes(free) is not None

    def resources(self) -> dict[str, tuple[int, int]]:
        return self.machine.totals(self.amounts, self.licences.free)

    # --- closures --------------------------------------------------------------------------------

    def open_now(self, job: Job) -> Integers:
        """What is free now of the nodes that stay open to a job for its walltime."""
        if not self.closures.all:
            return self.amounts
        now = self._clock()
        return self.open_at(job.user, now, now + job.walltime, self.amounts)

    def open_at(self, user: str | None, start: float, end: float, free: Integers) -> Integers:
        """Of what will be free, that on nodes which are open to a user from one time to another."""
        barred = self.closures.barring(user, start, end) if self.closures.all else ()
        if barred:
            free = free.copy()
            for closure in barred:
                free[self._closed_nodes[closure.hosts]] = 0
        return free

    def _check_open(self, job: Job, hosts: HostSet, end: float) -> None:
        """Hosts must stay open to a job from now on to its end."""
        for closure in self.closures.barring(job.user, self._clock(), end) if self.closures.all else ():
            if closed := hosts & closure.hosts:
                raise RuleBroken(
                    f"hosts {closed} are closed from {closure.start:g} to {closure.end:g}, and the job could "
                    "still run then"
                )

    # --- places ----------------------------------------------------------------------------------

    def place(self, demand: Demand, free: Integers) -> Placement | None:
        """Where a job goes if so much of each node is free."""
        found = demand.nodes(free)
        if found is None:
            return None
        nodes, capacities = found
        offer = Offer(demand, nodes, capacities, free[nodes], self.machine.has[nodes], self._switch_of[nodes])
        return place(offer, *self._choice(offer))

    def choose(self, job: Job, placement: Placement | None) -> None:
        """If a job is started now, let it go to this place; or again to where the choice of nodes says."""
        if placement is None:
            self._chosen.pop(job.id, None)
        else:
            self._chosen[job.id] = placement

    def chosen(self, job: Job) -> Placement | None:
        """Where a job goes that a plan or a search has found a place for."""
        return self._chosen.get(job.id)

    def hosts_for(self, job: Job) -> HostSet:
        placement = self._chosen.get(job.id) or self.place(self.demand(job), self.open_now(job))
        if placement is None:
            return self.hosts().lowest(job.size)
        return self._hosts_at(job, placement)

    def _hosts_at(self, job: Job, placement: Placement) -> HostSet:
        """The hosts that a job gets in a place."""
        assert self.selection is not None
        if self.are_hosts:
            return self.selection(self.hosts(), job.size)
        cores, runs = self.demand(job).request.cores, list[Run]()
        for node, tasks in zip(placement.nodes.tolist(), placement.tasks.tolist(), strict=True):
            runs += self.selection(self.free_cores(node), tasks * cores).runs()
        return HostSet.of_runs(joined(runs))

    def free_cores(self, node: int) -> HostSet:
        """The hosts of a node that are free."""
        return self.overlap(self.machine.hosts_of(node))

    def find(self, job: Job, estimate: float, beside: Reservation | None) -> Placement | None:
        """A place for a job that is free now and does not delay a reservation.

        That is where the choice of nodes says, or else where it says if the job with the reservation is
        already there.
        """
        demand = self.demand(job)
        if not self.licences.suffice(demand):
            return None
        free = self.open_now(job)
        placement = self.place(demand, free)
        if placement is None or beside is None or self._allows(beside, demand, placement, estimate):
            return placement
        placement = self.place(demand, self._ahead_of(beside).beside(free))
        if placement is not None and self._allows(beside, demand, placement, estimate):
            return placement
        return None

    def _allows(self, beside: Reservation, demand: Demand, placement: Placement, estimate: float) -> bool:
        """Whether a job that starts now in a place and runs for so long would not delay a reservation."""
        return beside.now + estimate <= beside.shadow_time or self._ahead_of(beside).allows(demand, placement)

    def _ahead_of(self, beside: Reservation) -> NodesAhead:
        if not isinstance(beside._nodes, NodesAhead) or not beside._nodes.is_of(self):
            raise ValueError("the reservation is not of this simulation")
        return beside._nodes

    def hosts_beside(self, job: Job, estimate: float, beside: Reservation | None) -> HostSet | None:
        placement = self.find(job, estimate, beside)
        return None if placement is None else self._hosts_at(job, placement)

    def search(
        self,
        queue: JobQueue,
        behind: int,
        condition: Condition | None,
        score: Score | None,
        beside: Reservation | None,
    ) -> Iterator[Job]:
        """Each job goes to the place that was found for it if it is started at once."""
        found = queue._search(self, behind, None, score, None)
        return self._placing(queue, found, condition, beside)

    def _placing(
        self, queue: JobQueue, found: Iterator[Job], condition: Condition | None, beside: Reservation | None
    ) -> Iterator[Job]:
        if beside is not None:
            self._ahead_of(beside)
        for job in found:
            estimate = queue.estimate(job)
            placement = self.find(job, estimate, beside)
            if placement is None:
                continue
            if condition is None or (condition(job.size, estimate) and job in queue):
                self.choose(job, placement)
                try:
                    yield job
                finally:
                    self.choose(job, None)

    # --- what happens ----------------------------------------------------------------------------

    def take_lowest(self, count: int) -> HostSet:
        hosts = self.hosts().lowest(count)
        self.take(hosts)
        return hosts

    def take(self, hosts: HostSet) -> None:
        super().take(hosts)
        self._count_cores(hosts, -1)

    def give(self, hosts: HostSet) -> None:
        super().give(hosts)
        self._count_cores(hosts, 1)

    def _count_cores(self, hosts: HostSet, sign: int) -> None:
        nodes, cores = self.cores_of(hosts)
        self.amounts[nodes, CORES] += sign * cores

    def check(self, job: Job, hosts: HostSet) -> Placement:
        demand = self.demand(job)
        self._check_open(job, hosts, self._clock() + job.walltime)
        placement = self._placed(demand, hosts, self.amounts)
        if not self.licences.suffice(demand):
            raise RuleBroken("the licences that the job asks for are not free")
        return placement

    def check_resize(self, running: RunningJob, hosts: HostSet) -> Placement:
        job = running.job
        self._check_open(job, hosts - running.hosts, running.start + job.walltime)
        placement, free = self.placements[job.id], self.amounts.copy()
        free[placement.nodes] += placement.taken
        return self._placed(self.asked[job.id], hosts, free)

    def _placed(self, demand: Demand, hosts: HostSet, free: Integers) -> Placement:
        """The place that hosts mean, if it suits a job, and if so much of each node is free."""
        request = demand.request
        nodes, cores = self.cores_of(hosts)
        if (cores % request.cores).any():
            raise RuleBroken(f"tasks of {request.cores} cores do not fill their hosts {hosts}, node by node")
        tasks = cores // request.cores
        if not any(np.isin(nodes, alternative).all() for alternative in demand.alternatives):
            raise RuleBroken(f"hosts {hosts} are not all on nodes that the job may run on")
        if not request.least_nodes <= len(nodes) <= request.most_nodes:
            raise RuleBroken(f"hosts {hosts} are on {len(nodes)} nodes, which the job does not ask for")
        if (tasks > demand.capacities(free)[nodes]).any():
            raise RuleBroken(f"the nodes of hosts {hosts} do not have free what the job asks for")
        taken = tasks[:, None] * demand.per_task + demand.per_node
        if request.exclusive:
            taken[:, CORES] = free[nodes, CORES]
        return Placement(nodes, tasks, taken)

    def cores_of(self, hosts: HostSet) -> tuple[Integers, Integers]:
        """The nodes that hosts belong to, and how many belong to each."""
        count: dict[int, int] = {}
        for first, last in hosts.runs():
            for node in self.machine.nodes_of(first, last):
                low = self.machine.nodes[node].first
                high = low + self.machine.nodes[node].cores - 1
                count[node] = count.get(node, 0) + min(high, last) - max(low, first) + 1
        return np.array(list(count), np.int64), np.array(list(count.values()), np.int64)

    def started(self, job: Job, place: Placement) -> None:
        self._chosen.pop(job.id, None)
        self.placements[job.id] = place
        self._count_others(place, -1)
        self.asked[job.id] = demand = self.demand(job)
        self.licences.take(demand)
        self._block(job, demand, place)

    def resized(self, job: Job, place: Placement) -> None:
        self._blocked.pop(job.id, None)
        self._count_others(self.placements[job.id], 1)
        self._count_others(place, -1)
        self.placements[job.id] = place
        self._block(job, self.asked[job.id], place)

    def _count_others(self, placement: Placement, sign: int) -> None:
        """Take or give back what a job takes beside cores."""
        self.amounts[placement.nodes, CORES + 1 :] += sign * placement.taken[:, CORES + 1 :]

    def _block(self, job: Job, demand: Demand, placement: Placement) -> None:
        """Keep others from the nodes of a job that must have them alone."""
        if demand.request.exclusive:
            mask = 0
            for node in placement.nodes.tolist():
                mask |= self.free_cores(node).mask
            self._blocked[job.id] = blocked = HostSet(mask)
            self.take(blocked)

    def ended(self, job: Job) -> HostSet:
        self._count_others(self.placements.pop(job.id), 1)
        self.licences.give(self.asked.pop(job.id))
        return self._blocked.pop(job.id, NOWHERE)

    def blocked(self, job_id: str | None = None) -> HostSet:
        if job_id is not None:
            return self._blocked.get(job_id, NOWHERE)
        mask = 0
        for hosts in self._blocked.values():
            mask |= hosts.mask
        return HostSet(mask)

    # --- what will be free -----------------------------------------------------------------------

    def given_back(self, running: RunningJob, unavailable: HostSet) -> tuple[Integers, Integers]:
        """What will be free on which nodes when a job ends."""
        placement = self.placements[running.job.id]
        if not unavailable:
            return placement.nodes, placement.taken
        taken = placement.taken.copy()
        taken[:, CORES] = 0
        hosts = (running.hosts | self.blocked(running.job.id)) - unavailable
        nodes, cores = self.cores_of(hosts)
        taken[np.searchsorted(placement.nodes, nodes), CORES] = cores
        return placement.nodes, taken

    def with_cores(self, hosts: HostSet) -> Integers:
        """What would be free on each node if these hosts were free, too."""
        amounts = self.amounts.copy()
        nodes, cores = self.cores_of(hosts)
        amounts[nodes, CORES] += cores
        return amounts

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
        return reserve(job, now, running, NodesAhead(self, job, unavailable, to_wake), limits, all_ends)

    def starts(self, choices: Sequence[tuple[Job, float]], seen: Seen) -> list[float]:
        return [seen.reservation(job).shadow_time for job, _ in choices]

    def job_profile(self, seen: Seen) -> JobProfile:
        return super().job_profile(seen) if self.are_hosts else NodeProfile(self, seen)

    def resizing(self, now: float, running: Running, unavailable: HostSet) -> Resizing:
        if self.are_hosts and not any("request" in each.job.extra for each in running):
            return super().resizing(now, running, unavailable)
        from batsched_py.ledger.node_trials import NodeResizing

        return NodeResizing(self, now, unavailable)

    def hosts_to_go_on(self, running: RunningJob, size: int, resizing: Resizing) -> HostSet:
        """Task by task, unless any hosts will do."""
        if isinstance(resizing, HostResizing):
            return super().hosts_to_go_on(running, size, resizing)
        while more := size - resizing.size(running):
            is_done = resizing.grow(running) if more > 0 else resizing.shrink(running)
            if not is_done or (size - resizing.size(running)) * more < 0:
                raise RuleBroken(f"there is no place for {size} hosts, in tasks of {resizing.step(running)}")
        return next((hosts for _, hosts in resizing.changes() if isinstance(hosts, HostSet)), running.hosts)

    def to_wake(self, waking: HostSet, asleep: HostSet, now: float) -> HostsToWake:
        from batsched_py.ledger.node_trials import NodesToWake

        return NodesToWake(self, waking, asleep, now)


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Intervals in order, without those that touch."""
    joined: list[Run] = []
    for first, last in runs:
        if joined and joined[-1][1] == first - 1:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return tuple(joined)
