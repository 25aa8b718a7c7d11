"""A slow and obvious simulation of machines of nodes, written from the definitions.

Nothing of the package is used here. What is free is counted anew from the running jobs each time, a place is
found by trying, and the policies are what their papers say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

Amounts = dict[str, int]
Place = dict[int, int]
"""How many tasks go to which node."""


@dataclass
class Node:
    has: Amounts
    """Cores and all other resources."""
    features: set[str] = field(default_factory=set)
    partition: str = ""


@dataclass
class RefJob:
    id: int
    submission: int
    run_time: int
    walltime: int
    tasks: int
    per_task: Amounts
    """With the cores."""
    per_node: Amounts = field(default_factory=dict)
    least: int = 1
    most: int = 10**9
    tasks_per_node: int = 10**9
    exclusive: bool = False
    feature: str = ""
    partitions: tuple[str, ...] = ()
    licences: int = 0


@dataclass
class Run:
    job: RefJob
    place: Place
    start: int
    number: int

    @property
    def end(self) -> int:
        return self.start + self.job.walltime


@dataclass
class State:
    """What is free: of each node, and of the licences."""

    nodes: list[Node]
    free: list[Amounts]
    nb_jobs: list[int]
    licences: int

    def put(self, job: RefJob, place: Place, sign: int = -1) -> None:
        self.licences += sign * job.licences
        for node, tasks in place.items():
            self.nb_jobs[node] -= sign * (10**6 if job.exclusive else 1)
            for name in self.free[node]:
                taken = tasks * job.per_task.get(name, 0) + job.per_node.get(name, 0)
                self.free[node][name] += sign * taken

    def copy(self) -> State:
        return State(self.nodes, [dict(free) for free in self.free], list(self.nb_jobs), self.licences)

    def capacity(self, job: RefJob, node: int) -> int:
        """How many tasks fit, found by adding one after another."""
        free = self.free[node]
        if self.nb_jobs[node] >= (1 if job.exclusive else 10**6):
            return 0
        tasks = 0
        while tasks < min(job.tasks, job.tasks_per_node) and all(
            (tasks + 1) * job.per_task.get(name, 0) + job.per_node.get(name, 0) <= free.get(name, 0)
            for name in job.per_task.keys() | job.per_node.keys()
        ):
            tasks += 1
        return tasks

    def place(self, job: RefJob) -> Place | None:
        """First fit: in the first partition that holds the job, the first nodes that do."""
        if job.licences > self.licences:
            return None
        for partition in job.partitions or (None,):
            meant = [
                number
                for number, node in enumerate(self.nodes)
                if (partition is None or node.partition == partition)
                and (not job.feature or job.feature in node.features)
            ]
            capacities = [(number, self.capacity(job, number)) for number in meant]
            found = next(_places([(n, c) for n, c in capacities if c], job, job.tasks, 0), None)
            if found is not None:
                return found
        return None


def _places(nodes: list[tuple[int, int]], job: RefJob, left: int, used: int) -> Iterator[Place]:
    """All ways to fill nodes one after another, the one that uses the first nodes first."""
    if not left:
        if used >= job.least:
            yield {}
        return
    if not nodes or used >= job.most:
        return
    (node, capacity), rest = nodes[0], nodes[1:]
    tasks = min(capacity, left - max(job.least - used - 1, 0))
    if tasks > 0:
        for places in _places(rest, job, left - tasks, used + 1):
            yield {node: tasks} | places
    yield from _places(rest, job, left, used)


class Reference:
    """One simulation; ``starts`` and ``places`` are its outcome."""

    def __init__(self, nodes: list[Node], licences: int, jobs: list[RefJob], policy: str) -> None:
        self.nodes, self.licences, self.policy = nodes, licences, policy
        self.queue: list[RefJob] = []
        self.running: list[Run] = []
        self.starts: dict[int, int] = {}
        self.places: dict[int, Place] = {}
        self.rejected: set[int] = set()
        self.reserved: dict[int, tuple[float, Place]] = {}
        self.some_ended = False
        self.simulate(jobs)

    def state(self) -> State:
        state = State(self.nodes, [dict(n.has) for n in self.nodes], [0] * len(self.nodes), self.licences)
        for run in self.running:
            state.put(run.job, run.place)
        return state

    def simulate(self, jobs: list[RefJob]) -> None:
        to_come = sorted(jobs, key=lambda job: (job.submission, job.id))
        empty = self.state()
        while to_come or self.running or self.queue:
            ends = [run.start + min(run.job.run_time, run.job.walltime) for run in self.running]
            now = min(ends + [job.submission for job in to_come[:1]])
            for run in [run for run, end in zip(self.running, ends, strict=True) if end == now]:
                self.running.remove(run)
                self.some_ended = True
            while to_come and to_come[0].submission == now:
                job = to_come.pop(0)
                if empty.place(job) is None:
                    self.rejected.add(job.id)
                else:
                    self.queue.append(job)
            getattr(self, self.policy)(now)

    def start(self, job: RefJob, place: Place, now: int) -> None:
        self.queue.remove(job)
        self.running.append(Run(job, place, now, len(self.starts)))
        self.starts[job.id], self.places[job.id] = now, place

    def fcfs(self, now: int) -> None:
        while self.queue and (place := self.state().place(self.queue[0])) is not None:
            self.start(self.queue[0], place, now)

    def easy(self, now: int) -> None:
        self.fcfs(now)
        if not self.queue:
            return
        head = self.queue[0]
        shadow, future = float(now), self.state()
        for run in sorted(self.running, key=lambda run: (run.end, run.number)):
            future.put(run.job, run.place, 1)
            shadow = run.end
            if future.place(head) is not None:
                break
        for job in self.queue[1:]:
            place = self.state().place(job)
            if place is not None and now + job.walltime > shadow and not leaves(future, job, place, head):
                place = beside(self.state(), future, job, head)
            if place is not None:
                self.start(job, place, now)
                if now + job.walltime > shadow:
                    future.put(job, place)

    def conservative(self, now: int) -> None:
        waiting = {job.id for job in self.queue}
        self.reserved = {id: kept for id, kept in self.reserved.items() if id in waiting}
        for job in self.queue:
            known = job.id in self.reserved
            if known and not self.some_ended:
                continue
            before = self.reserved.pop(job.id, None)
            found = self.earliest(job, now)
            self.reserved[job.id] = before if before is not None and found[0] >= before[0] else found
        self.some_ended = False
        for job in list(self.queue):
            start, place = self.reserved[job.id]
            if start <= now and free_now(self.state(), job, place):
                del self.reserved[job.id]
                self.start(job, place, now)

    def earliest(self, job: RefJob, now: int) -> tuple[float, Place]:
        """The earliest time from which a place is free for the whole walltime."""
        slots = [(float(now), float(max(run.end, now)), run.job, run.place) for run in self.running]
        slots += [
            (start, start + other.walltime, other, place)
            for other in self.queue
            if other.id in self.reserved
            for start, place in [self.reserved[other.id]]
        ]
        for start in sorted({float(now)} | {end for _, end, _, _ in slots} | {s for s, _, _, _ in slots}):
            times = sorted({start} | {s for s, _, _, _ in slots if start < s < start + job.walltime})
            state = None
            for time in times:
                then = State(
                    self.nodes, [dict(n.has) for n in self.nodes], [0] * len(self.nodes), self.licences
                )
                for first, end, other, place in slots:
                    if first <= time < end:
                        then.put(other, place)
                state = then if state is None else lowest(state, then)
            assert state is not None
            place = state.place(job)
            if place is not None:
                return start, place
        return inf, {}


def leaves(future: State, job: RefJob, place: Place, head: RefJob) -> bool:
    """Whether the head has a place at the shadow time although a job has this one."""
    then = future.copy()
    then.put(job, place)
    return then.place(head) is not None


def beside(now: State, future: State, job: RefJob, head: RefJob) -> Place | None:
    """A place that is free now and stays free when the head starts where it would go."""
    head_place = future.place(head)
    if head_place is None:
        return None
    then = future.copy()
    then.put(head, head_place)
    place = lowest(now, then).place(job)
    return place if place is not None and leaves(future, job, place, head) else None


def lowest(one: State, other: State) -> State:
    """What is free in both."""
    return State(
        one.nodes,
        [{name: min(a[name], b[name]) for name in a} for a, b in zip(one.free, other.free, strict=True)],
        [max(a, b) for a, b in zip(one.nb_jobs, other.nb_jobs, strict=True)],
        min(one.licences, other.licences),
    )


def free_now(state: State, job: RefJob, place: Place) -> bool:
    if job.licences > state.licences:
        return False
    return all(state.capacity(job, node) >= tasks for node, tasks in place.items())
