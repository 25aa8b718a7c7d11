"""What a job asks of one machine: its request, in the columns of that machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from batsched_py.ledger.nodes.machine import ALL_PLACES, CORES, PLACES, Integers, NodeMachine
from batsched_py.protocol.requests import Amounts, Request, parse_features


class Demand(Struct, frozen=True, eq=False):
    """How much each task and each node of a job takes, and which nodes are meant."""

    request: Request
    per_task: Integers
    per_node: Integers
    meant: Sequence[Integers]
    """Nodes of its partitions with its features, an alternative each; the preferred one comes first."""
    alternatives: Sequence[Integers]
    """Those of them that could take a task if they were empty; all of the job goes to one alternative."""

    def capacities(self, free: Integers) -> Integers:
        """How many tasks each node could take, of which so much of each resource is free.

        >>> from batsched_py.ledger.nodes.machine import Node
        >>> machine = NodeMachine([Node("a", 0, 8, {"memory": 4096})], {})
        >>> request = Request(16, per_task=(("memory", 1024),))
        >>> demand_of(request, machine).capacities(machine.has).tolist()
        [4]
        """
        left = free - self.per_node
        needed = self.per_task > 0
        most = (left[:, needed] // self.per_task[needed]).min(axis=1)
        most[(left < 0).any(axis=1)] = 0
        capacities: Integers = np.clip(most, 0, self.request.tasks_per_node)
        return capacities

    def fits_in(self, capacities: Integers) -> bool:
        """Whether nodes with these capacities hold all tasks."""
        request = self.request
        used = capacities[capacities > 0]
        if len(used) < request.least_nodes:
            return False
        if len(used) > request.most_nodes:
            used = np.partition(used, -request.most_nodes)[-request.most_nodes :]
        return int(np.minimum(used, request.tasks).sum()) >= request.tasks

    def nodes(self, free: Integers) -> tuple[Integers, Integers] | None:
        """The nodes of the first alternative that holds the job, with their capacities."""
        capacities = self.capacities(free)
        for nodes in self.alternatives:
            if self.fits_in(capacities[nodes]):
                return nodes, capacities[nodes]
        return None


def demand_of(request: Request, machine: NodeMachine) -> Demand:
    """What a request means on a machine; one that names what the machine does not have fits nowhere."""
    per_task, per_node = _row(request.per_task, machine), _row(request.per_node, machine)
    if (
        per_task is None
        or per_node is None
        or any(name not in machine.licences for name, _ in request.licences)
    ):
        return Demand(request, *2 * (np.ones(len(machine.resources), np.int64),), (), ())
    per_task[CORES] = request.cores
    per_node[PLACES] = ALL_PLACES if request.exclusive else 1
    meant = [nodes for nodes in _alternatives(request, machine) if len(nodes)]
    could_run = Demand(request, per_task, per_node, meant, ()).capacities(machine.has) > 0
    alternatives = [nodes[could_run[nodes]] for nodes in meant]
    return Demand(request, per_task, per_node, meant, [nodes for nodes in alternatives if len(nodes)])


def _row(amounts: Amounts, machine: NodeMachine) -> Integers | None:
    row = np.zeros(len(machine.resources), np.int64)
    for name, count in amounts:
        if name not in machine.column:
            return None
        row[machine.column[name]] = count
    return row


def _alternatives(request: Request, machine: NodeMachine) -> list[Integers]:
    meant = parse_features(request.features) if request.features else None
    nodes = [place for place, node in enumerate(machine.nodes) if meant is None or meant(node.features)]
    alternatives = [np.array(nodes, np.int64)]
    if request.partitions:
        alternatives = [
            np.array([place for place in nodes if partition in machine.nodes[place].partitions], np.int64)
            for partition in request.partitions
        ]
    if request.one_switch:
        alternatives = [
            part
            for alternative in alternatives
            for part in (*(np.intersect1d(alternative, switch) for switch in machine.switches), alternative)
        ]
    return alternatives
