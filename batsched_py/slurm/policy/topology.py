"""Which nodes a job gets where ``topology/tree`` counts: those of one leaf switch, if they are enough.

Slurm looks at the leaf switches, for one tree above them reaches all nodes. It takes the one with the most
nodes that would do. If these are not enough, it takes one node of each switch in turn. Nodes of less weight
are used up before others are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batsched_py.slurm.policy.nodes import places
from batsched_py.slurm.policy.taking import Taking


def nb_switches(switches: Sequence[int], nodes: int) -> int:
    """Behind how many switches some nodes are.

    >>> nb_switches([0b11, 0b1100], 0b110)
    2
    """
    return sum(1 for switch in switches if switch & nodes)


def take_by_switches(
    taking: Taking, nodes: int, required: int, by_weight: Sequence[int], switches: Sequence[int]
) -> bool:
    """Take nodes for a job that has the ``required`` ones already; whether it may have more."""
    if taking.is_enough:
        return True
    reached = sum(switches)
    best, lighter = 0, 0
    for of_weight in by_weight:
        lighter = best
        best |= nodes & of_weight & reached & ~required
        if taking.are_enough(taking.room_of(best), best):
            break
    else:
        return False
    if not _take_all(taking, lighter):
        return False
    behind = [switch & (best | required) for switch in switches]
    needed = [switch for switch in behind if switch & (required | lighter)]
    if not needed:
        needed = [max(behind, key=int.bit_count)]
    taken = required | lighter
    if len(needed) == 1:
        rest = needed[0] & ~taken
        if taking.are_enough(taking.room_of(rest), rest):
            return _take_all(taking, rest)
    for node in _in_turn([switch & ~taken for switch in behind]):
        if not taking.most_nodes:
            return False
        taking.take(node)
        if taking.is_enough:
            break
    return True


def _take_all(taking: Taking, nodes: int) -> bool:
    """Take some nodes until nothing is missing; whether the job may have as many."""
    for node in places(nodes):
        if taking.is_enough:
            break
        if not taking.most_nodes:
            return False
        taking.take(node)
    return True


def _in_turn(switches: Sequence[int]) -> Iterator[int]:
    """The nodes of switches, one of each in turn.

    >>> list(_in_turn([0b111, 0b11000]))
    [0, 3, 1, 4, 2]
    """
    left = [list(reversed(places(switch))) for switch in switches]
    while any(left):
        for nodes in left:
            if nodes:
                yield nodes.pop()
