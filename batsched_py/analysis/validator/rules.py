"""What the validator finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import inf
from operator import or_
from typing import Any

import pandas as pd

from batsched_py.analysis.schedule import INSTANT, SLACK, before_restarts, ended_by_failures, started
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Composed, Profile
from batsched_py.protocol.sizes import SIZES, have_sizes, shapes_of
from batsched_py.workload.model import Workload


@dataclass(frozen=True)
class Violation:
    """A broken rule: by which jobs, when and how."""

    rule: str
    jobs: tuple[str, ...]
    """Full identifiers, ``WORKLOAD!JOB``."""
    time: float
    """When it happened in the simulation, or the job's submission if that makes no sense."""
    text: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.time:.6f}: {self.text}"


def _blame(
    rule: str, schedule: pd.DataFrame, wrong: pd.Series[bool], time: str, text: Callable[[Any], str]
) -> Iterator[Violation]:
    """A violation for each row that is wrong; ``time`` is the column that says when."""
    if wrong.any():
        for row in schedule[wrong].itertuples():
            yield Violation(rule, (row.id,), getattr(row, time), f"job {row.id} {text(row)}")


#: What a job does at a moment: it ends, it begins and ends at once, or it begins.
ENDS, PASSES, BEGINS = range(3)


def moments(executed: pd.DataFrame) -> list[tuple[float, int, int]]:
    """When jobs begin and end, in the order of time, and what they do, with their rows.

    What ends when something begins ends before.
    """
    times = zip(executed["starting_time"], executed["execution_time"], executed["finish_time"], strict=True)
    found: list[tuple[float, int, int]] = []
    for row, (start, ran, finish) in enumerate(times):
        if ran <= INSTANT:
            found.append((start - SLACK, PASSES, row))
        else:
            found += [(start, BEGINS, row), (finish - SLACK, ENDS, row)]
    return sorted(found)


def overlap(schedule: pd.DataFrame) -> Iterator[Violation]:
    """No host runs two jobs at a time.

    A job of no length does not hold its hosts, but they must not belong to another job when it runs.
    """
    executed = started(schedule)
    ids, masks = executed["id"].to_list(), [hosts.mask for hosts in executed["hosts"]]
    busy = contested = 0
    running: set[int] = set()
    for time, kind, row in moments(executed):
        mask = masks[row]
        if kind == ENDS:
            running.discard(row)
            busy &= ~mask
            if contested & mask:
                busy = reduce(or_, [masks[other] for other in running], 0)
            continue
        if busy & mask:
            contested |= busy & mask
            for other in sorted(running):
                if shared := masks[other] & mask:
                    jobs = (ids[other], ids[row])
                    text = f"jobs {jobs[0]} and {jobs[1]} both run on {HostSet(shared)}"
                    yield Violation("overlap", jobs, time, text)
        if kind == BEGINS:
            running.add(row)
            busy |= mask


def capacity(schedule: pd.DataFrame, hosts: int | None, moldable: set[str]) -> Iterator[Violation]:
    """Every job runs on as many hosts as it asked for, and on hosts that exist."""
    executed = started(schedule)
    for job, time, asked, given in zip(
        executed["id"],
        executed["starting_time"],
        executed["requested_number_of_resources"],
        executed["hosts"],
        strict=True,
    ):
        if not given or (len(given) != asked and job not in moldable):
            text = f"job {job} runs on {len(given)} hosts instead of {asked}"
            yield Violation("capacity", (job,), time, text)
        if hosts is not None and given.mask >> hosts:
            beyond = HostSet(given.mask >> hosts << hosts)
            text = f"job {job} runs on {beyond}, but the last host is {hosts - 1}"
            yield Violation("capacity", (job,), time, text)


def causality(schedule: pd.DataFrame) -> Iterator[Violation]:
    """No job starts before it is submitted."""
    yield from _blame(
        "causality",
        schedule,
        schedule["starting_time"] < schedule["submission_time"] - SLACK,
        "starting_time",
        lambda row: f"starts at {row.starting_time:.6f}, before its submission at {row.submission_time:.6f}",
    )


