"""Rules that schedules of jobs that wait for others must obey, written from their definition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    depending = [workload for workload in workloads if have_dependencies(workload.jobs)]
    if not depending:
        return
    executions = _executions(schedule)
    for workload in depending:
        jobs = {job.id: job for job in workload.jobs if depends(job)}
        yield from _ends(jobs, executions)
        yield from _singletons(workload.jobs, executions)
        yield from _limits(jobs, executions)


def _executions(schedule: pd.DataFrame) -> dict[str, list[Any]]:
    """The rows of each job, in their order: of one that was started again after a failure there are more."""
    rows: dict[str, list[Any]] = {}
    failed = ended_by_failures(schedule)
    for row in sorted(schedule.itertuples(), key=lambda row: row.submission_time):
        rows.setdefault(before_restarts(row, failed), []).append(row)
    return rows


def _ends(jobs: dict[str, Job], executions: dict[str, list[Any]]) -> Iterator[Violation]:
    """The jobs that start before the ends that they wait for."""
    tasks: dict[str, list[str]] = {}
    for job in jobs.values():
        if (array := array_of(job)) is not None:
            tasks.setdefault(array.name, []).append(job.id)
    for job in jobs.values():
        dependency = dependency_of(job)
        if dependency is None or (start := _start(executions.get(job.id))) is None:
            continue
        unmet = []
        for end in dependency.ends:
            name = full_name(job, end.target)
            others = [executions[other][-1] for other in tasks.get(name, [name]) if other in executions]
            late = [other for other in others if not _is_over(other, start - end.delay)]
            success = all(other.success for other in others)
            if late or (end.kind != "afterany" and success != (end.kind == "afterok")):
                unmet.append(str(end))
        if unmet and not (dependency.any and (len(unmet) < len(dependency.ends) or dependency.singleton)):
            yield Violation("dependency", (job.id,), start, f"job {job.id} starts, yet {unmet[0]} is not met")


def _singletons(jobs: Iterable[Job], executions: dict[str, list[Any]]) -> Iterator[Violation]:
    """The jobs that start although one of the same user and name, submitted before, is not over."""
    namesakes: dict[tuple[str | None, str], list[Job]] = {}
    for job in jobs:
        if job.id in executions:
            name = str(job.extra.get("name", job.extra.get("executable", "")))
            namesakes.setdefault((job.user, name), []).append(job)
    for group in namesakes.values():
        for job in group:
            dependency, start = dependency_of(job), _start(executions[job.id])
            if start is None or dependency is None or not dependency.singleton or dependency.any:
                continue
            submission = executions[job.id][0].submission_time
            for other in group:
                rows = executions[other.id]
                if rows[0].submission_time < submission - SLACK and not _is_over(rows[-1], start):
                    text = f"job {job.id} starts, yet {other.id} of the same user and name is not over"
                    yield Violation("dependency", (job.id, other.id), start, text)


def _start(rows: list[Any] | None) -> float | None:
    """When a job was first started, if it was."""
    if rows is None or rows[0].final_state == JobState.REJECTED:
        return None
    return float(rows[0].starting_time)


def _is_over(row: Any, time: float) -> bool:
    """Whether a job was over; nobody knows when one was rejected, but it was submitted before."""
    if row.final_state == JobState.REJECTED:
        return bool(row.submission_time <= time + SLACK)
    return bool(row.finish_time <= time + SLACK)


def _limits(jobs: dict[str, Job], executions: dict[str, list[Any]]) -> Iterator[Violation]:
    """The tasks that start although as many of their array run as may at once."""
    changes: dict[str, list[tuple[float, int, str]]] = {}
    limits: dict[str, int] = {}
    for job in jobs.values():
        array = array_of(job)
        if array is None or array.limit is None:
            continue
        limits[array.name] = array.limit
        found = changes.setdefault(array.name, [])
        for row in executions.get(job.id, ()):
            if row.final_state != JobState.REJECTED:
                found.append((row.starting_time, 1, row.id))
                found.append((row.finish_time - SLACK, -1, row.id))
    for name, moments in changes.items():
        running = 0
        for time, change, job_id in sorted(moments):
            running += change
            if change > 0 and running > limits[name]:
                what = f"{running} tasks of array {name} run at once, {limits[name]} may"
                yield Violation("array", (job_id,), time, what)


def as_queued(
    schedule: pd.DataFrame, workloads: Sequence[Workload], arrivals: Mapping[str, float]
) -> pd.DataFrame:
    """The schedule with the times at which jobs joined the queue in place of their submissions.

    At one instant, jobs that wait for others join the queue after those that do not, in the order of their
    submissions; their column ``turn`` says so.
    """
    held = {
        job.id
        for workload in workloads
        if have_dependencies(workload.jobs)
        for job in workload.jobs
        if dependency_of(job) is not None
        or ((array := array_of(job)) is not None and array.limit is not None)
    }
    if not held:
        return schedule
    submissions = schedule["submission_time"]
    return schedule.assign(
        submission_time=schedule["id"].map(arrivals).fillna(submissions),
        turn=submissions.where(schedule["id"].isin(held), -1.0),
    )
