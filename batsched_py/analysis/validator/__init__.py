"""An independent check of schedules: do they obey the rules?

It knows nothing of the simulator and the schedulers, only what their results must look like. It shares no
code with them that makes schedules, and reads files with the same readers. It works on Batsim's
``jobs.csv``, ours or a real one's (see :func:`batsched_py.analysis.schedule.read_schedule`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pandas as pd

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.conditions import Absence, arrivals_of, read_absences, read_held
from batsched_py.analysis.schedule import RESIZES, Tables
from batsched_py.analysis.validator import job_rules, node_rules, promises, rules
from batsched_py.analysis.validator.nodes import Nodes, Requests, requests_of
from batsched_py.analysis.validator.rules import Violation
from batsched_py.errors import InputError
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve
from batsched_py.protocol.jobs import Host
from batsched_py.workload.model import Workload

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
    schedule = schedule.assign(id=jobs_csv.full_ids(schedule), hosts=jobs_csv.host_sets(schedule))
    if policy is not None:
        promises.check_hosts(policy, schedule, [*(facts.absences or ()), *(facts.events or ())])
    found = list(_rules(schedule, hosts, workloads, facts))
    nodes = Nodes.of(facts.machine)
    requests = {} if nodes is None else requests_of(workloads, schedule)
    if nodes is not None:
        found += node_rules.node_rules(schedule, nodes, requests)
    if policy is not None:
        queued = job_rules.as_queued(schedule, workloads, facts.arrivals)
        found += _promises(queued, hosts, policy, nodes, requests, facts.nodes)
    return sorted(found, key=lambda violation: (violation.time, violation.rule, violation.jobs))


def _rules(
    schedule: pd.DataFrame, hosts: int | None, workloads: Sequence[Workload], facts: Facts
) -> Iterator[Violation]:
    pieces = jobs_csv.in_pieces(schedule)
    resized = (
        set(schedule.loc[schedule[RESIZES].map(bool), "id"]) if jobs_csv.has_resizes(schedule) else set()
    )
    any_size = rules.moldable_jobs(workloads) | job_rules.malleable_jobs(workloads).keys() | resized
    any_size |= {execution for execution, job in jobs_csv.started_again(schedule).items() if job in any_size}
    yield from rules.overlap(pieces)
    yield from rules.capacity(pieces, hosts, any_size)
    yield from job_rules.resizes(schedule)
    yield from rules.single_rows(schedule, any(workload.late_jobs_stay for workload in workloads))
    if workloads:
        speeds = job_rules.constant_speeds(facts.speeds, facts.machine, facts.switches)
        yield from rules.workload(schedule, workloads)
        yield from rules.sizes(schedule, workloads)
        yield from job_rules.dependencies(schedule, workloads)
        yield from job_rules.malleable(schedule, workloads, facts.speeds)
        yield from job_rules.lengths(schedule, workloads, speeds)
    if facts.absences is not None or facts.events is not None:
        yield from rules.on_failed_hosts(schedule, facts.absences or (), facts.events or ())
    if facts.power_cap is not None:
        yield from rules.over_power_cap(schedule, facts.machine, facts.power_cap, facts.switches)
    yield from rules.into_closures(schedule, facts.closures, workloads)


def _promises(
    schedule: pd.DataFrame,
    hosts: int | None,
    policy: Policy,
    nodes: Nodes | None,
    requests: Requests,
    choice: str,
) -> Iterator[Violation]:
    timeline = promises.timeline(schedule)
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
