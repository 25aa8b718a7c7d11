"""The account of the nodes: which job has what on which of them, and what is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from math import inf

import numpy as np

from batsched_py.errors import InputError, RuleBroken
from batsched_py.ledger.nodes.demand import Demand, demand_of
from batsched_py.ledger.nodes.free import FreeNodes
from batsched_py.ledger.nodes.machine import CORES, Integers, NodeMachine
from batsched_py.ledger.nodes.placement import NodeChoice, Offer, Placement, place
from batsched_py.ledger.nodes.refusal import Refusal, why_never
from batsched_py.ledger.nodes.reservation import Reservation
from batsched_py.ledger.reservation import Limit, what_comes
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.outside.closures import Closures
from batsched_py.protocol.hosts import HostSet, Run
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import Request, read_request

NOWHERE = HostSet()

#: Given the free hosts and how many are needed, which of them to take.
HostChoice = Callable[[HostSet, int], HostSet]


class NodeAccount:
    """What the jobs of a machine of nodes have, and where a job goes.

    Beside the cores of nodes, which are hosts, jobs take other resources, and licences of the whole machine.
    """

    def __init__(
        self, machine: NodeMachine, hosts: HostSet, choice: NodeChoice, selection: HostChoice | None = None
    ) -> None:
        self.machine = machine
        self.free = FreeNodes(machine, hosts)
        self._choice = choice
        self.selection = selection or HostSet.lowest
        """Which of the free cores of a node a job gets."""
        self._demands: dict[Request, Demand] = {}
        self.placements: dict[str, Placement] = {}
        """Of the jobs that run."""
        self.asked: dict[str, Demand] = {}
        """What these asked for; a job of several sizes, with the one that it has."""
        self._blocked: dict[str, HostSet] = {}
        """Hosts that nobody may use while a job runs that is exclusive."""
        self.licences = dict(machine.licences)
        """Those that are free."""
        self._chosen: dict[str, Placement] = {}
        """Where jobs go that a plan or a search has found a place for."""
        self.closures: Closures | None = None
        """When which nodes are closed, if that is known."""
        self._closed_nodes: dict[HostSet, Integers] = {}
        self._clock: Callable[[], float] = float
        self._switch_of = np.empty(len(machine.nodes), np.int64)
        for number, nodes in enumerate(machine.switches):
            self._switch_of[nodes] = number

    @property
    def are_hosts(self) -> bool:
        """Whether it does not matter to a job which of the free nodes it gets."""
        return self.machine.are_hosts and self.closures is None

    # --- requests --------------------------------------------------------------------------------

    def demand(self, job: Job) -> Demand:
        """What a job asks of this machine."""
        try:
            request = read_request(job.size, job.extra.get("request"))
            demand = self._demands.get(request)
            if demand is None:
                self._demands[request] = demand = demand_of(request, self.machine)
        except ValueError as error:
            raise InputError(f"job {job.id}: {error}") from None
        return demand

    def could_grant(self, job: Job) -> bool:
        """Whether a job would fit if nothing else ran."""
        demand = self.demand(job)
        return demand.nodes(self.machine.has) is not None and self.has_licences(demand, self.machine.licences)

    def why_never(self, job: Job) -> Refusal | None:
        """Why a job would not even fit if nothing else ran."""
        return why_never(self.demand(job), self.machine)

    def fits(self, job: Job) -> bool:
        """Whether all that a job asks for is free now."""
        demand, chosen = self.demand(job), self._chosen.get(job.id)
        if not self.has_licences(demand, self.licences):
            return False
        free = self.open_now(job)
        if chosen is not None:
            return bool((free[chosen.nodes] >= chosen.taken).all())
        return demand.nodes(free) is not None

    def has_licences(self, demand: Demand, free: Mapping[str, int]) -> bool:
        """Whether the licences that a job asks for are among these."""
        return all(free.get(name, 0) >= count for name, count in demand.request.licences)

    # --- closures --------------------------------------------------------------------------------

    def have_closures(self, closures: Closures, clock: Callable[[], float]) -> None:
        """Nodes are closed at known times; the clock tells what time it is."""
        self.closures, self._clock = closures, clock
        self._closed_nodes = {each.hosts: self._cores_of(each.hosts)[0] for each in closures.all}

    def open_now(self, job: Job) -> Integers:
        """What is free now of the nodes that stay open to a job for its walltime."""
        if self.closures is None:
            return self.free.amounts
        now = self._clock()
        return self.open_at(job.user, now, now + job.walltime, self.free.amounts)

    def open_at(self, user: str | None, start: float, end: float, free: Integers) -> Integers:
        """Of what will be free, that on nodes which are open to a user from one time to another."""
        barred = [] if self.closures is None else self.closures.barring(user, start, end)
        if barred:
            free = free.copy()
            for closure in barred:
                free[self._closed_nodes[closure.hosts]] = 0
        return free

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

    def hosts_for(self, job: Job) -> HostSet | None:
        """The hosts that a job gets, if it fits."""
        demand = self.demand(job)
        placement = self._chosen.get(job.id) or self.place(demand, self.open_now(job))
        if placement is None:
            return None
        if self.are_hosts:
            return self.selection(self.free.hosts(), job.size)
        runs: list[Run] = []
        for node, tasks in zip(placement.nodes.tolist(), placement.tasks.tolist(), strict=True):
            runs += self.selection(self.free_cores(node), tasks * demand.request.cores).runs()
        return HostSet.of_runs(_joined(runs))

    def free_cores(self, node: int) -> HostSet:
        """The hosts of a node that are free."""
        first, cores = self.machine.nodes[node].first, self.machine.nodes[node].cores
        return self.free.overlap(HostSet.of_runs(((first, first + cores - 1),)))

    # --- what happens ----------------------------------------------------------------------------

    def check(self, job: Job, hosts: HostSet) -> Placement:
        """A job is to run on free hosts: the place that this means, if it suits what the job asks for."""
        demand = self.demand(job)
        self._check_open(job, hosts, self._clock() + job.walltime)
        placement = self._placed(demand, hosts, self.free.amounts)
        if not self.has_licences(demand, self.licences):
            raise RuleBroken("the licences that the job asks for are not free")
        return placement

    def check_resize(self, running: RunningJob, hosts: HostSet) -> Placement:
        """A running job is to go on with hosts that are free or its own: the place that this means."""
        job = running.job
        self._check_open(job, hosts - running.hosts, running.start + job.walltime)
        return self._placed(self.asked[job.id], hosts, self.free_without(job))

    def free_without(self, job: Job) -> Integers:
        """What would be free on each node if a running job had ended."""
        placement, free = self.placements[job.id], self.free.amounts.copy()
        free[placement.nodes] += placement.taken
        return free

    def _check_open(self, job: Job, hosts: HostSet, end: float) -> None:
        """Hosts must stay open to a job from now on to its end."""
        for closure in [] if self.closures is None else self.closures.barring(job.user, self._clock(), end):
            if closed := hosts & closure.hosts:
                raise RuleBroken(
                    f"hosts {closed} are closed from {closure.start:g} to {closure.end:g}, and the job could "
                    "still run then"
                )

    def _placed(self, demand: Demand, hosts: HostSet, free: Integers) -> Placement:
        """The place that hosts mean, if it suits a job, and if so much of each node is free."""
        request = demand.request
        nodes, cores = self._cores_of(hosts)
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

    def _cores_of(self, hosts: HostSet) -> tuple[Integers, Integers]:
        """The nodes that hosts belong to, and how many belong to each."""
        count: dict[int, int] = {}
        for first, last in hosts.runs():
            for node in self.machine.nodes_of(first, last):
                low = self.machine.nodes[node].first
                high = low + self.machine.nodes[node].cores - 1
                count[node] = count.get(node, 0) + min(high, last) - max(low, first) + 1
        return np.array(list(count), np.int64), np.array(list(count.values()), np.int64)

    def started(self, job: Job, placement: Placement) -> None:
        """A job has taken its hosts; now it takes the rest."""
        self._chosen.pop(job.id, None)
        self.placements[job.id] = placement
        self.free.take_amounts(placement)
        self.asked[job.id] = demand = self.demand(job)
        for name, count in demand.request.licences:
            self.licences[name] -= count
        self._block(job, demand, placement)

    def resized(self, job: Job, placement: Placement) -> None:
        """A running job has gone over to other hosts; what it left is free, and it takes the rest anew."""
        self._blocked.pop(job.id, None)
        self.free.give_amounts(self.placements[job.id])
        self.free.take_amounts(placement)
        self.placements[job.id] = placement
        self._block(job, self.asked[job.id], placement)

    def _block(self, job: Job, demand: Demand, placement: Placement) -> None:
        """Keep others from the nodes of a job that must have them alone."""
        if demand.request.exclusive:
            mask = 0
            for node in placement.nodes.tolist():
                mask |= self.free_cores(node).mask
            self._blocked[job.id] = blocked = HostSet(mask)
            self.free.take(blocked)

    def ended(self, job: Job) -> HostSet:
        """A job has left its hosts and all else; these hosts may be used again, too."""
        self.free.give_amounts(self.placements.pop(job.id))
        for name, count in self.asked.pop(job.id).request.licences:
            self.licences[name] += count
        return self._blocked.pop(job.id, NOWHERE)

    def blocked_by(self, job_id: str) -> HostSet:
        """The hosts that nobody may use because of one job."""
        return self._blocked.get(job_id, NOWHERE)

    def blocked(self) -> HostSet:
        """The hosts without jobs that nobody may use, because a job is exclusive."""
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
        hosts = (running.hosts | self.blocked_by(running.job.id)) - unavailable
        nodes, cores = self._cores_of(hosts)
        taken[np.searchsorted(placement.nodes, nodes), CORES] = cores
        return placement.nodes, taken

    def reservation(
        self,
        job: Job,
        now: float,
        running: Running,
        unavailable: HostSet,
        to_wake: HostSet = NOWHERE,
        limit: Limit | None = None,
    ) -> Reservation:
        """When a job can start at the latest, if the running ones end as expected.

        Hosts ``to_wake`` count as free, and there must be enough of what a ``limit`` is about.
        """
        demand = self.demand(job)
        future, licences = self.with_cores(to_wake), dict(self.licences)
        nb_free, time = self.free.count + len(to_wake), now
        times = [] if self.closures is None else [*self.closures.ends]
        times += () if limit is None else limit.changes()
        for coming in chain([None], what_comes(now, running, times)):
            if isinstance(coming, RunningJob):
                nodes, taken = self.given_back(coming, unavailable)
                future[nodes] += taken
                nb_free += int(taken[:, CORES].sum())
                for name, count in self.asked[coming.job.id].request.licences:
                    licences[name] += count
                if limit is not None:
                    limit.job_ends(coming)
                time = max(coming.expected_end, now)
            elif coming is not None:
                time = coming
            if nb_free < job.size or not self.has_licences(demand, licences):
                continue
            left = self.open_at(job.user, time, time + job.walltime, future)
            if demand.nodes(left) is not None and (limit is None or limit.suffices(time)):
                extra = (nb_free if left is future else int(left[:, CORES].sum())) - job.size
                if limit is not None:
                    extra = min(extra, limit.extra(time))
                return Reservation(job, now, time, extra, self, demand, left, licences)
        return Reservation(job, now, inf, 0, self, demand, future, licences)

    def with_cores(self, hosts: HostSet) -> Integers:
        """What would be free on each node if these hosts were free, too."""
        amounts = self.free.amounts.copy()
        nodes, cores = self._cores_of(hosts)
        amounts[nodes, CORES] += cores
        return amounts

    def find(self, job: Job, estimate: float, beside: Reservation | None) -> Placement | None:
        """A place for a job that is free now and does not delay a reservation.

        That is where the choice of nodes says, or else where it says if the job with the reservation is
        already there.
        """
        demand = self.demand(job)
        if not self.has_licences(demand, self.licences):
            return None
        free = self.open_now(job)
        placement = self.place(demand, free)
        if placement is None or beside is None or beside.allows_at(demand, placement, estimate):
            return placement
        left = beside.left(free)
        placement = None if left is None else self.place(demand, left)
        if placement is not None and beside.allows_at(demand, placement, estimate):
            return placement
        return None


def _joined(runs: list[Run]) -> tuple[Run, ...]:
    """Intervals in order, without those that touch."""
    joined: list[Run] = []
    for first, last in runs:
        if joined and joined[-1][1] == first - 1:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return tuple(joined)
