"""Why there is no place for a job."""

from __future__ import annotations

from collections.abc import Mapping

from batsched_py.ledger.nodes.demand import Demand
from batsched_py.ledger.nodes.machine import PLACES, Integers, NodeMachine

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


def where(demand: Demand) -> str:
    """On which nodes a job asks for it, in words; nothing if any will do."""
    request = demand.request
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
