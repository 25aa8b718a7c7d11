"""What the jobs of a schedule have of the nodes of a machine, by their hosts and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
from msgspec import Struct

from batsched_py.analysis.restarts import started_again
from batsched_py.analysis.schedule import full_ids, host_sets
from batsched_py.errors import InputError
from batsched_py.ledger.nodes import Node, NodeMachine
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import Request, read_request
from batsched_py.protocol.sizes import SIZES, shaped
from batsched_py.workload.model import Workload

#: Those that a workload describes, by their full identifiers.
Requests = Mapping[str, Request]


class Share(Struct, frozen=True):
    """What a job has of one node."""

    node: int
    """Its number."""
    cores: int
    """How many of its cores the job runs on."""
    tasks: int
    """How many tasks that makes; one that is split counts, too."""
    amounts: Mapping[str, int]
    """Of each resource, cores included."""


def requests_of(workloads: Sequence[Workload], schedule: pd.DataFrame) -> dict[str, Request]:
    """What the jobs of workloads ask for; those of several sizes, with the size that they have.

    A job that was started again after a failure, as ``w0!7#1``, asks for the same.
    """
    jobs = {job.id: job for load in workloads for job in load.jobs}
    requests = {name: _request(job) for name, job in jobs.items()}
    names = full_ids(schedule)
    again = started_again(schedule.assign(id=names))
    for name, hosts in zip(names, host_sets(schedule), strict=True):
        job = jobs.get(again.get(name, name))
        if job is not None and (SIZES in job.extra or name in again):
            requests[name] = _request(shaped(job, len(hosts)))
    return requests


def _request(job: Job) -> Request:
    try:
        return read_request(job.size, job.extra.get("request"))
    except ValueError as error:
        raise InputError(f"job {job.id}: {error}") from None


def shares(machine: NodeMachine, hosts: HostSet, request: Request) -> list[Share]:
    """What a job that asks for this has, on these hosts, of each of its nodes in turn."""
    return [_share(node, cores, request) for node, cores in cores_by_node(machine, hosts).items()]


def cores_by_node(machine: NodeMachine, hosts: HostSet) -> dict[int, int]:
    """How many of some hosts are cores of which node; hosts that the machine does not have do not count."""
    count: dict[int, int] = {}
    for first, last in (hosts & all_hosts(machine)).runs():
        for number in machine.nodes_of(first, last):
            node = machine.nodes[number]
            here = min(last + 1, node.first + node.cores) - max(first, node.first)
            count[number] = count.get(number, 0) + here
    return count


def has(node: Node, resource: str) -> int:
    """How much of a resource a node has."""
    return node.cores if resource == "cores" else node.resources.get(resource, 0)


def amount_text(resource: str, count: int) -> str:
    """An amount in words.

    >>> amount_text("memory", 3 * 1024**2), amount_text("gpu", 1), amount_text("memory", 100)
    ('3 GB of memory', '1 gpu', '100 kB of memory')
    """
    if resource != "memory":
        return f"{count} {resource}"
    for unit, size in (("TB", 1024**3), ("GB", 1024**2), ("MB", 1024)):
        if count >= size:
            return f"{count / size:.10g} {unit} of memory"
    return f"{count} kB of memory"


def executed_shares(
    executed: pd.DataFrame, machine: NodeMachine, requests: Requests
) -> Iterator[tuple[Request, list[Share]]]:
    """What each job of a schedule asks for and has; one that no workload describes asks for cores alone."""
    for job, hosts in zip(executed["id"], executed["hosts"], strict=True):
        request = requests.get(job) or Request(max(1, len(hosts)))
        yield request, shares(machine, hosts, request)


def _share(node: int, cores: int, request: Request) -> Share:
    tasks = -(-cores // request.cores)
    amounts = {"cores": cores}
    for name, count in request.per_task:
        amounts[name] = amounts.get(name, 0) + tasks * count
    for name, count in request.per_node:
        amounts[name] = amounts.get(name, 0) + count
    return Share(node, cores, tasks, amounts)


def first_hosts(machine: NodeMachine) -> dict[str, int]:
    """The first host of each node, by its name."""
    return {node.name: node.first for node in machine.nodes}


def all_hosts(machine: NodeMachine) -> HostSet:
    """All cores of a machine."""
    last = machine.nodes[-1]
    return HostSet.range(last.first + last.cores)
