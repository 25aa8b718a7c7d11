"""The rule that hosts which are closed take no jobs, written from its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import pandas as pd

from batsched_py.analysis.resizes import in_pieces
from batsched_py.analysis.schedule import full_ids, host_sets, started
from batsched_py.analysis.violation import SLACK, Violation
from batsched_py.outside.closures import Closure
from batsched_py.workload.model import Workload


def into_closures(
    schedule: pd.DataFrame, closures: Sequence[Closure], workloads: Sequence[Workload]
) -> Iterator[Violation]:
    """The jobs that are started on hosts which close before their walltime is over, or grow into such hosts.

    The workloads tell whose jobs they are, so who is let in.
    """
    users = _users(workloads)
    executed = started(schedule)
    walltimes = executed["requested_time"].where(executed["requested_time"] >= 0, inf)
    latest = executed["starting_time"] + walltimes
    pieces = in_pieces(executed)
    for job, start, end, hosts in zip(
        full_ids(pieces), pieces["starting_time"], latest[pieces.index], host_sets(pieces), strict=True
    ):
        for closure in closures:
            closed = hosts & closure.hosts
            if closed and closure.bars(users.get(_first(job)), start + SLACK, end - SLACK):
                text = (
                    f"job {job} begins on hosts {closed}, which are closed from {closure.start:g} to "
                    f"{closure.end:g}, and could still run then"
                )
                yield Violation("closed", (job,), start, text)


def _users(workloads: Sequence[Workload]) -> Mapping[str, str | None]:
    return {job.id: job.user for workload in workloads for job in workload.jobs}


def _first(job_id: str) -> str:
    """The job of which this is an execution, if it was started again after a failure."""
    return job_id.partition("#")[0]
