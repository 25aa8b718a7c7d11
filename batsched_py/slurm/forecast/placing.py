"""How many processors running jobs have of each of their nodes, of which a listing tells the sum only."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from msgspec import Struct


class Placed(Struct):
    """A running job."""

    nodes: tuple[int, ...]
    cpus: int
    """Of all its nodes."""
    unit: int = 1
    """They are counted in multiples of this."""
    parts: dict[int, int] = {}
    """How many of each node."""


def place(jobs: Sequence[Placed], free: Sequence[int]) -> None:
    """Find parts for jobs, so that no node gives more than it has free, if that can be.

    Each job has something of each of its nodes. The rest is moved from nodes that give too much to others,
    perhaps by way of further jobs that are on both.

    >>> both, first = Placed((0, 1), 5), Placed((0,), 6)
    >>> place([both, first], [8, 8])
    >>> both.parts
    {0: 2, 1: 3}
    """
    left = list(free)
    for job in jobs:
        least = min(job.unit, job.cpus // len(job.nodes))
        job.parts = dict.fromkeys(job.nodes, least)
        for node in job.nodes:
            left[node] -= least
    for job in sorted(jobs, key=lambda job: len(job.nodes)):
        rest = job.cpus - sum(job.parts.values())
        for node in job.nodes:
            more = min(max(left[node], 0), rest)
            rest -= more
            _give(job, node, more, left)
        _give(job, job.nodes[0], rest, left)
    on_node: dict[int, list[Placed]] = {}
    for job in jobs:
        for node in job.nodes if len(job.nodes) > 1 else ():
            on_node.setdefault(node, []).append(job)
    for node in [node for node, count in enumerate(left) if count < 0]:
        while left[node] < 0 and (way := _way(node, on_node, left)):
            for job, source, target in way:
                _give(job, source, -job.unit, left)
                _give(job, target, job.unit, left)


def _give(job: Placed, node: int, more: int, left: list[int]) -> None:
    job.parts[node] += more
    left[node] -= more


def _way(start: int, on_node: dict[int, list[Placed]], left: Sequence[int]) -> list[tuple[Placed, int, int]]:
    """Jobs that can move some processors each, from a node to the next, the last of which has some free."""
    came: dict[int, tuple[Placed, int] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for job in on_node.get(node, ()):
            if job.parts[node] <= job.unit:
                continue
            for target in job.nodes:
                if target in came:
                    continue
                came[target] = job, node
                if left[target] >= job.unit:
                    return _back(target, came)
                waiting.append(target)
    return []


def _back(target: int, came: dict[int, tuple[Placed, int] | None]) -> list[tuple[Placed, int, int]]:
    way = []
    while (step := came[target]) is not None:
        job, source = step
        way.append((job, source, target))
        target = source
    return way
