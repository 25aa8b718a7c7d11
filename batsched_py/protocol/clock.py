"""The clock of both sides: times in messages are multiples of a microsecond, the *tick*."""

from __future__ import annotations

from msgspec import structs

from batsched_py.protocol.jobs import Job

#: A call cannot be requested for sooner than this.
TICK = 1e-6


def to_tick(time: float) -> float:
    """A time as messages contain it: rounded to the nearest tick.

    >>> to_tick(12.3456789)
    12.345679
    """
    return time if time.is_integer() else round(time, 6)


def as_told(job: Job) -> Job:
    """The job as messages contain it: its times rounded to ticks."""
    submission, walltime = job.submission_time, job.walltime
    if submission.is_integer() and walltime.is_integer():
        return job
    submission, walltime = to_tick(submission), to_tick(walltime) if job.has_walltime else walltime
    if submission == job.submission_time and walltime == job.walltime:
        return job
    return structs.replace(job, submission_time=submission, walltime=walltime)
