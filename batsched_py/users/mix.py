"""The jobs of a log as one common mix, whoever submitted them."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.dependencies import depends, without_dependencies
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Homogeneous, Profile
from batsched_py.users.named import part_of
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED


def run_time_of(job: Job, profile: Profile) -> float:
    """How long a job runs on the machine of its log; of one that does more than compute, its walltime."""
    match profile:
        case Homogeneous(work=work):
            return work / LOG_SPEED
        case Delay(seconds=seconds):
            return seconds
    return job.walltime


def no_longer_than(workload: Workload, hours: float) -> Workload:
    """The workload without the jobs that run for more than so many hours; 0 leaves all in it."""
    if not hours:
        return workload
    places = [
        place
        for place, job in enumerate(workload.jobs)
        if run_time_of(job, workload.profiles[job.profile]) <= hours * 3600
    ]
    if not places:
        source = workload.path or workload.name
        raise InputError(f"{source}: no job runs for at most {hours:g} h, so there is nothing to submit")
    return part_of(workload, places)


def without_waits(workload: Workload) -> Workload:
    """The workload with jobs that wait for no others: in a mix, who comes before whom means nothing."""
    if not have_dependencies(workload.jobs):
        return workload
    jobs = [without_dependencies(job) if depends(job) else job for job in workload.jobs]
    return replace(workload, jobs=jobs)


def shuffled(workload: Workload, seed: int) -> Workload:
    """The same submissions with jobs that are dealt anew: who submits when stays, what is submitted does not.

    A job takes along all that is recorded of it, also its wait, but not the jobs that it waited for.
    """
    jobs = list(without_waits(workload).jobs)
    places = np.random.default_rng([seed, 0, 1]).permutation(len(jobs)).tolist()
    dealt = [
        replace(
            jobs[place],
            submission_time=job.submission_time,
            extra=jobs[place].extra | ({} if job.user is None else {"user": job.extra["user"]}),
        )
        for job, place in zip(jobs, places, strict=True)
    ]
    recorded = workload.finishes
    finishes = (
        None
        if recorded is None
        else [
            job.submission_time + (float(recorded[place]) - jobs[place].submission_time)
            for job, place in zip(jobs, places, strict=True)
        ]
    )
    return replace(workload, jobs=dealt, finishes=finishes)
