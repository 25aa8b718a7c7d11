"""The rule that hosts which are closed take no jobs, written from its definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import pandas as pd

from batsched_py.analysis.resizes import in_pieces
from batsched_py.analysis.restarts import before_restarts, ended_by_failures
from batsched_py.analysis.schedule import full_ids, host_sets, started
from batsched_py.analysis.violation import SLACK, Violation
from batsched_py.outside.closures import Closure
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
    executed = started(schedule)
    walltimes = executed["requested_time"].where(executed["requested_time"] >= 0, inf)
    latest = executed["starting_time"] + walltimes
    pieces = in_pieces(executed)
    for row, end, hosts in zip(pieces.itertuples(), latest[pieces.index], host_sets(pieces), strict=True):
        start, user = row.starting_time, users.get(before_restarts(row, failed))
        for closure in closures:
            closed = hosts & closure.hosts
            if closed and closure.bars(user, start + SLACK, end - SLACK):
                text = (
                    f"job {row.id} begins on hosts {closed}, which are closed from {closure.start:g} to "
                    f"{closure.end:g}, and could still run then"
                )
                yield Violation("closed", (row.id,), start, text)
