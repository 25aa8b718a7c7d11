"""Priorities of jobs, as ``priority/multifactor`` computes them.

Each factor lies between 0 and 1 and is multiplied with its weight; the sum, less the job's ``nice``, is cut
to a whole number. These are functions of numbers alone: they can be held against what ``sprio`` prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from batsched_py.schedulers.slurm.settings.priority import Priority

HIGHEST = 0xFFFFFFFF
"""A priority has 32 bits."""


class JobFacts(Struct, frozen=True, kw_only=True):
    """What counts of a job, in one of its partitions."""

    age: float = 0.0
    """Seconds since it could have started, as far as its submitter is concerned."""
    nodes: int = 1
    """The least that it asks for."""
    cpus: int = 0
    """What it asks for, or would get by Slurm's latest plan."""
    limit: int = 1
    """Its time limit in minutes."""
    nice: int = 0
    fair_share: float = 0.0
    """Between 0 and 1."""
    partition_factor: int = 1
    """The ``PriorityJobFactor`` of its partition."""
    qos_priority: int = 0
    assoc_priority: int = 0
    tres: Mapping[str, float] = {}
    """How much of which resource it asks for."""
    partition_tres: Mapping[str, float] = {}
    """How much of it its partition has."""


class Scale(Struct, frozen=True, kw_only=True):
    """The largest values, by which factors are divided."""

    nodes: int
    cpus: int
    partition_factor: int = 1
    qos_priority: int = 0
    assoc_priority: int = 0


class Weighted(Struct, frozen=True, kw_only=True):
    """The parts of a priority, each multiplied with its weight, as ``sprio -l`` shows them."""

    age: float = 0.0
    assoc: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = {}
    nice: int = 0

    @property
    def rest(self) -> tuple[float, ...]:
        """All but the age, in the order in which they are added; those that are 0 are left out."""
        parts = (self.assoc, self.fair_share, self.job_size, self.partition, self.qos)
        return tuple(filter(None, (*parts, sum(self.tres.values()), -float(self.nice))))

    @property
    def priority(self) -> int:
        """The whole."""
        return priority_of(self.age, self.rest)


def priority_of(age: float, rest: Iterable[float]) -> int:
    """The whole of the parts of a priority; 0 is for jobs that are held."""
    total = age
    for part in rest:
        total += part
    return min(max(int(total), 1), HIGHEST)


def weighted(settings: Priority, job: JobFacts, scale: Scale) -> Weighted:
    """The parts of a job's priority."""
    flags = settings.flags
    return Weighted(
        age=age_part(settings, job.age),
        assoc=settings.weight_assoc
        * _normal(job.assoc_priority, scale.assoc_priority, "no_normal_assoc" in flags),
        fair_share=settings.weight_fairshare * job.fair_share,
        job_size=settings.weight_job_size * size_factor(settings, job, scale)
        if settings.weight_job_size
        else 0.0,
        partition=settings.weight_partition
        * _normal(job.partition_factor, scale.partition_factor, "no_normal_part" in flags),
        qos=settings.weight_qos * _normal(job.qos_priority, scale.qos_priority, "no_normal_qos" in flags),
        tres=_tres(settings, job),
        nice=job.nice,
    )


def age_part(settings: Priority, age: float) -> float:
    """The part of a priority that is for the age of a job, in seconds."""
    if age <= 0:
        return 0.0
    return settings.weight_age * (age / settings.max_age if age < settings.max_age else 1.0)


def size_factor(settings: Priority, job: JobFacts, scale: Scale) -> float:
    """How large a job is, in nodes and processors; or how small, if small jobs are favoured."""
    if "small_relative_to_time" in settings.flags:
        factor = max(job.nodes * scale.cpus / scale.nodes, float(job.cpus)) / job.limit / scale.cpus
        factor = 1.0 - factor if settings.favor_small else factor
    elif settings.favor_small:
        factor = (scale.nodes - job.nodes) / scale.nodes
        if job.cpus:
            factor = (factor + (scale.cpus - job.cpus) / scale.cpus) / 2
    else:
        factor = job.nodes / scale.nodes
        if job.cpus:
            factor = (factor + job.cpus / scale.cpus) / 2
    return min(max(factor, 0.0), 1.0)


def _normal(value: int, largest: int, is_raw: bool) -> float:
    if is_raw:
        return float(value)
    return value / largest if largest else 0.0


def _tres(settings: Priority, job: JobFacts) -> dict[str, float]:
    is_raw = "no_normal_tres" in settings.flags
    found: dict[str, float] = {}
    for name, weight in settings.weight_tres.items():
        asked, has = job.tres.get(name, 0.0), job.partition_tres.get(name, 0.0)
        found[name] = weight * (asked if is_raw else asked / has if has else 0.0)
    return found
