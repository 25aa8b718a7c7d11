"""How nodes are taken for a job one after another, until it has all it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.schedulers.slurm.asked import Asked
from batsched_py.schedulers.slurm.nodes import Machine, neighbours, places

#: How much of each other resource of the machine is free, node by node.
Columns = Sequence[Sequence[int]]


class Taking:
    """The nodes that are taken for a job one after another, and what is still missing."""

    def __init__(self, asked: Asked, room: dict[int, int], free: Columns, machine: Machine) -> None:
        self._asked = asked
        self._room = room
        self._machine = machine
        self._usable_cpus = self.cpus_left = asked.cpus
        self.nodes_left = asked.wanted_nodes
        self.least_nodes_left = asked.least_nodes
        """So many are missing at least, if a range of nodes was asked for."""
        self.most_nodes = most_nodes(asked)
        self._gpus = [free[columns[0]] for columns, _ in asked.of_job]
        self._gpus_left = [amount for _, amount in asked.of_job]
        self.chosen: dict[int, int] = {}
        """How many processors of which node."""

    @property
    def is_enough(self) -> bool:
        """Whether nothing is missing."""
        return self.nodes_left <= 0 and self.cpus_left <= 0 and self.have_gpus()

    def have_gpus(self, *nodes: int) -> bool:
        """Whether these nodes have the GPUs of the whole job that are missing."""
        return not self._gpus_left or all(
            left <= sum(free[node] for node in nodes)
            for left, free in zip(self._gpus_left, self._gpus, strict=True)
        )

    def take_neighbours(self, nodes: int) -> None:
        """Take nodes that follow one another, as long as something is missing."""
        sets = self._sets(nodes)
        while sets and self.most_nodes and not self.is_enough:
            self._take_set(sets.pop(_best(sets, self))[1])

    def take_one_set(self, nodes: int) -> bool:
        """Take nodes that follow one another, if one set of them is enough; whether it is."""
        sets = self._sets(nodes)
        best = _best(sets, self) if sets and self.most_nodes and not self.is_enough else None
        if best is None or not self.are_enough(*sets[best]):
            return False
        self._take_set(sets[best][1])
        return True

    def _sets(self, nodes: int) -> list[tuple[int, int]]:
        """Nodes that follow one another, and how many processors each such set has."""
        return [(sum([self._room[node] for node in places(part)]), part) for part in neighbours(nodes)]

    def _take_set(self, nodes: int) -> None:
        members, room = list(places(nodes)), self._room
        if self.nodes_left <= 1:
            enough = [node for node in members if room[node] >= self.cpus_left and self.have_gpus(node)]
            if enough:
                members = [min(enough, key=room.__getitem__)]
        for node in members:
            self.take_if_needed(node)

    def take_least_loaded(self, nodes: int) -> None:
        """Take the nodes of which the largest part is free, as long as something is missing.

        Slurm looks no further when it comes to a node with as many free processors as the last one had.
        """
        room, cpus, last = self._room, self._machine.cpus, -1
        left = list(places(nodes))
        while left and self.most_nodes and not self.is_enough:
            best = left[0]
            for node in left:
                if node == best or room[best] * cpus[node] < room[node] * cpus[best]:
                    best = node
                    if room[node] == last:
                        break
            last = room[best]
            self.take(best)
            left.remove(best)

    def are_enough(self, cpus: int, nodes: int) -> bool:
        """Whether these nodes with so many processors are all that is missing."""
        return (
            cpus >= self.cpus_left
            and nodes.bit_count() >= self.least_nodes_left
            and self.have_gpus(*places(nodes))
        )

    def take_if_needed(self, node: int) -> None:
        """Take a node if something is missing, and if it is enough where no other may follow."""
        if node in self.chosen or not self.most_nodes or self.is_enough:
            return
        if self.most_nodes > 1 or self._room[node] >= self.cpus_left:
            self.take(node)

    def take(self, node: int) -> None:
        """Take a node: all processors of use, but for a core or socket of each node that must follow."""
        cpus = self._room[node]
        if not self._asked.exclusive:
            threads, granule = self._machine.threads[node], self._machine.granules[node]
            of_core = min(threads, self._asked.cpus_of_core)
            of_following = of_core * max(granule // threads, 1)
            kept = self._usable_cpus - max(self.least_nodes_left - 1, 0) * of_following
            if cpus > kept:
                cpus = max(kept, self._asked.cpus_of_node)
        self.chosen[node] = cpus
        for kind, free in enumerate(self._gpus):
            self._gpus_left[kind] -= free[node]
        self.cpus_left -= cpus
        self._usable_cpus -= cpus
        self.nodes_left -= 1
        self.least_nodes_left -= 1
        self.most_nodes -= 1


def most_nodes(asked: Asked) -> int:
    """How many nodes a job may have: no more than tasks, unless it asks for them."""
    return min(asked.most_nodes, max(asked.tasks, asked.least_nodes))


def _best(sets: list[tuple[int, int]], taking: Taking) -> int:
    """The smallest set of neighbours that is enough, or else the largest; of equal ones the first."""
    best, best_cpus, best_is_enough = 0, 0, False
    for place, (of_set, part) in enumerate(sets):
        enough = taking.are_enough(of_set, part)
        if (
            place == 0
            or (enough and not best_is_enough)
            or (enough and of_set < best_cpus)
            or (not enough and of_set > best_cpus)
        ):
            best, best_cpus, best_is_enough = place, of_set, enough
    return best
