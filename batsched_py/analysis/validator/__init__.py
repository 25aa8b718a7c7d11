"""An independent check of schedules: do they obey the rules?

It knows nothing of the simulator and the schedulers, only what their results must look like. It shares no
code with them that makes schedules, and reads files with the same readers. It works on Batsim's
``jobs.csv``, ours or a real one's (see :func:`batsched_py.analysis.schedule.read_schedule`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.conditions import Absence, arrivals_of, read_absences, read_held
from batsched_py.analysis.schedule import RESIZES, Tables
from batsched_py.analysis.validator import job_rules, node_rules, promises, rules
from batsched_py.analysis.validator.nodes import Nodes, Requests, requests_of
from batsched_py.analysis.validator.rows import Rows, counted, described
from batsched_py.analysis.validator.rules import Violation
from batsched_py.errors import InputError
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve
from batsched_py.protocol.jobs import Host
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload, as_jobs

Policy = Literal["fcfs", "easy", "conservative"]


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a simulation beside its schedule and workloads; what is not known is not checked."""

    machine: Sequence[Host] = ()
    """The hosts, whose properties tell of their nodes and of the power that they draw."""
    speeds: Sequence[float] | None = None
    """Those of the hosts in flop/s: they tell how long jobs take that compute."""
    nodes: str = "first-fit"
    """How nodes were chosen: what conservative backfilling promises depends on it."""
    arrivals: Mapping[str, float] = field(default_factory=dict)
    """When jobs joined the queue that had to wait for others; policies know nothing of them before."""
    absences: Sequence[Absence] | None = None
    """When hosts had failed or were closed, as the simulation tells."""
    events: Sequence[Absence] | None = None
    """When hosts were taken away by events."""
    closures: Sequence[Closure] = ()
    power_cap: Curve | None = None
    switches: pd.DataFrame | None = None
    """The changes of power states."""

    def with_files(self, tables: Tables) -> Facts:
        """The same with what a simulation has written beside its jobs."""
        absences = jobs_csv.read_table(tables, "absences", read_absences)
        return replace(
            self,
            arrivals=arrivals_of(jobs_csv.read_table(tables, "held", read_held) or {}),
            absences=self.absences if absences is None else absences,
            switches=jobs_csv.read_table(tables, "pstate_changes", lambda file, _: rules.read_switches(file)),
        )


#: So many rows of a file are looked at at a time.
_PIECE = 10_000


def validate(
    schedule: pd.DataFrame,
    hosts: int | None = None,
    workloads: Sequence[Workload] = (),
    policy: Policy | None = None,
    facts: Facts = Facts(),
) -> list[Violation]:
    """All violations in a schedule, in the order of time.

    With ``hosts``, host numbers must be below it. With ``workloads``, no job may be missing, added or
    changed, and each must have run as long as its profile says. With a ``policy``, its promises must be kept;
    those of EASY and conservative backfilling depend on ``hosts``. On a machine of nodes, all must hold in
    every resource that the jobs of the workloads ask for.
    """
    schedule = described(schedule).assign(hosts=jobs_csv.host_sets(schedule))
    if policy is not None:
        promises.check_hosts(policy, schedule, [*(facts.absences or ()), *(facts.events or ())])
    found, rows = _Found(), Rows()
    look_at = _looking(found, rows, hosts, workloads, facts)
    look_at(schedule)
    in_pieces = jobs_csv.in_pieces(schedule)
    found.add("overlap", rules.overlap(rows if in_pieces is schedule else Rows([in_pieces])))
    found.add("workload", job_rules.dependencies(schedule, workloads))
    found.add("outside", _from_outside(schedule, workloads, facts))
    nodes = Nodes.of(facts.machine)
    requests = {} if nodes is None else requests_of(workloads, schedule)
    if nodes is not None:
        found.add("nodes", node_rules.node_rules(schedule, nodes, requests))
    queued = schedule if policy is None else job_rules.as_queued(schedule, workloads, facts.arrivals)
    rows = rows if queued is schedule else Rows([queued])
    return _judge(found, rows, hosts, workloads, policy, nodes, requests, facts)


def validate_file(
    path: Path,
    hosts: int | None = None,
    workloads: Sequence[Workload] = (),
    policy: Policy | None = None,
    facts: Facts = Facts(),
) -> tuple[int, list[Violation]]:
    """How many jobs there are in a ``PREFIX_jobs.csv``, and all violations.

    The file is read piece by piece, and of all jobs only numbers are kept, unless rules have to be checked
    that are about several texts at once.
    """
    found = _Found()
    rows = None
    if not _needs_table(path, workloads, facts):
        rows = _rows_of_file(found, path, hosts, workloads, policy is not None, facts)
    if rows is None:
        schedule = jobs_csv.read_schedule(path)
        return len(schedule), validate(schedule, hosts, workloads, policy, facts)
    found.add("overlap", rules.overlap(rows))
    return len(rows), _judge(found, rows, hosts, workloads, policy, None, {}, facts)


