"""What a job lacked while it waited on a machine of nodes: cores, memory, licences, or nodes of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from batsched_py.analysis.absences import Absence
from batsched_py.analysis.node_shares import Requests, cores_by_node, shares
from batsched_py.analysis.violation import SLACK
from batsched_py.ledger.nodes import (
    ALL_PLACES,
    CORES,
    PLACES,
    Demand,
    Integers,
    NodeMachine,
    demand_of,
    lacking,
    where,
)
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.requests import Request


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
