"""Where a job is put: which nodes take how many of its tasks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from batsched_py.ledger.nodes.demand import Demand
from batsched_py.ledger.nodes.machine import CORES, Integers
from batsched_py.protocol.requests import Request


class Offer(Struct, frozen=True, eq=False):
    """Nodes that together hold a job, as a choice of nodes sees them."""

    demand: Demand
    nodes: Integers
    """Their numbers."""
    capacities: Integers
    """How many tasks each of them could take."""
    free: Integers
    """What is free on each, a row a node."""
    has: Integers
    """What each has in all."""
    switches: Integers
    """The number of the switch that each is behind."""


#: Ranks the nodes of an offer, as places in it, and says whether tasks are dealt out to them one by one.
NodeChoice = Callable[[Offer], tuple[Integers, bool]]


class Placement(Struct, frozen=True, eq=False):
    """The nodes of a job, how many tasks each has, and what it takes of each node.

    An exclusive job takes all cores of its nodes, also those that it does not run on.
    """

    nodes: Integers
    tasks: Integers
    taken: Integers
    """A row a node."""


def place(offer: Offer, order: Integers, one_by_one: bool) -> Placement:
    """Fill nodes in this order, one after another, or with one task each in turn."""
    demand = offer.demand
    request = demand.request
    capacities = np.minimum(offer.capacities, request.tasks)[order]
    tasks = _in_turn(capacities, request) if one_by_one else _fill(capacities, request)
    used = np.flatnonzero(tasks)
    nodes, tasks = offer.nodes[order[used]], tasks[used]
    by_number = np.argsort(nodes)
    nodes, tasks = nodes[by_number], tasks[by_number]
    taken = tasks[:, None] * demand.per_task + demand.per_node
    if request.exclusive:
        taken[:, CORES] = offer.free[order[used][by_number], CORES]
    return Placement(nodes, tasks, taken)


def _fill(capacities: Integers, request: Request) -> Integers:
    """How many tasks each node gets if each takes as many as it can.

    A node is passed over if the nodes after it could not hold the rest within the limit of nodes. One task is
    kept back for each further node that must be used.
    """
    tasks = np.zeros_like(capacities)
    left, used = request.tasks, 0
    for place, capacity in enumerate(capacities.tolist()):
        if not left:
            break
        if not capacity:
            continue
        more = request.most_nodes - used - 1
        if more < len(capacities) and capacity + _largest(capacities[place + 1 :], more) < left:
            continue
        tasks[place] = taken = min(capacity, left - max(request.least_nodes - used - 1, 0))
        left -= taken
        used += 1
    return tasks


def _in_turn(capacities: Integers, request: Request) -> Integers:
    """How many tasks each node gets if they are dealt out one by one, to as many nodes as allowed."""
    if request.most_nodes < min(len(capacities), request.tasks):
        first = np.flatnonzero(capacities)[: request.most_nodes]
        if capacities[first].sum() < request.tasks:
            first = np.flatnonzero(_fill(capacities, request))
        kept = np.zeros_like(capacities)
        kept[first] = capacities[first]
        capacities = kept
    tasks = np.zeros_like(capacities)
    left = request.tasks
    while left:
        open_nodes = np.flatnonzero(capacities > tasks)[:left]
        tasks[open_nodes] += 1
        left -= len(open_nodes)
    return tasks


def _largest(capacities: Integers, count: int) -> int:
    if count <= 0:
        return 0
    return int(np.sort(capacities)[-count:].sum())