def _rows_of_file(
    found: _Found,
    path: Path,
    hosts: int | None,
    workloads: Sequence[Workload],
    for_promises: bool,
    facts: Facts,
) -> Rows | None:
    """The numbers of all jobs, each of which was looked at; none if the whole table is needed."""
    rows = Rows(for_promises=for_promises)
    look_at = _looking(found, rows, hosts, workloads, facts)
    for piece in jobs_csv.read_pieces(path, _PIECE):
        if piece is None or jobs_csv.has_restarts(piece):
            return None
        look_at(described(piece))
    return rows


def _needs_table(path: Path, workloads: Sequence[Workload], facts: Facts) -> bool:
    """Whether there are rules about texts of several jobs, or about jobs that change their hosts."""
    outside = (facts.absences, facts.events, facts.power_cap)
    return (
        any(fact is not None for fact in outside)
        or bool(facts.closures)
        or Nodes.of(facts.machine) is not None
        or jobs_csv.beside(path, "resizes").is_file()
        or any(have_dependencies(load.jobs) for load in workloads)
        or not path.is_file()
    )


class _Found:
    """The violations that were found, by what was looked at; those of one kind are in the order of rows."""

    def __init__(self) -> None:
        self._of: dict[str, list[Violation]] = {}

    def add(self, kind: str, violations: Iterable[Violation]) -> None:
        """Note more of them."""
        self._of.setdefault(kind, []).extend(violations)

    def in_order(self) -> list[Violation]:
        """All of them in the order of time."""
        every = (violation for _, violations in sorted(self._of.items()) for violation in violations)
        return sorted(every, key=lambda violation: (violation.time, violation.rule, violation.jobs))


def _looking(
    found: _Found, rows: Rows, hosts: int | None, workloads: Sequence[Workload], facts: Facts
) -> Callable[[pd.DataFrame], None]:
    """What checks that which holds of each row of a schedule, or of a piece of it, and keeps its numbers."""
    finders = {load.name: as_jobs(load.jobs).finder() for load in workloads}
    may_have_any_size = rules.moldable_jobs(workloads) | job_rules.malleable_jobs(workloads).keys()
    speeds = job_rules.constant_speeds(facts.speeds, facts.machine, facts.switches) if workloads else None
    late = any(load.late_jobs_stay for load in workloads)

    def look_at(schedule: pd.DataFrame) -> None:
        schedule, intervals = counted(schedule)
        rows.add(schedule, intervals)
        resized, any_size = jobs_csv.in_pieces(schedule), set(may_have_any_size)
        if resized is not schedule:
            resized = counted(resized)[0]
            any_size |= set(schedule.loc[schedule[RESIZES].map(bool), "id"])
        again = jobs_csv.started_again(schedule)
        any_size |= {execution for execution, job in again.items() if job in any_size}
        found.add("capacity", rules.capacity(resized, hosts, any_size))
        found.add("resizes", job_rules.resizes(schedule))
        for number, violation in rules.single_rows(schedule, late):
            found.add(f"row {number:02}", [violation])
        if workloads:
            found.add("workload", rules.workload(schedule, workloads, finders))
            found.add("workload", rules.sizes(schedule, workloads))
            found.add("workload", job_rules.malleable(schedule, workloads, facts.speeds))
            found.add("workload", job_rules.lengths(schedule, workloads, speeds))

    return look_at


def _from_outside(schedule: pd.DataFrame, workloads: Sequence[Workload], facts: Facts) -> Iterator[Violation]:
    if facts.absences is not None or facts.events is not None:
        yield from rules.on_failed_hosts(schedule, facts.absences or (), facts.events or ())
    if facts.power_cap is not None:
        yield from rules.over_power_cap(schedule, facts.machine, facts.power_cap, facts.switches)
    yield from rules.into_closures(schedule, facts.closures, workloads)


def _judge(
    found: _Found,
    rows: Rows,
    hosts: int | None,
    workloads: Sequence[Workload],
    policy: Policy | None,
    nodes: Nodes | None,
    requests: Requests,
    facts: Facts,
) -> list[Violation]:
    """Check what needs all jobs."""
    names = np.sort(rows.names)
    found.add("twice", rules.twice(rows, names))
    found.add("lost", rules.lost(names, workloads))
    del names
    if policy is not None:
        found.add("promises", _promises(rows, hosts, policy, nodes, requests, facts.nodes))
    return found.in_order()


def _promises(
    rows: Rows,
    hosts: int | None,
    policy: Policy,
    nodes: Nodes | None,
    requests: Requests,
    choice: str,
) -> Iterator[Violation]:
    timeline = promises.Timeline(rows)
    if policy == "fcfs":
        return promises.fcfs(timeline)
    if nodes is not None and policy == "easy":
        return promises.easy(timeline, node_rules.FreeNodes(nodes.empty(), requests))
    if nodes is not None:
        return promises.conservative(timeline, node_rules.NodePlan(nodes, requests, choice))
    if hosts is None:
        raise InputError(f"the promises of {policy} depend on the number of hosts; give it")
    if policy == "easy":
        return promises.easy(timeline, promises.FreeHosts(hosts))
    return promises.conservative(timeline, promises.HostPlan(hosts))
