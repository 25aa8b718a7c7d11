"""Describing a log: one family of statistics per file, each figure with its definition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.description.bags import BagsOfTasks, bags_of_tasks
from batsched_py.workload.description.distributions import (
    Correlation,
    Distributions,
    characterised,
    correlation,
    distributions,
    requested,
)
from batsched_py.workload.description.load import Cycles, Load, cycles, load
from batsched_py.workload.description.memory import Burstiness, Hurst, arrival_hurst, burstiness
from batsched_py.workload.description.users import Flurries, Locality, Users, flurries, locality, users
from batsched_py.workload.swf.log import SwfLog

#: Schedulers check the time only now and then: a job that exceeds its time by less is not suspicious.
_GRACE = 60.0


class Quality(Struct, frozen=True, kw_only=True):
    """Records of a log by what is wrong or strange about them; a record may be in several kinds."""

    left_out: dict[str, int]
    """Records that could not be used, and why."""
    guessed: dict[str, int]
    """Values that were filled in when the log was made of another source."""
    suspicious: dict[str, int]
    """Records that were kept."""
    unknown: dict[str, int]
    """Records that do not say something."""


def quality(log: SwfLog) -> Quality:
    """Count what is wrong or strange in a log."""
    sizes = log.processors
    machine = log.machine_size
    estimated = log.requested_time > 0
    suspicious = {
        "run time is 0": log.run_time == 0,
        "ran for over a minute more than requested": estimated & (log.run_time > log.requested_time + _GRACE),
        "larger than the machine": np.zeros(len(log), dtype=bool) if machine is None else sizes > machine,
        "allocated more processors than requested": (log.requested_processors > 0)
        & (log.allocated_processors > log.requested_processors),
        "allocated fewer processors than requested": (log.allocated_processors > 0)
        & (log.allocated_processors < log.requested_processors),
        "used more processor time than there was": log.average_cpu_time > log.run_time + _GRACE,
        "cancelled or failed, yet ran": np.isin(log.status, (0, 5)) & (log.run_time > 0),
        "completed, yet never ran": (log.status == 1) & (log.run_time == 0),
        "cancelled while it waited": log.never_started,
        "names a preceding job, for which no simulation waits": log.preceding_job > 0,
        "has a think time, which no simulation uses": log.think_time >= 0,
    }
    unknown = {
        "size": requested(log) <= 0,
        "wait": log.wait < 0,
        "requested time": ~estimated,
        "status": log.status < 0,
        "user": log.user < 0,
        "executable": log.executable < 0,
        "queue": log.queue < 0,
    }
    return Quality(
        left_out=dict(log.left_out),
        guessed=dict(log.guessed),
        suspicious={kind: int(found.sum()) for kind, found in suspicious.items() if found.any()},
        unknown={kind: int(found.sum()) for kind, found in unknown.items() if found.any()},
    )


class Description(Struct, frozen=True, kw_only=True):
    """What a log is like; each part says what its figures mean."""

    name: str
    header: dict[str, str]
    load: Load
    users: Users
    cycles: Cycles
    flurries: Flurries
    quality: Quality
    characterised: int
    """How many jobs the parts below are about: those that completed, ran, and asked for processors."""
    distributions: Distributions
    bags: BagsOfTasks
    burstiness: Burstiness
    memory: Hurst | None
    """Long-range dependence of the arrivals; none where the log is too short to tell."""
    correlation: Correlation
    locality: Locality


def describe(log: SwfLog) -> Description:
    """Describe a log."""
    jobs = characterised(log)
    if not len(jobs):
        raise InputError(f"{log.path or 'the log'}: no job ran for some time on a known number of processors")
    return Description(
        name=Path(log.path).name,
        header=log.header,
        load=load(log),
        users=users(log),
        cycles=cycles(log),
        flurries=flurries(log),
        quality=quality(log),
        characterised=len(jobs),
        distributions=distributions(jobs),
        bags=bags_of_tasks(jobs),
        burstiness=burstiness(jobs),
        memory=arrival_hurst(jobs.submit),
        correlation=correlation(jobs),
        locality=locality(jobs),
    )
