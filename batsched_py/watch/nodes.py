"""Machines of nodes in a few words: how much of their resources is in use, and what a job asks for."""

from __future__ import annotations

from collections.abc import Iterator

from batsched_py.ledger.nodes.account import NodeAccount
from batsched_py.ledger.nodes.lacking import in_words, lacking, where
from batsched_py.ledger.nodes.machine import CORES, PLACES
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import Request


def nodes_text(nodes: NodeAccount) -> str:
    """How much of each resource beside cores is free, and how many nodes have no job at all."""
    machine, free = nodes.machine, nodes.free.amounts
    empty = int((free[:, PLACES] == machine.has[:, PLACES]).sum())
    words = [f"{empty:,} of {len(machine.nodes):,} nodes empty"]
    for column, name in enumerate(machine.resources[PLACES + 1 :], PLACES + 1):
        share = free[:, column].sum() / max(1, machine.has[:, column].sum())
        words.append(f"{share:.0%} of {name} free")
    words += [
        f"{nodes.licences[name]:,} of {count:,} {name} free" for name, count in machine.licences.items()
    ]
    return "   ".join(words)


def asked_text(request: Request) -> str:
    """What a job asks for beside its hosts, as short as possible.

    >>> asked_text(Request(4, per_node=(("memory", 2097152),), features="a100", exclusive=True))
    '2G/node a100 alone'
    """
    return " ".join(_asked(request))


def _asked(request: Request) -> Iterator[str]:
    for amounts, of in ((request.per_task, "task"), (request.per_node, "node")):
        for name, count in amounts:
            yield f"{count / 1024**2:.3g}G/{of}" if name == "memory" else f"{count} {name}/{of}"
    for name, count in request.licences:
        yield f"{count} {name}"
    if request.features:
        yield request.features
    if request.partitions:
        yield "|".join(request.partitions)
    if request.exclusive:
        yield "alone"


def lacks(job: Job, nodes: NodeAccount) -> str:
    """What a job waits for beside a number of hosts, in words; nothing if there is a place for it."""
    demand, free = nodes.demand(job), nodes.free.amounts
    short = lacking(nodes.machine, demand, free, nodes.licences)
    if not short and not nodes.fits(job):
        return f"nodes that stay open to it{where(demand).removeprefix(' on nodes')}"
    return "" if not short or nodes.machine.are_hosts else in_words(short, where(demand))


def node_lines(nodes: NodeAccount, most: int) -> Iterator[str]:
    """What is free on each of the first nodes."""
    machine = nodes.machine
    for number, node in enumerate(machine.nodes[:most]):
        free = nodes.free.amounts[number]
        told = [f"{int(free[CORES])} of {node.cores} cores"]
        for name, count in node.resources.items():
            told.append(_of(name, int(free[machine.column[name]]), count))
        yield f"node {node.name}: {', '.join(told)} free"


def _of(name: str, free: int, count: int) -> str:
    if name == "memory":
        return f"{free / 1024**2:.3g} of {count / 1024**2:.3g} GB"
    return f"{free} of {count} {name}"
