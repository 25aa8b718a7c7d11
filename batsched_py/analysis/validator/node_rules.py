"""The rules that a machine of nodes adds, for jobs that ask for more than hosts.

Like :mod:`~batsched_py.analysis.validator.rules`, they see a schedule with the columns ``id`` and ``hosts``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from batsched_py.analysis.nodes import Requests, Share, amount_text, executed_shares, has
from batsched_py.analysis.schedule import INSTANT, SLACK, in_pieces, started
from batsched_py.analysis.validator.rules import Violation
from batsched_py.ledger.nodes import NodeMachine
from batsched_py.protocol.requests import Request, parse_features


def node_rules(schedule: pd.DataFrame, machine: NodeMachine, requests: Requests) -> Iterator[Violation]:
    """All violations of what jobs ask for, and of what nodes have."""
    executed = started(in_pieces(schedule))
    taken = list(executed_shares(executed, machine, requests))
    for job, time, (request, shares) in zip(executed["id"], executed["starting_time"], taken, strict=True):
        for rule, text in _misplaced(machine, request, shares):
            yield Violation(rule, (job,), time, f"job {job} {text}")
    yield from _Usage(machine, executed, taken).violations()


def _misplaced(machine: NodeMachine, request: Request, shares: list[Share]) -> Iterator[tuple[str, str]]:
    """What is wrong with the nodes of a job, whatever else runs: rules and texts."""
    nodes = [machine.nodes[share.node] for share in shares]
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
        self, machine: NodeMachine, executed: pd.DataFrame, taken: list[tuple[Request, list[Share]]]
    ) -> None:
        self._machine = machine
        self._executed = executed
        self._ids: list[str] = executed["id"].to_list()
        self._taken = taken
        self._used: list[Counter[str]] = [Counter() for _ in machine.nodes]
        self._on: list[dict[int, None]] = [{} for _ in machine.nodes]
        """The jobs on each node, by their places."""
        self._licences: Counter[str] = Counter()

    def violations(self) -> Iterator[Violation]:
        """Go through the schedule."""
        ends, passes, begins = range(3)
        executed, events = self._executed, list[tuple[float, int, int]]()
        times = zip(
            executed["starting_time"], executed["execution_time"], executed["finish_time"], strict=True
        )
        for row, (start, ran, finish) in enumerate(times):
            if ran <= INSTANT:
                events.append((start - SLACK, passes, row))
            else:
                events += [(start, begins, row), (finish - SLACK, ends, row)]
        for time, kind, row in sorted(events):
            if kind != ends:
                self._count(row, 1)
                yield from self._exceeded(row, time)
            if kind != begins:
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
            node, used = self._machine.nodes[share.node], self._used[share.node]
            for name in share.amounts:
                if used[name] > has(node, name):
                    text = f"with job {job}, node {node.name} has {amount_text(name, used[name])} in use"
                    text += f", but only {amount_text(name, has(node, name))}"
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
