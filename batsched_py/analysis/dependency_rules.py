"""Rules that schedules of jobs that wait for others must obey, written from their definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from batsched_py.analysis.restarts import before_restarts, ended_by_failures
from batsched_py.analysis.violation import SLACK, Violation
from batsched_py.protocol.dependencies import array_of, dependency_of, depends, full_name
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload


def dependencies(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> Iterator[Violation]:
    """No job starts before what it waits for, and no array runs more tasks at once than it may."""
    for workload in workloads:
        if have_dependencies(workload.jobs):
            jobs = {job.id: job for job in workload.jobs if depends(job)}
            rows = _last_executions(schedule, workload.name)
            yield from _ends(jobs, rows)
            yield from _limits(jobs, rows)


def _last_executions(schedule: pd.DataFrame, workload: str) -> dict[str, Any]:
    """The rows of a workload by the names of jobs; of a job that was started again, the last one."""
    rows: dict[str, Any] = {}
    failed = ended_by_failures(schedule)
    for row in sorted(schedule.itertuples(), key=lambda row: row.submission_time):
        if row.id.startswith(f"{workload}!"):
            rows[row.id] = rows[before_restarts(row, failed)] = row
    return rows


def _ends(jobs: dict[str, Job], rows: dict[str, Any]) -> Iterator[Violation]:
    tasks: dict[str, list[str]] = {}
    for job in jobs.values():
        if (array := array_of(job)) is not None:
            tasks.setdefault(array.name, []).append(job.id)
    for job in jobs.values():
        row, dependency = rows.get(job.id), dependency_of(job)
        if dependency is None or row is None or row.final_state == JobState.REJECTED:
            continue
        start = row.starting_time
        unmet = []
        for end in dependency.ends:
            name = full_name(job, end.target)
            others = [rows[other] for other in tasks.get(name, [name]) if other in rows]
            late = [other for other in others if not _is_over(other, start - end.delay)]
            success = all(other.success for other in others)
            if late or (end.kind != "afterany" and success != (end.kind == "afterok")):
                unmet.append(str(end))
        if unmet and not (dependency.any and (len(unmet) < len(dependency.ends) or dependency.singleton)):
            yield Violation("dependency", (job.id,), start, f"job {job.id} starts, yet {unmet[0]} is not met")


def _is_over(row: Any, time: float) -> bool:
    """Whether a job was over; nobody knows when one was rejected, but it was submitted before."""
    if row.final_state == JobState.REJECTED:
        return bool(row.submission_time <= time + SLACK)
    return bool(row.finish_time <= time + SLACK)


def _limits(jobs: dict[str, Job], rows: dict[str, Any]) -> Iterator[Violation]:
    changes: dict[str, list[tuple[float, int, str]]] = {}
    limits: dict[str, int] = {}
    for job in jobs.values():
        array, row = array_of(job), rows.get(job.id)
        if array is None or array.limit is None or row is None or row.final_state == JobState.REJECTED:
            continue
        limits[array.name] = array.limit
        found = changes.setdefault(array.name, [])
        found.append((row.starting_time, 1, job.id))
        found.append((row.finish_time - SLACK, -1, job.id))
    for name, moments in changes.items():
        running = 0
        for time, change, job_id in sorted(moments):
            running += change
            if change > 0 and running > limits[name]:
                what = f"{running} tasks of array {name} run at once, {limits[name]} may"
                yield Violation("array", (job_id,), time, what)
