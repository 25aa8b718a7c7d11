"""Machines of nodes: who waits for and who has cores, memory, GPUs and other resources of which nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import NODE_PROPERTIES, Host
from batsched_py.protocol.requests import Amounts, Request, amount, parse_features
from batsched_py.protocol.shown import shown_name

Integers = NDArray[np.int64]

#: The first column of amounts: free cores.
CORES = 0
#: The second: how many more jobs could be on a node. An exclusive one takes all of it.
PLACES = 1
#: What a node without a job has in the second column.
ALL_PLACES = 1 << 32


class Node(Struct, frozen=True):
    """Some cores with what they share."""

    name: str
    first: int
    """Its first host."""
    cores: int
    resources: dict[str, int]
    features: frozenset[str] = frozenset()
    switch: str = ""
    partitions: tuple[str, ...] = ()


class NodeMachine:
    """All nodes, with their amounts of resources in columns."""

    def __init__(self, nodes: Sequence[Node], licences: Mapping[str, int]) -> None:
        self.nodes = nodes
        self.licences = dict(licences)
        names = dict.fromkeys(name for node in nodes for name in node.resources)
        self.resources = ["cores", "places", *names]
        """The names of the columns."""
        self.column = {name: column for column, name in enumerate(self.resources)}
        self.firsts: Integers = np.array([node.first for node in nodes], np.int64)
        self.has: Integers = np.array(
            [[node.cores, ALL_PLACES, *(node.resources.get(name, 0) for name in names)] for node in nodes],
            np.int64,
        )
        """What each node has, a row a node."""

    @classmethod
    def of(cls, hosts: Sequence[Host]) -> NodeMachine:
        """The nodes that hosts make up."""
        nodes: dict[str, list[Host]] = {}
        for host in hosts:
            nodes.setdefault(host.properties.get("node", host.name), []).append(host)
        try:
            return cls(
                [_node(name, cores) for name, cores in nodes.items()],
                read_amounts(hosts[0].zone_properties.get("licences", "")),
            )
        except ValueError as error:
            raise InputError(f"the nodes of the platform: {error}") from None

    @cached_property
    def are_hosts(self) -> bool:
        """Whether nodes are equal, with one core each and nothing else: then any of them will do."""
        return not self.licences and all(
            node == Node(node.name, node.first, cores=1, resources={}) for node in self.nodes
        )

    @cached_property
    def switches(self) -> list[Integers]:
        """The nodes behind each switch, in the order of their first nodes."""
        behind: dict[str, list[int]] = {}
        for place, node in enumerate(self.nodes):
            behind.setdefault(node.switch, []).append(place)
        return [np.array(places, np.int64) for places in behind.values()]

    def totals(self, free: Integers, licences: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """Of each resource and licence, how much is free of all nodes together, and how much there is."""
        found = {
            name: (int(free[:, column].sum()), int(self.has[:, column].sum()))
            for name, column in self.column.items()
            if column != PLACES
        }
        return found | {name: (licences[name], count) for name, count in self.licences.items()}

    def hosts_of(self, node: int) -> HostSet:
        """The hosts that are the cores of a node."""
        first = self.nodes[node].first
        return HostSet.of_runs(((first, first + self.nodes[node].cores - 1),))

    def nodes_of(self, first: int, last: int) -> range:
        """The nodes to which the hosts of an interval belong."""
        low, high = np.searchsorted(self.firsts, (first, last), "right")
        return range(int(low) - 1, int(high))


def _node(name: str, hosts: list[Host]) -> Node:
    first, properties = hosts[0].id, hosts[0].properties
    if [host.id for host in hosts] != list(range(first, first + len(hosts))):
        raise ValueError(f"the hosts of node {name!r} do not follow each other in the order of their names")
    for host in hosts:
        for key in NODE_PROPERTIES:
            if host.properties.get(key) != properties.get(key):
                raise ValueError(f"hosts {hosts[0].name!r} and {host.name!r} of a node differ in {key!r}")
    return Node(
        name,
        first,
        len(hosts),
        read_amounts(properties.get("resources", "")),
        frozenset(properties.get("features", "").split()),
        properties.get("switch", ""),
        tuple(properties.get("partitions", "").split()),
    )


def read_amounts(text: str) -> dict[str, int]:
    """Amounts of resources, as a property gives them.

    >>> read_amounts("memory=2GB gpu=4")
    {'memory': 2097152, 'gpu': 4}
    """
    amounts = {}
    for part in text.split():
        name, equals, value = part.partition("=")
        if not (name and equals):
            raise ValueError(f"{part!r} is not of the form NAME=AMOUNT")
        if name in ("cores", "places"):
            raise ValueError(f"{name!r} cannot be the name of a resource")
        amounts[name] = amount(name, value)
    return amounts


class Demand(Struct, frozen=True, eq=False):
    """How much each task and each node of a job takes, and which nodes are meant."""

    request: Request
    per_task: Integers
    per_node: Integers
    meant: Sequence[Integers]
    """Nodes of its partitions with its features, an alternative each; the preferred one comes first."""
    alternatives: Sequence[Integers]
    """Those of them that could take a task if they were empty; all of the job goes to one alternative."""

    @property
    def licences(self) -> Amounts:
        """How many of which it takes of the whole machine."""
        return self.request.licences

    def capacities(self, free: Integers) -> Integers:
        """How many tasks each node could take, of which so much of each resource is free.

        >>> from batsched_py.ledger.nodes import Node
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


class Refusal(Struct, frozen=True):
    """A reason, and what many reasons have in common."""

    kind: str
    """Like ``memory of a node``: jobs are counted by it."""
    text: str
    """Like ``asks for 512 GB on a node, the largest has 256 GB``."""


def why_never(demand: Demand, machine: NodeMachine) -> Refusal | None:
    """Why a job cannot run even if nothing else does; nothing if it can.

    >>> from batsched_py.ledger.nodes import demand_of
    >>> from batsched_py.ledger.nodes import Node
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


#: What a job lacks that must have its nodes alone.
EMPTY = "empty nodes"

#: What it lacks if of each resource alone enough is free.
TOGETHER = "together"


def lacking(machine: NodeMachine, demand: Demand, free: Integers, licences: Mapping[str, int]) -> list[str]:
    """The resources of which alone too little is free for a job; none if there is a place for it.

    Where of each alone enough is free, but not on the same nodes, it is :data:`TOGETHER`.
    """
    short = [name for name, count in demand.request.licences if licences.get(name, 0) < count]
    if demand.nodes(free) is not None:
        return short
    for column, name in enumerate(machine.resources):
        only = machine.has.copy()
        only[:, column] = free[:, column]
        if demand.nodes(only) is None:
            short.append(EMPTY if column == PLACES else name)
    return short or [TOGETHER]


def where(request: Request) -> str:
    """On which nodes a job asks for it, in words; nothing if any will do."""
    words = f" on nodes with {request.features}" if request.features else ""
    if request.partitions:
        words += f"{'' if words else ' on nodes'} of {' or '.join(request.partitions)}"
    return words


def in_words(short: list[str] | tuple[str, ...], place: str) -> str:
    """What a job lacks, as a phrase.

    >>> in_words(["memory"], " on nodes with a100")
    'memory on nodes with a100'
    """
    if TOGETHER in short:
        return f"enough of everything on the same nodes{place.removeprefix(' on nodes')}"
    if short[-1] == EMPTY:
        place = place.removeprefix(" on nodes")
    return f"{' and '.join(short)}{place}"
