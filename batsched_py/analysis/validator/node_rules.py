"""What a machine of nodes adds: rules for jobs that ask for more than hosts, and what is free for promises.

Like :mod:`~batsched_py.analysis.validator.rules`, the rules see a schedule with the columns ``id`` and
``hosts``. See :mod:`~batsched_py.analysis.validator.promises` for what is promised: here it is kept in every
resource.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from copy import copy
from functools import reduce
from math import inf

import pandas as pd

from batsched_py.analysis.schedule import in_pieces, started
from batsched_py.analysis.validator import promises
from batsched_py.analysis.validator.nodes import Demand, Nodes, Place, Requests, Room, Share, least, shares_of
from batsched_py.analysis.validator.rows import Rows
from batsched_py.analysis.validator.rules import BEGINS, ENDS, Violation, moments
from batsched_py.protocol.requests import Request, parse_features


def node_rules(schedule: pd.DataFrame, machine: Nodes, requests: Requests) -> Iterator[Violation]:
    """All violations of what jobs ask for, and of what nodes have.

    A job that no workload describes asks for cores alone.
    """
    executed = started(in_pieces(schedule))
    taken = []
    for row in executed.itertuples():
        request = requests.get(row.id) or Request(1)
        shares = list(shares_of(machine, row.hosts, request))
        taken.append((request, shares))
        for rule, text in _misplaced(machine, request, shares):
            yield Violation(rule, (row.id,), row.starting_time, f"job {row.id} {text}")
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
            yield (
                "tasks",
                f"has {share.cores} cores of node {node.name}, but its tasks need {request.cores} each",
            )
        elif share.tasks > (most := request.tasks_per_node):
            yield "tasks", f"has {share.tasks} tasks on node {node.name}, but at most {most} may be"


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
        for time, kind, row in moments(Rows([self._executed])):
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


class FreeNodes(promises.Room):
    """What is free of nodes; a job that no workload describes asks for cores alone."""

    def __init__(self, room: Room, requests: Requests) -> None:
        self._room = room
        self._requests = requests

    def copy(self) -> FreeNodes:
        return FreeNodes(copy(self._room), self._requests)

    def change(self, life: promises.Life, sign: int) -> None:
        demand = self._demand(life)
        self._room.change(demand, demand.place(self._room.machine.cores(life.hosts)), sign)

    def holds(self, life: promises.Life) -> bool:
        return self._room.holds(self._demand(life))

    def told(self, life: promises.Life) -> tuple[str, str]:
        """Which resources it is about is not said."""
        return ", but all that it asks for is free", "what it needs then"

    def _demand(self, life: promises.Life) -> Demand:
        return self._room.machine.demand(self._requests.get(life.id) or Request(life.size))


class NodePlan(promises.Plan[Room, Place]):
    """A plan of what is free of nodes, which is made with a choice of nodes."""

    def __init__(self, machine: Nodes, requests: Requests, choice: str) -> None:
        super().__init__(machine.empty())
        self._machine = machine
        self._requests = requests
        self._choice = choice

    def same(self, time: float) -> float:
        """A time without its last printed digit, which is not certain: equal times are to be equal again."""
        return round(time, 5)

    def earliest(self, now: float, life: promises.Life) -> tuple[float, Place | None]:
        """The earliest time from which there is one place for the walltime of a job, and that place."""
        demand = self._demand(life)
        for step, start in enumerate(self._times):
            if not self._free[step].holds(demand):
                continue
            end = max(bisect_left(self._times, start + life.walltime), step + 1)
            place = reduce(least, self._free[step:end]).place(demand, self._choice)
            if place is not None:
                return start, place
        return inf, None

    def place(self, life: promises.Life) -> Place:
        return self._demand(life).place(self._machine.cores(life.hosts))

    def _take(self, steps: slice, life: promises.Life, place: Place, sign: int) -> None:
        for room in self._free[steps]:
            room.change(self._demand(life), place, sign)

    def _demand(self, life: promises.Life) -> Demand:
        return self._machine.demand(self._requests.get(life.id) or Request(life.size))
