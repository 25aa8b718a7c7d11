"""An independent check of schedules: do they obey the rules?

It knows nothing of the simulator and the schedulers, only what their results must look like. It works on
Batsim's ``jobs.csv``, ours or a real one's (see :func:`batsched_py.analysis.schedule.read_schedule`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import pandas as pd

from batsched_py.analysis.nodes import all_hosts, requests_of
from batsched_py.analysis.schedule import RESIZES, full_ids, has_resizes, host_sets, in_pieces, started_again
from batsched_py.analysis.validator import job_rules, node_promises, promises, rules
from batsched_py.analysis.validator.node_promises import Places
from batsched_py.analysis.validator.node_rules import node_rules
from batsched_py.analysis.validator.promises import timeline
from batsched_py.analysis.validator.rules import Violation
from batsched_py.errors import InputError
from batsched_py.ledger.free_nodes import NodeAccount
from batsched_py.ledger.nodes import NodeMachine
from batsched_py.schedulers.node_choice import CHOICES
from batsched_py.schedulers.selection import NodeChoiceName
from batsched_py.workload.model import Workload

Policy = Literal["fcfs", "easy", "conservative"]


def validate(
    schedule: pd.DataFrame,
    hosts: int | None = None,
    workloads: Sequence[Workload] = (),
    policy: Policy | None = None,
    machine: NodeMachine | None = None,
    nodes: NodeChoiceName = "first-fit",
    speeds: Sequence[float] | None = None,
    arrivals: Mapping[str, float] | None = None,
) -> list[Violation]:
    """All violations in a schedule, in the order of time.

    With ``hosts``, host numbers must be below it. With ``workloads``, no job may be missing, added or
    changed. With a ``policy``, its promises must be kept; those of EASY and conservative backfilling depend
    on ``hosts``. On a ``machine`` of nodes, all must hold in every resource that the jobs of the workloads
    ask for; what conservative backfilling promises there depends on how it chose ``nodes``. With the
    ``speeds`` of the hosts, malleable jobs that compute must have done all of their work. The ``arrivals``
    tell when jobs joined the queue that had to wait for others; policies know nothing of them before.
    """
    schedule = schedule.assign(id=full_ids(schedule), hosts=host_sets(schedule))
    if policy is not None and has_resizes(schedule):
        raise InputError(
            f"what {policy} promises is about jobs that keep their hosts, and some here grow or shrink"
        )
    found = list(_rules(schedule, hosts, workloads, speeds))
    queued = job_rules.as_queued(schedule, workloads, arrivals or {})
    if machine is None:
        found += _promises(queued, hosts, policy)
    else:
        requests = requests_of(workloads, schedule)
        found += node_rules(schedule, machine, requests)
        found += _promises_on_nodes(queued, Places(machine, requests), policy, nodes)
    return sorted(found, key=lambda violation: (violation.time, violation.rule, violation.jobs))


def _rules(
    schedule: pd.DataFrame, hosts: int | None, workloads: Sequence[Workload], speeds: Sequence[float] | None
) -> Iterator[Violation]:
    pieces = in_pieces(schedule)
    resized = set(schedule.loc[schedule[RESIZES].map(bool), "id"]) if has_resizes(schedule) else set()
    any_size = rules.moldable_jobs(workloads) | job_rules.malleable_jobs(workloads).keys() | resized
    any_size |= {execution for execution, job in started_again(schedule).items() if job in any_size}
    yield from rules.overlap(pieces)
    yield from rules.capacity(pieces, hosts, any_size)
    yield from job_rules.resizes(schedule)
    yield from rules.causality(schedule)
    yield from rules.walltime(schedule)
    yield from rules.arithmetic(schedule)
    yield from rules.state(schedule)
    yield from rules.twice(schedule)
    if workloads:
        yield from rules.workload(schedule, workloads)
        yield from rules.sizes(schedule, workloads)
        yield from job_rules.dependencies(schedule, workloads)
        yield from job_rules.malleable(schedule, workloads, speeds)


def _promises(schedule: pd.DataFrame, hosts: int | None, policy: Policy | None) -> Iterator[Violation]:
    match policy:
        case None:
            return
        case "fcfs":
            yield from promises.fcfs(timeline(schedule))
        case "easy" | "conservative" if hosts is None:
            raise InputError(f"the promises of {policy} depend on the number of hosts; give it")
        case "easy":
            yield from promises.easy(timeline(schedule), hosts)
        case "conservative":
            yield from promises.conservative(timeline(schedule), hosts)


def _promises_on_nodes(
    schedule: pd.DataFrame, places: Places, policy: Policy | None, nodes: NodeChoiceName
) -> Iterator[Violation]:
    match policy:
        case "fcfs":
            yield from promises.fcfs(timeline(schedule))
        case "easy":
            yield from node_promises.easy(timeline(schedule), places)
        case "conservative":
            account = NodeAccount(places.machine, all_hosts(places.machine), CHOICES[nodes])
            yield from node_promises.conservative(timeline(schedule), places, account)
