"""Why a machine can never give a job what it asks for, in words for people."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from batsched_py.ledger.nodes.demand import Demand
from batsched_py.ledger.nodes.machine import CORES, PLACES, Integers, NodeMachine
from batsched_py.protocol.shown import shown_name


class Refusal(Struct, frozen=True):
    """A reason, and what many reasons have in common."""

    kind: str
    """Like ``memory of a node``: jobs are counted by it."""
    text: str
    """Like ``asks for 512 GB on a node, the largest has 256 GB``."""


def why_never(demand: Demand, machine: NodeMachine) -> Refusal | None:
    """Why a job cannot run even if nothing else does; nothing if it can.

    >>> from batsched_py.ledger.nodes.demand import demand_of
    >>> from batsched_py.ledger.nodes.machine import Node
    >>> from batsched_py.protocol.requests import Request
    >>> machine = NodeMachine([Node("a", 0, 8, {"memory": 4 * 1024**2})], {})
    >>> why_never(demand_of(Request(2, per_node=(("memory", 6 * 1024**2),)), machine), machine).text
    'asks for 6 GB on a node, the largest has 4 GB'
    """
    unknown = _unknown(demand, machine)
    if unknown is not None:
        return unknown
    if demand.nodes(machine.has) is not None:
        return None
    usable = np.unique(np.concatenate(demand.meant))
    return _of_a_node(demand, machine, usable) or _of_all_nodes(demand, machine)


def _unknown(demand: Demand, machine: NodeMachine) -> Refusal | None:
    """What the machine does not have at all, or has too little of beside its nodes."""
    request = demand.request
    cores = int(machine.has[:, CORES].sum())
    if request.hosts > cores:
        return Refusal("cores", f"asks for {_cores(request.hosts)}, the machine has {cores}")
    for name, count in request.licences:
        has = machine.licences.get(name, 0)
        if count > has:
            what = f"{count} licences of {shown_name(name)}"
            return Refusal("licences", f"asks for {what}, the machine has {has}")
    for name, _ in (*request.per_task, *request.per_node):
        if name not in machine.column:
            return Refusal(f"{shown_name(name)} of a node", f"asks for {shown_name(name)}, which no node has")
    if demand.meant:
        return None
    partitions = " or ".join(map(shown_name, request.partitions))
    if request.partitions and not any(
        set(request.partitions) & set(node.partitions) for node in machine.nodes
    ):
        return Refusal("partition", f"asks for partition {partitions}, which has no nodes")
    where = f" in {partitions}" if partitions else ""
    return Refusal("features", f"asks for nodes with {request.features}, of which there are none{where}")


def _of_a_node(demand: Demand, machine: NodeMachine, usable: Integers) -> Refusal | None:
    """What a single node would need more of than any node has."""
    request = demand.request
    together = -(-request.tasks // request.most_nodes)
    needed = float(together) * demand.per_task + demand.per_node
    largest = machine.has[usable].max(axis=0)
    for column, name in enumerate(machine.resources):
        if needed[column] > largest[column] and column != PLACES:
            asked, has = _amount(name, int(needed[column])), _amount(name, int(largest[column]))
            return Refusal(f"{name} of a node", f"asks for {asked} on a node, the largest has {has}")
    if together > request.tasks_per_node:
        limits = f"{request.most_nodes} nodes and {request.tasks_per_node} tasks on each"
        return Refusal("nodes", f"asks for at most {limits}, too few for {request.tasks} tasks")
    if not (demand.capacities(machine.has)[usable] >= together).any():
        return Refusal(
            "a node with all of it", "asks for more on a node than any single node has of everything"
        )
    return None


def _of_all_nodes(demand: Demand, machine: NodeMachine) -> Refusal:
    """What too few nodes have."""
    request, capacities = demand.request, demand.capacities(machine.has)
    nodes = max(demand.meant, key=lambda nodes: int(np.minimum(capacities[nodes], request.tasks).sum()))
    fitting = int((capacities[nodes] > 0).sum())
    if fitting < request.least_nodes:
        return Refusal("nodes", f"asks for {request.least_nodes} nodes, {fitting} have what it asks for")
    room = np.sort(np.minimum(capacities[nodes], request.tasks))[-min(request.most_nodes, len(nodes)) :]
    return Refusal(
        "room for all tasks",
        f"asks for {request.tasks} tasks, the nodes that it may use have room for {int(room.sum())}",
    )


def _amount(name: str, count: int) -> str:
    if name == "memory":
        return f"{count / 1024**2:.4g} GB"
    return _cores(count) if name == "cores" else f"{count} {name}"


def _cores(count: int) -> str:
    return f"{count} core{'s' if count != 1 else ''}"