def walltime(schedule: pd.DataFrame) -> Iterator[Violation]:
    """No job runs longer than its walltime, and one that is stopped by it ran for exactly that long."""
    limit = schedule["requested_time"].where(schedule["requested_time"] >= 0, inf)
    ran = schedule["execution_time"]
    yield from _blame(
        "walltime",
        schedule,
        ran > limit + SLACK,
        "finish_time",
        lambda row: f"runs for {row.execution_time:.6f}, longer than its walltime {row.requested_time:.6f}",
    )
    stopped = schedule["final_state"] == JobState.WALLTIME_REACHED
    yield from _blame(
        "walltime",
        schedule,
        stopped & (ran < limit - SLACK),
        "finish_time",
        lambda row: f"reached its walltime {row.requested_time:.6f} after {row.execution_time:.6f}",
    )


def arithmetic(schedule: pd.DataFrame) -> Iterator[Violation]:
    """The times of a row fit together."""
    ran = schedule["execution_time"]
    yield from _blame(
        "arithmetic", schedule, ran < 0, "starting_time", lambda row: f"runs for {row.execution_time:.6f}"
    )
    start, submission, finish = (
        schedule[column] for column in ("starting_time", "submission_time", "finish_time")
    )
    stretch = schedule["turnaround_time"] / ran.where(ran > SLACK)  # shorter ones have no digits left
    expectations = {
        "finish_time": ("starting_time + execution_time", start + ran, SLACK),
        "waiting_time": ("starting_time - submission_time", start - submission, SLACK),
        "turnaround_time": ("finish_time - submission_time", finish - submission, SLACK),
        "stretch": ("turnaround_time / execution_time", stretch, SLACK * (1 + (1 + stretch.abs()) / ran)),
    }
    for column, (formula, expected, slack) in expectations.items():
        wrong = (schedule[column] - expected).abs() > slack
        yield from _blame(
            "arithmetic",
            schedule.assign(written=schedule[column], expected=expected) if wrong.any() else schedule,
            wrong,
            "starting_time",
            partial(_miscalculated, column, formula),
        )


def _miscalculated(column: str, formula: str, row: Any) -> str:
    return f"has the {column} {row.written:.6f}, but {formula} is {row.expected:.6f}"


def state(schedule: pd.DataFrame) -> Iterator[Violation]:
    """The success flag agrees with the final state, and a rejected job was not executed."""
    succeeded = schedule["final_state"] == JobState.SUCCESS
    yield from _blame(
        "state",
        schedule,
        schedule["success"] != succeeded,
        "submission_time",
        lambda row: f"is {row.final_state}, but its success flag is {row.success}",
    )
    executed = (
        schedule["starting_time"].notna() | schedule["finish_time"].notna() | schedule["hosts"].map(bool)
    )
    rejected = schedule["final_state"] == JobState.REJECTED
    yield from _blame(
        "state",
        schedule,
        rejected & executed,
        "submission_time",
        lambda row: "was rejected, but has times or hosts of an execution",
    )


def twice(schedule: pd.DataFrame) -> Iterator[Violation]:
    """No job has two rows."""
    again = schedule["id"].duplicated()
    yield from _blame("twice", schedule, again, "submission_time", lambda row: "has more than one row")


