"""Which nodes a job gets where ``topology/tree`` counts: those behind few leaf switches that are close.

Slurm looks for the leaf switch that fits best: of those with enough nodes, the one with the fewest; else the
one with the most, and then others close to it. Nodes of less weight are used up before others are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from batsched_py.slurm.policy.nodes import places
from batsched_py.slurm.policy.settings import Switch
from batsched_py.slurm.policy.taking import Taking


class Switches:
    """A tree of switches, in the order of the configuration.

    >>> tree = Switches([0b11, 0b1100, 0b1111], [2, 2, 2])
    >>> tree.leaves, tree.levels, tree.distances[0], tree.nb_leaves(0b110)
    ([0, 1], [0, 0, 1], [0.0, 2.0, 1.0], 2)
    """

    def __init__(self, nodes: Sequence[int], parents: Sequence[int]) -> None:
        self.nodes = list(nodes)
        """Those that each switch reaches."""
        self.parents = list(parents)
        """The switch above each; itself if there is none."""
        self.levels = [0] * len(self.nodes)
        self._order()
        self.leaves = [place for place, level in enumerate(self.levels) if level == 0]
        self.distances = [[self._distance(one, other) for other in self._all] for one in self._all]
        """From each switch to each, in links."""

    def _order(self) -> None:
        """Find the level of each switch: one more than the highest below it."""
        self._all = range(len(self.nodes))
        for _ in self._all:
            for place, parent in enumerate(self.parents):
                if parent != place:
                    self.levels[parent] = max(self.levels[parent], self.levels[place] + 1)

    def _above(self, place: int) -> list[int]:
        above = [place]
        while self.parents[above[-1]] != above[-1]:
            above.append(self.parents[above[-1]])
        return above

    def _distance(self, one: int, other: int) -> float:
        above, beyond = self._above(one), self._above(other)
        common = next((place for place in above if place in beyond), None)
        return inf if common is None else float(above.index(common) + beyond.index(common))

    @classmethod
    def of(cls, settings: Sequence[Switch], nodes: Sequence[int]) -> Switches:
        """Those of a configuration, each with the nodes that it names."""
        number = {each.name: place for place, each in enumerate(settings)}
        parents = list(range(len(settings)))
        for place, each in enumerate(settings):
            for name in each.below:
                parents[number[name]] = place
        reached = list(nodes)
        for _ in settings:
            for place, parent in enumerate(parents):
                reached[parent] |= reached[place]
        return cls(reached, parents)

    def nb_leaves(self, nodes: int) -> int:
        """Behind how many leaf switches some nodes are."""
        return sum(1 for leaf in self.leaves if self.nodes[leaf] & nodes)

    def top(self, nodes: int, required: int, by_weight: Sequence[int], least: int) -> int | None:
        """The switch whose nodes a job may get: the highest with the required ones, or enough light ones."""
        best, lightest = None, len(by_weight)
        for place in self._all:
            has = self.nodes[place] & nodes
            if required:
                if has & required and (best is None or self.levels[place] > self.levels[best]):
                    best = place
            elif has and has.bit_count() >= least:
                weight = next(rank for rank, of_weight in enumerate(by_weight) if has & of_weight)
                if best is None or (self.levels[place] >= self.levels[best] and weight <= lightest):
                    best, lightest = place, weight
        return best

    def is_better(self, one: int, other: int, counts: Sequence[int], needed: int) -> int:
        """Whether one switch suits a job better that needs so many nodes (1), or another (-1)."""
        while True:
            fits, other_fits = counts[one] >= needed, counts[other] >= needed
            if fits and other_fits and counts[one] != counts[other]:
                return 1 if counts[one] < counts[other] else -1
            if fits != other_fits:
                return 1 if fits else -1
            above, other_above = self.parents[one], self.parents[other]
            if (fits and other_fits) or above == other_above:
                break
            one, other = above, other_above
        here, there = (counts[one], -self.levels[one]), (counts[other], -self.levels[other])
        return (here > there) - (here < there)

    def best_leaf(
        self, far: Sequence[float], counts: Sequence[int], needed: int, without: set[int]
    ) -> int | None:
        """The leaf switch from which nodes are taken next; the closest first, then the one that fits best."""
        best: int | None = None
        for leaf in self.leaves:
            if leaf in without or not counts[leaf] or far[leaf] == inf:
                continue
            if best is None:
                best = leaf
                continue
            suits = self.is_better(leaf, best, counts, needed)
            if (far[leaf] < far[best] and suits >= 0) or (far[leaf] == far[best] and suits > 0):
                best = leaf
        return best


def take_by_switches(
    taking: Taking, nodes: int, required: int, by_weight: Sequence[int], switches: Switches
) -> bool:
    """Take nodes for a job that has the ``required`` ones already; whether there are enough."""
    top = switches.top(nodes, required, by_weight, taking.least_nodes_left)
    if top is None or required & ~switches.nodes[top]:
        return False
    if taking.is_enough:
        return True
    reached, best, lighter = nodes & switches.nodes[top] & ~required, 0, 0
    for of_weight in by_weight:
        lighter = best
        best |= reached & of_weight
        if taking.are_enough(taking.room_of(best), best):
            break
    else:
        return False
    _take(taking, lighter)
    had, usable = required | lighter, best | required
    counts = [(has & usable).bit_count() for has in switches.nodes]
    in_use = {place for place, has in enumerate(switches.nodes) if has & had}
    for leaf in switches.leaves:
        if leaf in in_use:
            _take(taking, switches.nodes[leaf] & best)
    far = [sum(switches.distances[place][other] for place in in_use) for other in range(len(counts))]
    while not taking.is_enough and taking.most_nodes > 0:
        leaf_next = switches.best_leaf(far, counts, taking.nodes_left, in_use)
        if leaf_next is None:
            break
        far = [each + more for each, more in zip(far, switches.distances[leaf_next], strict=True)]
        _take(taking, switches.nodes[leaf_next] & best)
        counts[leaf_next] = 0
    return True


def _take(taking: Taking, nodes: int) -> None:
    """Take some nodes, in their order, as long as something is missing and the job may have more."""
    for node in places(nodes):
        if taking.is_enough or taking.most_nodes <= 0:
            break
        if node not in taking.chosen:
            taking.take(node)
