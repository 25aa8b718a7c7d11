"""What a machine of nodes adds: rules for jobs that ask for more than hosts, and what is free for promises.

Like :mod:`~batsched_py.analysis.validator.rules`, the rules see a schedule with the columns ``id`` and
``hosts``. See :mod:`~batsched_py.analysis.validator.promises` for what is promised: here it is kept in every
resource.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from math import inf

import pandas as pd

from batsched_py.analysis.schedule import in_pieces, started
from batsched_py.analysis.validator.nodes import Demand, Nodes, Place, Requests, Room, Share, least, shares_of
from batsched_py.analysis.validator.promises import Life
from batsched_py.analysis.validator.rules import BEGINS, ENDS, Violation, moments
from batsched_py.protocol.requests import Request, parse_features


def node_rules(schedule: pd.DataFrame, machine: Nodes, requests: Requests) -> Iterator[Violation]:
    """All violations of what jobs ask for, and of what nodes have."""
    executed = started(in_pieces(schedule))
    taken = list(_executed_shares(executed, machine, requests))
    for job, time, (request, shares) in zip(executed["id"], executed["starting_time"], taken, strict=True):
        for rule, text in _misplaced(machine, request, shares):
            yield Violation(rule, (job,), time, f"job {job} {text}")
    yield from _Usage(machine, executed, taken).violations()


def _misplaced(machine: Nodes, request: Request, shares: list[Share]) -> Iterator[tuple[str, str]]:
    """What is wrong with the nodes of a job, whatever else runs: rules and texts."""
    nodes = [machine.all[share.node] for share in shares]
    if request.partitions and not any(
        all(partition in node.partitions for node in nodes) for partition in request.partitions
    ):
        yield "partition", f"is not on nodes of one of its partitions: {', '.join(request.partitions)}"
    meant = parse_features(request.features) if request.features else None
    for node in nodes:
        if meant is not None and not meant(node.features):
            yield "features", f"is on node {node.name}, which is not what it asks for: {request.features}"
    if not request.least_nodes <= len(nodes) <= request.most_nodes:
        least, most = request.least_nodes, min(request.most_nodes, request.tasks)
        asked = str(least) if least == most else f"{least} to {most}"
        yield "nodes", f"is on {len(nodes)} nodes instead of {asked}"
    for node, share in zip(nodes, shares, strict=True):
        if share.cores % request.cores:
            text = f"has {share.cores} cores of node {node.name}, but its tasks need {request.cores} each"
            yield "tasks", text
        elif share.tasks > request.tasks_per_node:
            text = f"has {share.tasks} tasks on node {node.name}, but at most {request.tasks_per_node} may be"
            yield "tasks", text


class _Usage:
    """What is in use, as jobs begin and end. A job of no length holds nothing, but must fit when it runs."""

    def __init__(
        self, machine: Nodes, executed: pd.DataFrame, taken: list[tuple[Request, list[Share]]]
    ) -> None:
        self._machine = machine
        self._executed = executed
        self._ids: list[str] = executed["id"].to_list()
        self._taken = taken
        self._used: list[Counter[str]] = [Counter() for _ in machine.all]
        self._on: list[dict[int, None]] = [{} for _ in machine.all]
        """The jobs on each node, by their places."""
        self._licences: Counter[str] = Counter()

    def violations(self) -> Iterator[Violation]:
        """Go through the schedule."""
        for time, kind, row in moments(self._executed):
            if kind != ENDS:
                self._count(row, 1)
                yield from self._exceeded(row, time)
            if kind != BEGINS:
                self._count(row, -1)

    def _count(self, row: int, sign: int) -> None:
        request, shares = self._taken[row]
        for share in shares:
            for name, count in share.amounts.items():
                self._used[share.node][name] += sign * count
            if sign > 0:
                self._on[share.node][row] = None
            else:
                self._on[share.node].pop(row, None)
        for name, count in request.licences:
            self._licences[name] += sign * count

    def _exceeded(self, row: int, time: float) -> Iterator[Violation]:
        """What a job that has just begun has too much of."""
        job, (request, shares) = self._ids[row], self._taken[row]
        for share in shares:
            node, used = self._machine.all[share.node], self._used[share.node]
            for name in share.amounts:
                if used[name] > node.resources.get(name, 0):
                    text = f"with job {job}, node {node.name} has {_amount_text(name, used[name])} in use"
                    text += f", but only {_amount_text(name, node.resources.get(name, 0))}"
                    yield Violation("resources", (job,), time, text)
            for other in self._on[share.node]:
                if other != row and (request.exclusive or self._taken[other][0].exclusive):
                    jobs = (self._ids[other], job)
                    alone = job if request.exclusive else jobs[0]
                    text = f"jobs {jobs[0]} and {job} share node {node.name}, which {alone} must have alone"
                    yield Violation("exclusive", jobs, time, text)
        for name, _ in request.licences:
            if self._licences[name] > self._machine.licences.get(name, 0):
                text = f"with job {job}, {self._licences[name]} licences of {name} are in use"
                text += f", but there are {self._machine.licences.get(name, 0)}"
                yield Violation("licences", (job,), time, text)


def _executed_shares(
    executed: pd.DataFrame, machine: Nodes, requests: Requests
) -> Iterator[tuple[Request, list[Share]]]:
    """What each job of a schedule asks for and has; one that no workload describes asks for cores alone."""
    for job, hosts in zip(executed["id"], executed["hosts"], strict=True):
        request = requests.get(job) or Request(max(1, len(hosts)))
        yield request, list(shares_of(machine, hosts, request))


def _amount_text(resource: str, count: int) -> str:
    """An amount in words.

    >>> _amount_text("memory", 3 * 1024**2), _amount_text("gpu", 1), _amount_text("memory", 100)
    ('3 GB of memory', '1 gpu', '100 kB of memory')
    """
    if resource != "memory":
        return f"{count} {resource}"
    for unit, size in (("TB", 1024**3), ("GB", 1024**2), ("MB", 1024)):
        if count >= size:
            return f"{count / size:.10g} {unit} of memory"
    return f"{count} kB of memory"


class FreeNodes:
    """What is free of nodes; a job that no workload describes asks for cores alone."""

    def __init__(self, room: Room, requests: Requests) -> None:
        self._room = room
        self._requests = requests

    def copy(self) -> FreeNodes:
        """One of its own."""
        return FreeNodes(self._room.copy(), self._requests)

    def change(self, life: Life, sign: int) -> None:
        """A job takes what it had where it was (-1), or gives it back (1)."""
        demand = self._demand(life)
        self._room.change(demand, demand.place(self._room.machine.cores(life.hosts)), sign)

    def holds(self, life: Life) -> bool:
        """Whether a job would find a place."""
        return self._room.holds(self._demand(life))

    def told(self, life: Life) -> tuple[str, str]:
        """Which resources it is about is not said."""
        return ", but all that it asks for is free", "what it needs then"

    def _demand(self, life: Life) -> Demand:
        return self._room.machine.demand(self._requests.get(life.id) or Request(life.size))


class NodePlan:
    """What will be free from each time on, according to a plan that is made with a choice of nodes."""

    def __init__(self, machine: Nodes, requests: Requests, choice: str) -> None:
        self._machine = machine
        self._requests = requests
        self._choice = choice
        self._times = [-inf]
        self._rooms = [machine.empty()]

    def same(self, time: float) -> float:
        """A time without its last printed digit, which is not certain: equal times are to be equal again."""
        return round(time, 5)

    def forget(self, now: float) -> None:
        """Forget what was before ``now``."""
        past = bisect_right(self._times, now) - 1
        del self._times[:past], self._rooms[:past]
        self._times[0] = now

    def earliest(self, now: float, life: Life) -> tuple[float, Place | None]:
        """The earliest time from which there is one place for the walltime of a job, and that place."""
        demand = self._demand(life)
        for step, start in enumerate(self._times):
            if not self._rooms[step].holds(demand):
                continue
            end = max(bisect_left(self._times, start + life.walltime), step + 1)
            place = reduce(least, self._rooms[step:end]).place(demand, self._choice)
            if place is not None:
                return start, place
        return inf, None

    def place(self, life: Life) -> Place:
        """Where a job was, and what it had there."""
        return self._demand(life).place(self._machine.cores(life.hosts))

    def change(self, start: float, end: float, life: Life, place: Place, sign: int) -> None:
        """A job has its place between two times (-1), or gives it back for this time (1)."""
        start = max(start, self._times[0])
        if start < end:
            first, last = self._step(start), self._step(end) if end < inf else len(self._times)
            for room in self._rooms[first:last]:
                room.change(self._demand(life), place, sign)
            for step in (last, first):
                if 0 < step < len(self._times) and self._rooms[step].equals(self._rooms[step - 1]):
                    del self._times[step], self._rooms[step]

    def _step(self, time: float) -> int:
        """The step that begins at a time, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._rooms.insert(step, self._rooms[step - 1].copy())
        return step

    def _demand(self, life: Life) -> Demand:
        return self._machine.demand(self._requests.get(life.id) or Request(life.size))
