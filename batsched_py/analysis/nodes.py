"""What the jobs of a schedule have of the nodes of a machine, by their hosts and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis.absences import Absence
from batsched_py.analysis.schedule import SLACK, full_ids, host_sets, started_again
from batsched_py.errors import InputError
from batsched_py.ledger.nodes import (
    ALL_PLACES,
    CORES,
    PLACES,
    Demand,
    Integers,
    Node,
    NodeMachine,
    demand_of,
    lacking,
    where,
)
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


@dataclass(frozen=True)
class Lack:
    """For how long a job lacked these resources; each of them alone was too little for it."""

    resources: Sequence[str]
    """As :func:`~batsched_py.ledger.nodes.lacking` tells; none while there was a place for it."""
    seconds: float


class NodeWaits:
    """What the jobs of a schedule took of the nodes, and what others lacked meanwhile.

    A job that has grown or shrunk has a row for each of its sizes.
    """

    def __init__(
        self,
        machine: NodeMachine,
        requests: Requests,
        ids: Sequence[str],
        hosts: Sequence[HostSet],
        starts: Sequence[float],
        finishes: Sequence[float],
    ) -> None:
        self._machine = machine
        self._requests = requests
        self._ids, self._hosts = ids, hosts
        self._first = {job: row for row, job in reversed(list(enumerate(ids)))}
        self._starts, self._finishes = np.asarray(starts), np.asarray(finishes)

    def where(self, job: str) -> str:
        """The kind of nodes that a job asks for, in words; nothing if any will do."""
        return where(self._demand(job))

    def lacks(self, job: str, begin: float, end: float, absences: Sequence[Absence]) -> list[Lack]:
        """What a job lacked between two times, what it lacked longest first."""
        demand = self._demand(job)
        lacked: dict[tuple[str, ...], float] = {}
        for since, until, free, licences in self._over_time(begin, end, absences):
            found = tuple(lacking(self._machine, demand, free, licences))
            lacked[found] = lacked.get(found, 0.0) + until - since
        longest = sorted(lacked.items(), key=lambda each: (-each[1], each[0]))
        return [Lack(resources, seconds) for resources, seconds in longest if seconds > SLACK]

    def would_fit(self, job: str, time: float, absences: Sequence[Absence]) -> bool:
        """Whether there was a place for a job at a time, before others were started then."""
        running = np.flatnonzero((self._starts < time - SLACK) & (self._finishes > time + SLACK))
        free, licences = self._machine.has.copy(), dict(self._machine.licences)
        for other in running.tolist():
            self._change(other, free, licences, -1)
        for absence in absences:
            if absence.since <= time + SLACK < absence.until:
                self._change_cores(absence.hosts, free, -1)
        return not lacking(self._machine, self._demand(job), free, licences)

    def _over_time(
        self, begin: float, end: float, absences: Sequence[Absence]
    ) -> Iterator[tuple[float, float, Integers, dict[str, int]]]:
        """What is free from each change until the next one."""
        free, licences = self._machine.has.copy(), dict(self._machine.licences)
        rows = np.flatnonzero((self._starts < end - SLACK) & (self._finishes > begin + SLACK))
        changes: list[tuple[float, int, int | HostSet]] = []
        for row in rows.tolist():
            changes += [(float(self._starts[row]), -1, row), (float(self._finishes[row]), 1, row)]
        for absence in absences:
            changes += [(absence.since, -1, absence.hosts), (absence.until, 1, absence.hosts)]
        changes.sort(key=lambda change: change[0])
        since = begin
        for time, sign, what in changes:
            if time >= end - SLACK:
                break
            if time > since + SLACK:
                yield since, time, free, licences
                since = time
            if isinstance(what, HostSet):
                self._change_cores(what, free, sign)
            else:
                self._change(what, free, licences, sign)
        yield since, end, free, licences

    def _demand(self, job: str) -> Demand:
        return demand_of(self._request(self._first[job]), self._machine)

    def _change(self, row: int, free: Integers, licences: dict[str, int], sign: int) -> None:
        request = self._request(row)
        for share in shares(self._machine, self._hosts[row], request):
            for name, count in share.amounts.items():
                if name in self._machine.column:
                    free[share.node, self._machine.column[name]] += sign * count
            free[share.node, PLACES] += sign * (ALL_PLACES if request.exclusive else 1)
        for name, count in request.licences:
            licences[name] = licences.get(name, 0) + sign * count

    def _change_cores(self, hosts: HostSet, free: Integers, sign: int) -> None:
        for node, cores in cores_by_node(self._machine, hosts).items():
            free[node, CORES] += sign * cores

    def _request(self, row: int) -> Request:
        return self._requests.get(self._ids[row]) or Request(max(1, len(self._hosts[row])))