def workload(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> Iterator[Violation]:
    """Every job of the workloads is there, as they describe it, and no other.

    Jobs with other workload names were registered during the simulation: no file describes them. A job that a
    user submitted has its recorded submission in a note, and may have a profile of its own. A job may come
    again when a failure has ended it, as its note says.
    """
    described = {job.id: job for load in workloads for job in load.jobs}
    names = {load.name for load in workloads}
    codes = {load.name: ReturnCodes(load.profiles) for load in workloads}
    present = set(schedule["id"])
    failed = ended_by_failures(schedule)
    for job in described.values():
        if job.id not in present:
            text = f"job {job.id} of the workload has no row"
            yield Violation("lost", (job.id,), job.submission_time, text)
    for row in schedule[schedule["workload_name"].isin(names)].itertuples():
        name = before_restarts(row, failed)
        if name not in described:
            text = f"job {row.id} is not in the workload"
            yield Violation("invented", (row.id,), row.submission_time, text)
            continue
        job = described[name]
        for difference in _differences(row, job, codes[job.workload]):
            yield Violation("workload", (row.id,), row.submission_time, f"job {row.id} {difference}")


_RECORDED = re.compile(r"(?:^| )recorded=(\d+(?:\.\d+)?)(?: |$)")


def _differences(row: Any, job: Job, codes: ReturnCodes) -> Iterator[str]:
    note = _RECORDED.search(row.metadata)
    submission = row.submission_time if note is None else float(note[1])
    if row.requested_number_of_resources != job.size:
        yield f"asks for {row.requested_number_of_resources} hosts, in the workload for {job.size}"
    if abs(submission - job.submission_time) > SLACK:
        yield f"is submitted at {submission:.6f}, in the workload at {job.submission_time:.6f}"
    if row.profile.startswith(f"{job.profile}_{job.size}_for_"):
        return  # with checkpoints, or what they have left to do
    limit = job.walltime if job.has_walltime else -1.0
    if abs(row.requested_time - limit) > SLACK:
        yield f"has the walltime {row.requested_time:.6f}, in the workload {limit:.6f}"
    if row.profile != job.profile and (note is None or row.profile != f"job_{job.name}"):
        yield f"has the profile {row.profile!r}, in the workload {job.profile!r}"
    elif row.final_state in (JobState.SUCCESS, JobState.FAILED):
        code = codes.of(job.profile)
        if (row.final_state == JobState.SUCCESS) != (code == 0):
            yield f"ends {row.final_state}, but its profile returns {code}"


class ReturnCodes:
    """The return codes of the profiles of a workload when they run to their end."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles
        self._known: dict[str, int] = {}

    def of(self, name: str) -> int:
        """The code of a profile; a composed one stops at the first part that does not return 0."""
        if name not in self._known:
            profile = self._profiles.get(name)
            parts = profile.parts if isinstance(profile, Composed) else ()
            codes = (self.of(part) for part in parts)
            own = 0 if profile is None else profile.return_code
            self._known[name] = next((code for code in codes if code), own)
        return self._known[name]


#: A job that tells Slurm one of these things may run on fewer hosts than it asks for.
FEWER_HOSTS = frozenset({"cpus_per_task", "least_cpus"})


def moldable_jobs(workloads: Sequence[Workload]) -> set[str]:
    """The jobs that may run on any number of hosts, because their work is a total to be divided.

    A Slurm may give fewer processors to a job whose tasks it cuts, or that asks for a range of nodes.
    """
    moldable = set()
    for load in workloads:
        names = {name for name, profile in load.profiles.items() if profile.is_moldable(load.profiles)}
        moldable |= {
            job.id
            for job in load.jobs
            if job.profile in names or not FEWER_HOSTS.isdisjoint(job.extra.get("slurm") or ())
        }
    return moldable


def sizes(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> Iterator[Violation]:
    """A job that gives several sizes runs with one of them, or with as many hosts as it asks for."""
    given = {
        job.id: {job.size, *(shape.job.size for shape in shapes_of(job))}
        for load in workloads
        if have_sizes(load.jobs)
        for job in load.jobs
        if SIZES in job.extra
    }
    failed = ended_by_failures(schedule) if given else set()
    for row in started(schedule).itertuples() if given else ():
        allowed = given.get(before_restarts(row, failed))
        if allowed is not None and len(row.hosts) not in allowed:
            sizes_text = ", ".join(map(str, sorted(allowed)))
            text = f"job {row.id} runs on {len(row.hosts)} hosts, which is none of its sizes: {sizes_text}"
            yield Violation("sizes", (row.id,), row.starting_time, text)
