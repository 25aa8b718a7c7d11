"""The nodes of a machine, and what of them is free.

A set of nodes is a whole number with one bit for each of them, the first node of the machine being the lowest
bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.protocol.hosts import expand

if TYPE_CHECKING:
    from batsched_py.slurm.policy.topology import Switches

KIBIBYTES = 1024
"""Of a megabyte, which is the unit of memory in the configuration."""


class Node(Struct, frozen=True):
    """What a node has, in Slurm's units."""

    name: str
    first: int
    """The first of its hosts, which are its processors."""
    cpus: int
    memory: int = 0
    """In KiB."""
    others: tuple[int, ...] = ()
    """How much it has of each other resource of the machine, such as GPUs."""
    weight: int = 1
    threads: int = 1
    """How many of its processors are one core; no two jobs share a core."""
    granule: int = 1
    """In multiples of how many processors it is given out: those of a core, or of a socket."""


class Machine:
    """All nodes, and the sets of them that are asked for often."""

    def __init__(
        self,
        nodes: Sequence[Node],
        down: int = 0,
        mixes_weights: bool = False,
        switches: Switches | None = None,
        switches_if_asked: bool = False,
    ) -> None:
        self.nodes = list(nodes)
        self.switches = switches
        """The tree of switches, where it counts."""
        self.switches_if_asked = switches_if_asked
        """Whether they count only for jobs that ask for one switch."""
        self.mixes_weights = mixes_weights
        """Whether a job may get heavier nodes than others that are free, as with ``select/linear``."""
        self.all = (1 << len(self.nodes)) - 1
        self.up = self.all & ~down
        """Those that jobs may get at all."""
        self.cpus = [node.cpus for node in self.nodes]
        self.memory = [node.memory for node in self.nodes]
        self.threads = [node.threads for node in self.nodes]
        self.granules = [node.granule for node in self.nodes]
        self.gives_single_cpus = all(node.threads == node.granule == 1 for node in self.nodes)
        """Whether processors are given out one by one on all nodes."""
        self.others = [list(column) for column in zip(*(node.others for node in self.nodes), strict=True)]
        """A column for each other resource."""
        weights = sorted({node.weight for node in self.nodes})
        self._by_weight = [self.where(node.weight == weight for node in self.nodes) for weight in weights]
        self.by_weight = self._by_weight
        """The nodes of each weight, those that are taken first being first."""
        self.is_uniform = len(set(self.cpus)) == 1
        """Whether all nodes have the same number of processors."""
        self.number = {node.name: place for place, node in enumerate(self.nodes)}

    def take_last(self, nodes: int) -> None:
        """Take these nodes after all others, whatever their weights: they sleep."""
        awake = [of_weight & ~nodes for of_weight in self._by_weight]
        self.by_weight = [*filter(None, awake), nodes] if nodes else self._by_weight

    def where(self, wanted: Iterable[bool]) -> int:
        """The set of nodes for which this is so, node by node."""
        return sum(1 << place for place, is_so in enumerate(wanted) if is_so)

    def named(self, names: Sequence[str]) -> int:
        """The set of nodes of these names; those that do not exist are left out."""
        return sum(1 << self.number[name] for name in names if name in self.number)

    def written(self, text: str) -> int:
        """The set of nodes that are written like ``n[1-8],m1``, or ``ALL`` of them."""
        return self.all if text.upper() == "ALL" else self.named(expand(text))

    def tres(self, nodes: int, names: Sequence[str]) -> dict[str, float]:
        """What nodes have together, memory in MB; the ``names`` are those of the other resources."""
        members = places(nodes)
        return {
            "cpu": float(sum(self.cpus[node] for node in members)),
            "mem": sum(self.memory[node] for node in members) / KIBIBYTES,
            "node": float(len(members)),
            **{
                name: float(sum(column[node] for node in members))
                for name, column in zip(names, self.others, strict=True)
            },
        }

    def cpus_of(self, share: Share) -> int:
        """How many processors a job has."""
        if not share.exclusive:
            return sum(cpus for _, cpus, _ in share.parts)
        if self.is_uniform:
            return share.nodes.bit_count() * self.cpus[0]
        return sum(self.cpus[node] for node in places(share.nodes))


class Share(Struct, frozen=True, gc=False):
    """What a job has: its nodes, and what it has of each of them if it shares them."""

    nodes: int
    exclusive: bool
    parts: tuple[tuple[int, int, int], ...] = ()
    """The node, processors and memory; empty for a job that has its nodes for itself."""
    others: tuple[tuple[int, int, int], ...] = ()
    """Which other resource of which node, and how much of it."""


class Usage:
    """What is free on each node, now or at some time in the future."""

    __slots__ = ("cpus", "exclusive", "idle", "jobs", "memory", "others")

    def __init__(self, machine: Machine) -> None:
        self.idle = machine.all
        """The nodes without a job."""
        self.exclusive = 0
        """The nodes of jobs that share them with nobody."""
        self.cpus = list(machine.cpus)
        self.memory = list(machine.memory)
        self.others = [column.copy() for column in machine.others]
        self.jobs = [0] * len(machine.nodes)
        """How many jobs share each node."""

    def copy(self) -> Usage:
        """The same, to be changed."""
        other = Usage.__new__(Usage)
        other.idle, other.exclusive = self.idle, self.exclusive
        other.cpus, other.memory = self.cpus.copy(), self.memory.copy()
        other.jobs = self.jobs.copy()
        other.others = [column.copy() for column in self.others]
        return other

    def take(self, share: Share) -> None:
        """A job has this from now on."""
        self.idle &= ~share.nodes
        if share.exclusive:
            self.exclusive |= share.nodes
        for node, cpus, memory in share.parts:
            self.cpus[node] -= cpus
            self.memory[node] -= memory
            self.jobs[node] += 1
        for column, node, amount in share.others:
            self.others[column][node] -= amount

    def give(self, share: Share) -> None:
        """A job has this no longer."""
        if share.exclusive:
            self.exclusive &= ~share.nodes
            self.idle |= share.nodes
        for node, cpus, memory in share.parts:
            self.cpus[node] += cpus
            self.memory[node] += memory
            self.jobs[node] -= 1
            if not self.jobs[node]:
                self.idle |= 1 << node
        for column, node, amount in share.others:
            self.others[column][node] += amount


@lru_cache(maxsize=1 << 14)
def places(nodes: int) -> tuple[int, ...]:
    """The numbers of the nodes of a set, in their order; the same sets are asked for again and again.

    >>> places(0b1011)
    (0, 1, 3)
    """
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return tuple(found)


def neighbours(nodes: int) -> Iterator[int]:
    """A set of nodes, cut into sets of nodes that follow one another.

    >>> [bin(part) for part in neighbours(0b110111)]
    ['0b111', '0b110000']
    """
    while nodes:
        part = nodes & ~(nodes + (nodes & -nodes))
        yield part
        nodes ^= part


def natural(name: str) -> list[tuple[bool, int, str]]:
    """The order of names in which Slurm keeps nodes: numbers count as numbers.

    >>> sorted(["n10", "n2", "m1"], key=natural)
    ['m1', 'n2', 'n10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts if part]
