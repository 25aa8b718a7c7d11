"""Slow, obvious schedulers, written from their definitions, to check the fast ones against.

Nothing but lists and counts of free hosts: which hosts a job gets does not matter to these policies.

A pass of the scheduler happens at each instant at which jobs are submitted or end, once, after all of
them. A job of no length ends at the instant at which it started, in a pass of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from batsched_py.testing import JobSpec


@dataclass(frozen=True)
class Running:
    """A job on its hosts."""

    job: JobSpec
    start: float

    @property
    def end(self) -> float:
        return self.start + self.job.duration

    @property
    def expected_end(self) -> float:
        """When it must have ended, by its walltime: all that a scheduler may know."""
        return self.start + self.job.walltime


class FCFS:
    """Start the head of the queue while it fits."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts

    def choose(
        self, now: float, queue: Sequence[JobSpec], running: Sequence[Running], ended: bool
    ) -> list[JobSpec]:
        """The jobs of the queue to start now."""
        free = self.hosts - sum(r.job.size for r in running)
        chosen = []
        for job in queue:
            if job.size > free:
                break
            chosen.append(job)
            free -= job.size
        return chosen


class EASY:
    """FCFS, then backfilling that does not delay the job at the head of the queue."""

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts

    def choose(
        self, now: float, queue: Sequence[JobSpec], running: Sequence[Running], ended: bool
    ) -> list[JobSpec]:
        chosen = FCFS(self.hosts).choose(now, queue, running, ended)
        waiting = [job for job in queue if job not in chosen]
        if not waiting:
            return chosen
        head, *others = waiting
        busy = [*running, *(Running(job, now) for job in chosen)]
        shadow, extra = self.reservation(head, busy)
        free = self.hosts - sum(r.job.size for r in busy)
        for job in others:
            if job.size > free:
                continue
            if now + job.walltime <= shadow:
                chosen.append(job)
                free -= job.size
            elif job.size <= extra:
                chosen.append(job)
                free -= job.size
                extra -= job.size
        return chosen

    def reservation(self, head: JobSpec, busy: Sequence[Running]) -> tuple[float, int]:
        """The shadow time of the head, and how many hosts are left over then.

        Hosts are collected job by job, in the order of expected ends and then of starts, until they suffice.
        """
        free = self.hosts - sum(r.job.size for r in busy)
        for one in sorted(busy, key=lambda r: r.expected_end):
            free += one.job.size
            if free >= head.size:
                return one.expected_end, free - head.size
        raise AssertionError(f"{head} is larger than the machine")


class Conservative:
    """Every job gets a reservation when it arrives, which later jobs do not delay.

    When jobs have ended, each waiting job in queue order gives its reservation up for the earliest one
    that all the others leave (Mu'alem & Feitelson 2001): it can only move forward.
    """

    def __init__(self, hosts: int) -> None:
        self.hosts = hosts
        self.reserved: dict[str, float] = {}

    def choose(
        self, now: float, queue: Sequence[JobSpec], running: Sequence[Running], ended: bool
    ) -> list[JobSpec]:
        for job in queue:
            if ended or job.id not in self.reserved:
                self.reserved.pop(job.id, None)
                plan = [(r.start, r.expected_end, r.job.size) for r in running]
                for other in queue:
                    if other.id in self.reserved:
                        start = self.reserved[other.id]
                        plan.append((start, start + other.walltime, other.size))
                self.reserved[job.id] = self.earliest(now, job, plan)
        chosen = [job for job in queue if self.reserved[job.id] <= now]
        for job in chosen:
            del self.reserved[job.id]
        return chosen

    def earliest(self, now: float, job: JobSpec, plan: list[tuple[float, float, int]]) -> float:
        """The earliest time from which the job fits beside all that is planned, to its walltime's end."""
        for start in sorted({now, *(end for _, end, _ in plan if end > now)}):
            end = start + job.walltime
            moments = [start, *(s for s, _, _ in plan if start < s < end)]
            if all(self.free_at(moment, plan) >= job.size for moment in moments):
                return start
        raise AssertionError(f"{job} is larger than the machine")

    def free_at(self, moment: float, plan: list[tuple[float, float, int]]) -> int:
        return self.hosts - sum(size for start, end, size in plan if start <= moment < end)


POLICIES = {"fcfs": FCFS, "easy": EASY, "conservative": Conservative}
Scheduler = FCFS | EASY | Conservative


def simulate(jobs: Sequence[JobSpec], hosts: int, policy: str) -> dict[str, float]:
    """When each job starts. Jobs of equal submission queue in the order given; too wide ones never start."""
    return simulate_with(POLICIES[policy](hosts), jobs, hosts)


def simulate_with(scheduler: Scheduler, jobs: Sequence[JobSpec], hosts: int) -> dict[str, float]:
    """The same with a scheduler of one's own."""
    coming = sorted((job for job in jobs if job.size <= hosts), key=lambda job: job.submission)
    queue: list[JobSpec] = []
    running: list[Running] = []
    starts: dict[str, float] = {}
    while coming or running:
        now = min([job.submission for job in coming[:1]] + [r.end for r in running])
        ended = [r for r in running if r.end == now]
        running = [r for r in running if r.end > now]
        while coming and coming[0].submission == now:
            queue.append(coming.pop(0))
        for job in scheduler.choose(now, queue, running, bool(ended)):
            queue.remove(job)
            running.append(Running(job, now))
            starts[job.id] = now
    assert not queue, f"{queue} was left waiting"
    return starts


def jobs_csv(jobs: Sequence[JobSpec], starts: dict[str, float], hosts: int) -> str:
    """The schedule as Batsim would have written it; each job gets the lowest-numbered free hosts."""
    free = set(range(hosts))
    running: list[tuple[float, list[int]]] = []
    rows = []
    for job in sorted(jobs, key=lambda job: starts.get(job.id, inf)):
        walltime = job.walltime if job.walltime < inf else -1
        request = f"{job.id},w0,p{job.id},{job.submission:.6f},{job.size},{walltime:.6f}"
        if job.id not in starts:
            rows.append((job.submission, f'{request},0,REJECTED,,,,,,,,,""'))
            continue
        start = starts[job.id]
        for end, released in running:
            if end <= start:
                free.update(released)
        running = [(end, taken) for end, taken in running if end > start]
        taken = sorted(free)[: job.size]
        assert len(taken) == job.size, f"{job} does not fit at {start}"
        if job.duration:
            free.difference_update(taken)
            running.append((start + job.duration, taken))
        runtime = job.duration or 1e-5
        success = job.run_time < job.walltime
        state = "COMPLETED_SUCCESSFULLY" if success else "COMPLETED_WALLTIME_REACHED"
        finish, turnaround = start + runtime, start + runtime - job.submission
        rows.append(
            (
                start + job.duration,
                f"{request},{success:d},{state},{start:.6f},{runtime:.6f},{finish:.6f},"
                f"{start - job.submission:.6f},{turnaround:.6f},{turnaround / runtime:.6f},"
                f'{" ".join(map(str, taken))},-1.000000,""',
            )
        )
    rows.sort(key=lambda row: row[0])
    return "\n".join([_HEADER, *(text for _, text in rows), ""])


_HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,"
    "final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,"
    "allocated_resources,consumed_energy,metadata"
)
