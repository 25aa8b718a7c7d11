"""What is tried on a machine of nodes: other sizes of running jobs, and nodes that wake for waiting ones."""

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from batsched_py.ledger.free_nodes import FreeNodes
from batsched_py.ledger.kinds import Live
from batsched_py.ledger.nodes import CORES, Demand, Integers, Placement
from batsched_py.ledger.running import RunningJob
from batsched_py.ledger.trials import HostsToWake, least_size, may_go
from batsched_py.protocol.hosts import NOWHERE, HostSet
from batsched_py.protocol.jobs import Job


class NodeResizing(Live):
    """Jobs grow and shrink by whole tasks, and stay where they are otherwise.

    A job that shrinks gives up the tasks on its last nodes, but not the last task on a node that it needs for
    the least number of nodes it asks for. One that grows fills its own nodes first, then others that the
    choice of nodes says.
    """

    __slots__ = ("_alone", "_free", "_machine", "_now", "_tasks", "_unavailable")

    def __init__(self, machine: FreeNodes, now: float, unavailable: HostSet) -> None:
        self._machine = machine
        self._now = now
        self._unavailable = unavailable
        self._free = machine.amounts.copy()
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
        machine, demand = self._machine, self._machine.demand(job)
        free = machine.open_at(job.user, self._now, self._now + job.walltime, self._free)
        return machine.licences.suffice(demand) and demand.nodes(free) is not None

    def could_fit(self, job: Job, running: Iterable[RunningJob]) -> bool:
        """Whether what is free, what jobs have beyond their least sizes, and what they block is enough."""
        return job.size <= self._machine.count + sum(
            self.size(each) - least_size(each) + len(self._machine.blocked(each.job.id)) for each in running
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
        selection = self._machine.selection
        assert selection is not None
        smaller = sorted(self._tasks.values(), key=lambda each: self.size(each[0]) > each[0].nb_hosts)
        for running, tasks in smaller:
            hosts = self._kept(running, tasks)
            for node, count in tasks.items():
                if more := count * self.step(running) - len(self._on(node, hosts)):
                    blocked = self._on(node, self._machine.blocked(running.job.id))
                    hosts = hosts | selection(self._machine.free_cores(node) | blocked, more)
            yield running.job, hosts

    def _demand(self, running: RunningJob) -> Demand:
        return self._machine.asked[running.job.id]

    def _tasks_of(self, running: RunningJob) -> dict[int, int]:
        if (changed := self._tasks.get(running.job.id)) is not None:
            return changed[1]
        placement = self._machine.placements[running.job.id]
        return dict(zip(placement.nodes.tolist(), placement.tasks.tolist(), strict=True))

    def _node_for(self, running: RunningJob) -> int | None:
        """The node that takes one more task of a job."""
        machine, demand, tasks = self._machine, self._demand(running), self._tasks_of(running)
        request, job = demand.request, running.job
        free = machine.open_at(job.user, self._now, running.start + job.walltime, self._free)
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
        placement = machine.place(replace(demand, request=one, alternatives=alternatives), others)
        return None if placement is None else int(placement.nodes[0])

    def _held(self, running: RunningJob, node: int) -> int:
        """How many cores of a node a job holds that must have its nodes alone."""
        mine = self._on(node, running.hosts | self._machine.blocked(running.job.id))
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
            left = running.hosts | self._machine.blocked(running.job.id)
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
        return hosts & self._machine.machine.hosts_of(node)


class NodesToWake(HostsToWake):
    """The nodes that are awake, or are to be woken, each as a whole, shared out among waiting jobs."""

    def __init__(self, free: FreeNodes, waking: HostSet, asleep: HostSet, now: float) -> None:
        super().__init__(0, asleep)
        self._free = free
        self._awake = free.with_cores(waking)
        self._now = now

    def take(self, job: Job) -> bool:
        """Give a job its nodes: those that a plan has chosen, or else those that are awake first."""
        free = self._free
        everything = self._awake + free.with_cores(self._asleep) - free.with_cores(NOWHERE)
        found = free.chosen(job) or self._place(job, self._awake) or self._place(job, everything)
        if found is None or (everything[found.nodes] < found.taken).any():
            return False
        for number in found.nodes.tolist():
            node = free.machine.hosts_of(number) & self._asleep
            self._awake[number, CORES] += len(node)
            self._wake(node)
        self._awake[found.nodes] -= found.taken
        return bool(np.all(self._awake[found.nodes] >= 0))

    def _place(self, job: Job, free: Integers) -> Placement | None:
        """Where a job goes, on nodes that stay open to it."""
        free = self._free.open_at(job.user, self._now, self._now + job.walltime, free)
        return self._free.place(self._free.demand(job), free)
