"""The whole description of a log."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.description.bags import BagsOfTasks, bags_of_tasks
from batsched_py.workload.description.burstiness import Burstiness, burstiness
from batsched_py.workload.description.correlation import Correlation, correlation
from batsched_py.workload.description.cycles import Cycles, cycles
from batsched_py.workload.description.distributions import Distributions, distributions
from batsched_py.workload.description.flurries import Flurries, flurries
from batsched_py.workload.description.hurst import Hurst
from batsched_py.workload.description.load import Load, load
from batsched_py.workload.description.locality import Locality, locality
from batsched_py.workload.description.memory import arrival_hurst
from batsched_py.workload.description.quality import Quality, quality
from batsched_py.workload.description.selection import characterised
from batsched_py.workload.description.users import Users, users
from batsched_py.workload.swf.log import SwfLog


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
