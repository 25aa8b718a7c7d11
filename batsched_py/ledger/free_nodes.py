"""The account of the nodes: which job has what on which of them, and what is left."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from math import inf
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from batsched_py.errors import InputError, RuleBroken
from batsched_py.ledger import profile
from batsched_py.ledger.free import FreeHosts
from batsched_py.ledger.kinds import Live
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
from batsched_py.ledger.profile import Limit, Planned, check_running, what_comes
from batsched_py.ledger.resizing import least_size, may_go
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.outside.closures import Closures
from batsched_py.protocol.hosts import HostSet, Run
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.protocol.requests import Request, read_request


class FreeNodes(FreeHosts):
    """The free hosts, and the free amounts of each resource of the nodes.

    A host that is taken or given is a core of its node. Other resources are taken and given by jobs.
    """

    def __init__(self, machine: NodeMachine, hosts: HostSet) -> None:
        super().__init__(hosts)
        self.amounts = machine.has.copy()
        """A row a node."""
        self._machine = machine

    def take_lowest(self, count: int) -> HostSet:
        """Take the ones with the lowest numbers."""
        hosts = self.hosts().lowest(count)
        self.take(hosts)
        return hosts

    def take(self, hosts: HostSet) -> None:
        """Take these, all of which must be free."""
        super().take(hosts)
        self._count_cores(hosts, -1)

    def give(self, hosts: HostSet) -> None:
        """Give these back, none of which is free."""
        super().give(hosts)
        self._count_cores(hosts, 1)

    def take_amounts(self, placement: Placement) -> None:
        """Take what a job takes beside cores."""
        self.amounts[placement.nodes, CORES + 1 :] -= placement.taken[:, CORES + 1 :]

    def give_amounts(self, placement: Placement) -> None:
        """Give that back."""
        self.amounts[placement.nodes, CORES + 1 :] += placement.taken[:, CORES + 1 :]

    def _count_cores(self, hosts: HostSet, sign: int) -> None:
        machine = self._machine
        for first, last in hosts.runs():
            for node in machine.nodes_of(first, last):
                low = machine.nodes[node].first
                high = low + machine.nodes[node].cores - 1
                self.amounts[node, CORES] += sign * (min(high, last) - max(low, first) + 1)


class NodeReservation(profile.Reservation, frozen=True, eq=False):
    """The promise to a job that at the shadow time there is a place for it.

    A job that starts now does not delay it if it ends by then, or if the place that it takes leaves another
    one for the job with the reservation.
    """

    account: NodeAccount
    demand: Demand
    """Of the job with the reservation."""
    future: Integers
    """What will be free on each node at the shadow time, before that job starts."""
    licences: dict[str, int]
    """Those that will be free then."""

    def __repr__(self) -> str:
        return repr(self._plain())

    def __reduce__(self) -> Any:
        return self._plain().__reduce__()

    def _plain(self) -> profile.Reservation:
        return profile.Reservation(self.job, self.now, self.shadow_time, self.extra)

    def allows_at(self, demand: Demand, placement: Placement, estimate: float) -> bool:
        """Whether a job that starts now in a place and runs for so long would not delay it."""
        if self.now + estimate <= self.shadow_time:
            return True
        future = self.future.copy()
        future[placement.nodes] -= placement.taken
        licences = _less(self.licences, demand)
        return self.demand.nodes(future) is not None and _has(licences, self.demand)

    def left(self, free: Integers) -> Integers | None:
        """What is free now and stays free when the job with the reservation starts where it would now go."""
        placement = self.account.place(self.demand, self.future)
        if placement is None:
            return None
        future = self.future.copy()
        future[placement.nodes] -= placement.taken
        left: Integers = np.minimum(free, future)
        return left

    def admit(self, running: RunningJob) -> None:
        """A job was started beside it: one that does not end by the shadow time has taken something."""
        super().admit(running)
        placement = self.account.placements.get(running.job.id)
        if running.expected_end > self.shadow_time and placement is not None:
            self.future[placement.nodes] -= placement.taken
            force_setattr(self, "licences", _less(self.licences, self.account.asked[running.job.id]))


def _less(licences: dict[str, int], demand: Demand) -> dict[str, int]:
    less = dict(licences)
    for name, count in demand.request.licences:
        less[name] -= count
    return less


def _has(licences: dict[str, int], demand: Demand) -> bool:
    return all(licences[name] >= count for name, count in demand.request.licences)


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
    ) -> NodeReservation:
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
                return NodeReservation(job, now, time, extra, self, demand, left, licences)
        return NodeReservation(job, now, inf, 0, self, demand, future, licences)

    def with_cores(self, hosts: HostSet) -> Integers:
        """What would be free on each node if these hosts were free, too."""
        amounts = self.free.amounts.copy()
        nodes, cores = self._cores_of(hosts)
        amounts[nodes, CORES] += cores
        return amounts

    def find(self, job: Job, estimate: float, beside: NodeReservation | None) -> Placement | None:
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


class NodeProfile:
    """The free amounts of all nodes as a step function of time, from now on, and the free licences."""

    def __init__(self, account: NodeAccount, now: float, to_wake: HostSet = NOWHERE) -> None:
        """Hosts ``to_wake`` count as free."""
        self._account = account
        self._times = [now]
        self._free = [account.with_cores(to_wake)]
        self._licences = [account.licences.copy()]
        self._openings = frozenset(account.closures.ends) if account.closures else frozenset()
        """When nodes open again: jobs may start then, although nothing else changes."""
        for opening in sorted(self._openings):
            if opening > now:
                self._step(opening)

    def earliest(
        self, demand: Demand, duration: float, user: str | None = None, before: float = inf
    ) -> tuple[float, Placement] | None:
        """The earliest time from which there is a place for so long, and that place.

        Nodes may be closed to a ``user``. There is no place if it would not be ``before`` some time.
        """
        times, account = self._times, self._account
        for step, start in enumerate(times):
            if start >= before:
                return None
            end = bisect_left(times, start + duration) if duration < inf else len(times)
            steps = range(step, max(end, step + 1))
            if account.has_licences(demand, self._licences[step]) and all(
                account.has_licences(demand, self._licences[later]) for later in steps
            ):
                free = account.open_at(user, start, start + duration, self._free[step])
                if demand.nodes(free) is None:
                    continue
                for later in steps:
                    free = np.minimum(free, self._free[later])
                placement = account.place(demand, free)
                if placement is not None:
                    return start, placement
        return None

    def take(self, start: float, end: float, demand: Demand, nodes: Integers, taken: Integers) -> None:
        """Let so much of nodes be taken from ``start`` until ``end``, and the licences of a job."""
        self._change(start, end, demand, nodes, -taken, -1)

    def give(self, start: float, end: float, demand: Demand, nodes: Integers, taken: Integers) -> None:
        """Let so much more be free from ``start`` until ``end``."""
        self._change(start, end, demand, nodes, taken, 1)

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        past = bisect_right(self._times, now) - 1
        del self._times[:past], self._free[:past], self._licences[:past]
        self._times[0] = now

    def _change(
        self, start: float, end: float, demand: Demand, nodes: Integers, change: Integers, sign: int
    ) -> None:
        start = max(start, self._times[0])
        if not start < end:
            return
        first = self._step(start)
        last = self._step(end) if end < inf else len(self._times)
        for step in range(first, last):
            self._free[step][nodes] += change
            for name, count in demand.request.licences:
                self._licences[step][name] += sign * count
        for step in (last, first):
            if 0 < step < len(self._times) and self._is_no_step(step):
                del self._times[step], self._free[step], self._licences[step]

    def _is_no_step(self, step: int) -> bool:
        """Whether nothing changes when a step begins."""
        if self._times[step] in self._openings:
            return False
        same = np.array_equal(self._free[step], self._free[step - 1])
        return same and self._licences[step] == self._licences[step - 1]

    def _step(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, self._free[step - 1].copy())
            self._licences.insert(step, dict(self._licences[step - 1]))
        return step


class _Slot(Struct, frozen=True, eq=False):
    """A time and a place."""

    start: float
    end: float
    demand: Demand
    nodes: Integers
    taken: Integers


class NodePlan(Live):
    """What :class:`~batsched_py.ledger.profile.Plan` is for equal hosts, on nodes."""

    __slots__ = ("_account", "_cluster", "_freed_until", "_held", "_profile", "_reserved", "_some_ended")

    def __init__(self, cluster: Planned, account: NodeAccount, to_wake: HostSet = NOWHERE) -> None:
        """Hosts ``to_wake`` count as free."""
        self._cluster = cluster
        self._account = account
        self._profile = NodeProfile(account, cluster.now, to_wake)
        self._reserved: dict[Job, tuple[_Slot, Placement] | None] = {}
        """None for a job that will never have a place, as long as hosts are unavailable."""
        self._held: dict[str, _Slot] = {}
        """What running jobs have."""
        self._some_ended = False
        self._freed_until = 0.0
        unavailable = cluster.hosts - cluster.available
        for running in cluster.running:
            end = max(running.expected_end, cluster.now + TICK)
            demand = account.asked[running.job.id]
            slot = _Slot(cluster.now, end, demand, *account.given_back(running, unavailable))
            self._profile.give(end, inf, demand, slot.nodes, slot.taken)
            self._held[running.job.id] = slot

    def advance(self) -> None:
        """Time has passed, and jobs may have left the queue; their reservations are free again."""
        self._profile.advance(self._cluster.now)
        for job in [job for job in self._reserved if job not in self._cluster.queue]:
            self._give_up(job)

    def job_ended(self, ended: RunningJob) -> None:
        """A job has ended: what it leaves of its time is free."""
        check_running(ended)
        slot = self._held.pop(ended.job.id, None)
        if slot is None:
            return
        self._profile.give(self._cluster.now, slot.end, slot.demand, slot.nodes, slot.taken)
        self._freed_until = max(self._freed_until, slot.end)
        self._some_ended = True

    def move_forward(self) -> None:
        """Let each job in turn have the earliest reservation that all others leave, if jobs have ended.

        Only where something has become free can it be earlier than before. What a job leaves behind when it
        moves may serve those after it at once, and those before it the next time.
        """
        if not self._some_ended:
            return
        freed_until, self._freed_until, self._some_ended = self._freed_until, 0.0, False
        reserved, self._reserved = self._reserved, {}
        for job, before in reserved.items():
            if before is None:
                self._reserve(job, self._earliest(job))
                continue
            slot = before[0]
            latest = min(freed_until, slot.start)
            if latest <= self._cluster.now:
                self._reserved[job] = before
                continue
            self._return(slot)
            found = self._earliest(job, latest)
            if found is None:
                self._take(job, *before)
                continue
            self._reserve(job, found)
            self._freed_until = max(self._freed_until, slot.end)
            freed_until = max(freed_until, self._freed_until)

    def reserve_new(self) -> None:
        """Give the jobs that have none a reservation."""
        for job in list(islice(self._cluster.queue, len(self._reserved), None)):
            self._reserve(job, self._earliest(job))

    def due(self) -> list[Job]:
        """The jobs whose time has come; each goes to the place that is reserved for it."""
        now, jobs = self._cluster.now, []
        for job, reserved in self._reserved.items():
            if reserved is not None and reserved[0].start <= now:
                self._account.choose(job, reserved[1])
                jobs.append(job)
        return jobs

    def job_started(self, running: RunningJob) -> None:
        """A job was started: it has its nodes in place of a reservation."""
        check_running(running)
        job = running.job
        if job in self._reserved:
            self._give_up(job)
        placement = self._account.placements.get(job.id)
        if placement is None:
            return
        demand = self._account.asked[job.id]
        slot = _Slot(running.start, running.expected_end, demand, placement.nodes, placement.taken)
        self._profile.take(slot.start, slot.end, demand, slot.nodes, slot.taken)
        self._held[job.id] = slot

    def reservations(self) -> list[tuple[Job, float]]:
        """When each job is to start."""
        return [
            (job, inf if reserved is None else reserved[0].start) for job, reserved in self._reserved.items()
        ]

    def _earliest(self, job: Job, before: float = inf) -> tuple[float, Placement] | None:
        return self._profile.earliest(self._account.demand(job), job.walltime, job.user, before)

    def _reserve(self, job: Job, found: tuple[float, Placement] | None) -> None:
        if found is None:
            self._reserved[job] = None
            return
        start, placement = found
        demand = self._account.demand(job)
        slot = _Slot(start, start + job.walltime, demand, placement.nodes, placement.taken)
        self._take(job, slot, placement)

    def _take(self, job: Job, slot: _Slot, placement: Placement) -> None:
        self._profile.take(slot.start, slot.end, slot.demand, slot.nodes, slot.taken)
        self._reserved[job] = slot, placement

    def _return(self, slot: _Slot) -> None:
        self._profile.give(slot.start, slot.end, slot.demand, slot.nodes, slot.taken)

    def _give_up(self, job: Job) -> None:
        reserved = self._reserved.pop(job)
        self._account.choose(job, None)
        if reserved is not None:
            self._return(reserved[0])


class NodeResizing(Live):
    """Jobs grow and shrink by whole tasks, and stay where they are otherwise.

    A job that shrinks gives up the tasks on its last nodes, but not the last task on a node that it needs for
    the least number of nodes it asks for. One that grows fills its own nodes first, then others that the
    choice of nodes says.
    """

    __slots__ = ("_account", "_alone", "_free", "_now", "_tasks", "_unavailable")

    def __init__(self, account: NodeAccount, now: float, unavailable: HostSet) -> None:
        self._account = account
        self._now = now
        self._unavailable = unavailable
        self._free = account.free.amounts.copy()
        self._tasks: dict[str, tuple[RunningJob, dict[int, int]]] = {}
        """How many tasks jobs have on which nodes, of those that have other ones than before."""
        self._alone: dict[tuple[str, int], int] = {}
        """How many cores nodes have that a job has taken which must have its nodes alone."""

    def step(self, running: RunningJob) -> int:
        """The cores of a task."""
        return self._demand(running).request.cores

    def size(self, running: RunningJob) -> int:
        """How many hosts a job has by now."""
        return sum(self._tasks_of(running).values()) * self.step(running)

    def shrink(self, running: RunningJob) -> bool:
        """Let a job give up the last of its tasks that it can do without."""
        tasks, request = self._tasks_of(running), self._demand(running).request
        size = self.size(running)
        if not may_go(running, size, size - request.cores):
            return False
        for node in sorted(tasks, reverse=True):
            if tasks[node] > 1 or len(tasks) > request.least_nodes:
                self._change(running, node, -1)
                return True
        return False

    def grow(self, running: RunningJob) -> bool:
        """Let a job have one more task, on one of its nodes or on another one."""
        size = self.size(running)
        if not may_go(running, size, size + self.step(running)):
            return False
        node = self._node_for(running)
        if node is None:
            return False
        self._change(running, node, 1)
        return True

    def fits(self, job: Job) -> bool:
        """Whether there is a place for a waiting job."""
        account, demand = self._account, self._account.demand(job)
        free = account.open_at(job.user, self._now, self._now + job.walltime, self._free)
        return account.has_licences(demand, account.licences) and demand.nodes(free) is not None

    def most_free(self, running: Iterable[RunningJob]) -> int:
        """Those that are free, what jobs have beyond their least sizes, and what they keep others from."""
        return self._account.free.count + sum(
            self.size(each) - least_size(each) + len(self._account.blocked_by(each.job.id))
            for each in running
        )

    @property
    def given_up(self) -> HostSet:
        """The hosts that jobs have given up so far."""
        hosts = HostSet()
        for running, tasks in self._tasks.values():
            hosts = hosts | running.hosts - self._kept(running, tasks)
        return hosts

    def changes(self) -> Iterator[tuple[Job, HostSet]]:
        """The jobs that have other hosts, those that shrink first."""
        smaller = sorted(self._tasks.values(), key=lambda each: self.size(each[0]) > each[0].nb_hosts)
        for running, tasks in smaller:
            hosts = self._kept(running, tasks)
            for node, count in tasks.items():
                if more := count * self.step(running) - len(self._on(node, hosts)):
                    blocked = self._on(node, self._account.blocked_by(running.job.id))
                    hosts = hosts | self._account.selection(self._account.free_cores(node) | blocked, more)
            yield running.job, hosts

    def _demand(self, running: RunningJob) -> Demand:
        return self._account.asked[running.job.id]

    def _tasks_of(self, running: RunningJob) -> dict[int, int]:
        if (changed := self._tasks.get(running.job.id)) is not None:
            return changed[1]
        placement = self._account.placements[running.job.id]
        return dict(zip(placement.nodes.tolist(), placement.tasks.tolist(), strict=True))

    def _node_for(self, running: RunningJob) -> int | None:
        """The node that takes one more task of a job."""
        account, demand, tasks = self._account, self._demand(running), self._tasks_of(running)
        request, job = demand.request, running.job
        free = account.open_at(job.user, self._now, running.start + job.walltime, self._free)
        for node in sorted(tasks):
            left = free[node] - demand.per_task
            if request.exclusive:
                left[CORES] = self._held(running, node) - (tasks[node] + 1) * request.cores
            if tasks[node] < request.tasks_per_node and (left >= 0).all():
                return node
        if len(tasks) == request.most_nodes:
            return None
        others = free.copy()
        others[list(tasks)] = 0
        one = replace(request, tasks=1, least_nodes=1, most_nodes=1)
        alternatives = [nodes for nodes in demand.alternatives if np.isin(list(tasks), nodes).all()]
        placement = account.place(replace(demand, request=one, alternatives=alternatives), others)
        return None if placement is None else int(placement.nodes[0])

    def _held(self, running: RunningJob, node: int) -> int:
        """How many cores of a node a job holds that must have its nodes alone."""
        mine = self._on(node, running.hosts | self._account.blocked_by(running.job.id))
        return len(mine) or self._alone.setdefault((running.job.id, node), int(self._free[node, CORES]))

    def _change(self, running: RunningJob, node: int, sign: int) -> None:
        """A job has a task more or less on a node."""
        before = dict(self._tasks_of(running))
        after = {**before, node: before.get(node, 0) + sign}
        if not after[node]:
            del after[node]
        self._free[node] += self._taken(running, node, before) - self._taken(running, node, after)
        self._tasks[running.job.id] = running, after

    def _taken(self, running: RunningJob, node: int, tasks: dict[int, int]) -> Integers:
        """What a job takes of a node; hosts that are away would not be free without it."""
        demand = self._demand(running)
        if node not in tasks:
            taken: Integers = np.zeros_like(demand.per_task)
            left = running.hosts | self._account.blocked_by(running.job.id)
        else:
            taken = tasks[node] * demand.per_task + demand.per_node
            left = running.hosts - self._kept(running, tasks)
            if demand.request.exclusive:
                taken[CORES] = self._held(running, node)
                left = HostSet()
        taken[CORES] += len(self._on(node, left & self._unavailable))
        return taken

    def _kept(self, running: RunningJob, tasks: dict[int, int]) -> HostSet:
        """Those of its hosts that a job keeps: on each node the ones with the lowest numbers."""
        hosts = HostSet()
        for node, count in tasks.items():
            mine = self._on(node, running.hosts)
            hosts = hosts | mine.lowest(min(len(mine), count * self.step(running)))
        return hosts

    def _on(self, node: int, hosts: HostSet) -> HostSet:
        """Those of some hosts that are cores of a node."""
        first, cores = self._account.machine.nodes[node].first, self._account.machine.nodes[node].cores
        return hosts & HostSet.of_runs(((first, first + cores - 1),))
