"""Rules about what comes from outside, from their definitions: closures, failures and caps on power."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TextIO

import numpy as np
import pandas as pd

from batsched_py.analysis.conditions import Absence
from batsched_py.analysis.schedule import (
    SLACK,
    before_restarts,
    ended_by_failures,
    full_ids,
    host_sets,
    in_pieces,
    started,
)
from batsched_py.analysis.validator.rules import Violation
from batsched_py.errors import InputError
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, read_watts
from batsched_py.workload.model import Workload


def into_closures(
    schedule: pd.DataFrame, closures: Sequence[Closure], workloads: Sequence[Workload]
) -> Iterator[Violation]:
    """The jobs that are started on hosts which close before their walltime is over, or grow into such hosts.

    The workloads tell whose jobs they are, and so which of them a reservation lets in.
    """
    users = {job.id: job.user for workload in workloads for job in workload.jobs}
    schedule = schedule.assign(id=full_ids(schedule))
    failed = ended_by_failures(schedule)
    walltimes = schedule["requested_time"].where(schedule["requested_time"] >= 0, inf)
    pieces = in_pieces(started(schedule.assign(latest=schedule["starting_time"] + walltimes)))
    for row, hosts in zip(pieces.itertuples(), host_sets(pieces), strict=True):
        start, end, user = row.starting_time, row.latest, users.get(before_restarts(row, failed))
        for closure in closures:
            closed = hosts & closure.hosts
            if closed and closure.bars(user, start + SLACK, end - SLACK):
                text = (
                    f"job {row.id} begins on hosts {closed}, which are closed from {closure.start:g} to "
                    f"{closure.end:g}, and could still run then"
                )
                yield Violation("closed", (row.id,), start, text)


_FAILED = re.compile(r"(?:^| )failed=([0-9,-]+)(?: |$)")


def on_failed_hosts(
    schedule: pd.DataFrame, absences: Sequence[Absence], events: Sequence[Absence] = ()
) -> Iterator[Violation]:
    """The jobs that run on hosts while these are away, and those that no failure has ended as they say.

    The absences are those of ``PREFIX_absences.csv``: a failure ends the jobs on its hosts. Where hosts are
    taken away by ``events``, jobs may go on.
    """
    away = [absence for absence in absences if absence.state == "away"]
    executed = started(schedule)
    pieces = in_pieces(executed)
    for job, start, finish, hosts in zip(
        full_ids(pieces), pieces["starting_time"], pieces["finish_time"], host_sets(pieces), strict=True
    ):
        for absence in away:
            if start < absence.until - SLACK and finish > absence.since + SLACK and hosts & absence.hosts:
                text = (
                    f"job {job} runs on hosts {hosts & absence.hosts}, which are away from {absence.since:g} "
                    f"to {absence.until:g}"
                )
                yield Violation("away", (job,), max(start, absence.since), text)
    for job, finish, hosts, note in zip(
        full_ids(executed), executed["finish_time"], host_sets(executed), executed["metadata"], strict=True
    ):
        if (found := _FAILED.search(note)) is not None:
            lost, failing = HostSet.parse(found[1].replace(",", " ")), HostSet()
            for absence in (*away, *events):
                if abs(absence.since - finish) <= SLACK:
                    failing = failing | absence.hosts
            if not (lost <= failing and lost <= hosts):
                text = f"job {job} is ended by a failure of hosts {lost}, of which nothing is known"
                yield Violation("failure", (job,), finish, text)


#: A sum of watts may be more than the cap by this share.
PRECISION = 1e-9

#: What an instant does: a job ends, hosts change their power state, the cap changes, a job starts.
_END, _SWITCH, _CAP, _START = range(4)


def over_power_cap(
    schedule: pd.DataFrame, hosts: Sequence[Host], cap: Curve, switches: pd.DataFrame | None = None
) -> Iterator[Violation]:
    """When more power than a cap is drawn, if each host with a job is fully busy.

    ``switches`` are the changes of power states that the simulator has written down. Without them, hosts are
    always awake. On their way from one state to another, they may draw what they draw on any such way.
    """
    schedule = in_pieces(schedule)
    schedule = schedule.assign(id=full_ids(schedule), hosts=host_sets(schedule))
    machine = _Machine(hosts)
    last = schedule["finish_time"].max()
    changes = [(time, _CAP, "", "", 0) for time in cap.changes(0.0, last)]
    for time, kind, name, allocation, pstate in sorted(
        [*_instants(schedule, switches), *changes], key=lambda instant: instant[:2]
    ):
        if kind != _CAP:
            machine.change(kind, list(HostSet.parse(allocation)), pstate)
        watts, most = machine.watts(), cap.at(time + SLACK)
        if kind != _END and watts > most * (1 + PRECISION):
            jobs = (name,) if name else ()
            what = {_SWITCH: f"hosts {allocation} switch", _CAP: "the cap changes"}.get(
                kind, f"job {name} starts"
            )
            yield Violation("power", jobs, time, f"{what} and {watts:g} W are drawn, the cap is {most:g} W")


def read_switches(file: TextIO | Path) -> pd.DataFrame:
    """The changes of power states in a ``pstate_changes.csv``."""
    return pd.read_csv(file, dtype={"machine_id": str})


def _instants(
    schedule: pd.DataFrame, switches: pd.DataFrame | None
) -> Iterator[tuple[float, int, str, str, int]]:
    """All that changes the power, with its time; what ends when something starts ends before.

    Power states change in the order in which the simulator tells it. Jobs of no length draw nothing.
    """
    ran = schedule[schedule["starting_time"].notna()]
    for job, start, finish, hosts in zip(
        ran["id"], ran["starting_time"], ran["finish_time"], ran["hosts"], strict=True
    ):
        if finish - start > SLACK:
            yield float(start), _START, job, str(hosts), 0
            yield float(finish) - SLACK, _END, job, str(hosts), 0
    if switches is not None:
        for time, hosts, pstate in switches.itertuples(index=False):
            yield float(time) - SLACK / 2, _SWITCH, "", hosts, int(pstate)


class _Machine:
    """What each host draws now."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._states = [_states(host) for host in hosts]
        self._ways = [
            max((states[way][2] for ways in host.sleep_pstates.values() for way in ways), default=0.0)
            for host, states in zip(hosts, self._states, strict=True)
        ]
        first = [states[host.computing_pstate] for host, states in zip(hosts, self._states, strict=True)]
        self._idle = np.array([state[0] for state in first])
        self._full = np.array([state[2] for state in first])
        self._jobs = np.zeros(len(hosts), np.int64)

    def change(self, kind: int, hosts: list[int], pstate: int) -> None:
        """A job starts or ends, or hosts reach a power state; below 0, they are on their way."""
        if kind == _SWITCH:
            for host in hosts:
                way = self._ways[host]
                idle, _, full = (way, way, way) if pstate < 0 else self._states[host][pstate]
                self._idle[host], self._full[host] = idle, full
        else:
            self._jobs[hosts] += 1 if kind == _START else -1

    def watts(self) -> float:
        """What all hosts draw."""
        return float(np.where(self._jobs > 0, self._full, self._idle).sum())


def _states(host: Host) -> list[tuple[float, float, float]]:
    watts = read_watts(host.properties)
    if watts is None:
        raise InputError(f"host {host.name!r} does not say what power it draws, so no cap can be checked")
    return watts
