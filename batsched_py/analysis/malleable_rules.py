"""Rules that jobs obey which grow and shrink while they run, written from their definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd

from batsched_py.analysis.resizes import RESIZES, Piece, pieces_of
from batsched_py.analysis.restarts import before_restarts, ended_by_failures
from batsched_py.analysis.schedule import started
from batsched_py.analysis.violation import SLACK, Violation
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Delay, Homogeneous, HomogeneousTotal, Profile
from batsched_py.protocol.sizes import MALLEABLE, Malleable, malleable_of
from batsched_py.workload.model import Workload


def resizes(schedule: pd.DataFrame) -> Iterator[Violation]:
    """The changes of a job's hosts fit together, and lie between its start and its end."""
    if RESIZES not in schedule:
        return
    for row in schedule[schedule[RESIZES].map(bool)].itertuples():
        for time, text in _gaps(row):
            yield Violation("resize", (row.id,), time, f"job {row.id} {text}")


def _gaps(row: Any) -> Iterator[tuple[float, str]]:
    if row.final_state == JobState.REJECTED:
        yield row.submission_time, "was rejected, but has grown or shrunk"
        return
    time, hosts = row.starting_time, row.resizes[0].before
    for resize in row.resizes:
        if not time - SLACK <= resize.time <= row.finish_time + SLACK:
            yield resize.time, f"changes its hosts at {resize.time:.6f}, which is not between its other times"
        if resize.before != hosts:
            yield resize.time, f"gives up {resize.before} for {resize.after}, but has {hosts}"
        time, hosts = resize.time, resize.after
    if hosts != row.hosts:
        yield row.finish_time, f"ends on {row.hosts}, but went over to {hosts} before"


def malleable_jobs(workloads: Sequence[Workload]) -> dict[str, tuple[Job, Profile]]:
    """The jobs that may grow and shrink, each with what it does."""
    return {
        job.id: (job, load.profiles[job.profile])
        for load in workloads
        if isinstance(load.jobs, list)
        for job in load.jobs
        if MALLEABLE in job.extra
    }


def malleable(
    schedule: pd.DataFrame, workloads: Sequence[Workload], speeds: Sequence[float] | None
) -> Iterator[Violation]:
    """Only malleable jobs change their hosts, within their bounds, and they do all of their work.

    How much work a job does that computes is known only with the ``speeds`` of the hosts.
    """
    jobs, names = malleable_jobs(workloads), {load.name for load in workloads}
    if not jobs and RESIZES not in schedule:
        return
    failed = ended_by_failures(schedule)
    for row in started(schedule).itertuples():
        changes, name = getattr(row, RESIZES, ()), before_restarts(row, failed)
        if name not in jobs:
            if changes and row.workload_name in names:
                text = f"job {row.id} changes its hosts, but is not malleable"
                yield Violation("malleable", (row.id,), changes[0].time, text)
            continue
        job, profile = jobs[name]
        bounds = malleable_of(job)
        assert bounds is not None
        pieces = [Piece(row.starting_time, row.finish_time, row.hosts)]
        if changes:
            pieces = list(pieces_of(row.starting_time, row.finish_time, changes))
        for piece in pieces:
            if not bounds.least <= len(piece.hosts) <= bounds.most:
                text = f"job {row.id} runs on {len(piece.hosts)} hosts instead of {bounds}"
                yield Violation("malleable", (row.id,), piece.start, text)
        if row.final_state in (JobState.SUCCESS, JobState.FAILED):
            yield from _work(row.id, job, profile, bounds, pieces, speeds)


def _work(
    job_id: str,
    job: Job,
    profile: Profile,
    bounds: Malleable,
    pieces: Sequence[Piece],
    speeds: Sequence[float] | None,
) -> Iterator[Violation]:
    """A job that has come to its end has done all of its work, and no more."""
    done, error = Fraction(0), Fraction(0)
    for piece in pieces:
        seconds = _seconds(profile, job.size, piece, speeds)
        if not seconds:
            return
        speed = bounds.speedup(len(piece.hosts)) / bounds.speedup(job.size) / Fraction(seconds)
        done += speed * (Fraction(piece.finish) - Fraction(piece.start))
        error += speed * Fraction(2 * SLACK)
    if abs(done - 1) > error:
        text = f"job {job_id} ends when {float(100 * done):.6f} % of its work are done"
        yield Violation("work", (job_id,), pieces[-1].finish, text)


def _seconds(profile: Profile, size: int, piece: Piece, speeds: Sequence[float] | None) -> float | None:
    """How long a profile takes with as many hosts as the job asks for, which are like those of a piece."""
    match profile:
        case Delay(seconds=seconds):
            return seconds
        case Homogeneous(work=work) if speeds is not None and piece.hosts.mask < 1 << len(speeds):
            share = work / size if isinstance(profile, HomogeneousTotal) else work
            return share / min(speeds[host] for host in piece.hosts)
    return None
