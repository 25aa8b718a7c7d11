"""The nodes of a machine, as the properties of its hosts tell them.

A host is what Batsim executes on: a core, or a whole node. Hosts with the same property ``node`` are the
cores of one node; a host without it is a node of its own. Further properties of each host of a node:

* ``resources``: what else the node has, like ``memory=256GB gpu=4``;
* ``features``: what it is called for, like ``a100 fast``;
* ``switch``: which switch it is behind;
* ``partitions``: to which it belongs, like ``gpu short``.

The licences of the whole machine stand in the property ``licences`` of its zone, like ``matlab=4``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import NODE_PROPERTIES, Host
from batsched_py.protocol.requests import amount

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
