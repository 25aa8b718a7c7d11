"""What a job tells Slurm beside its resources.

It stands in the field ``slurm`` of a job in a workload file. Its resources are in the field ``request``
(:mod:`batsched_py.protocol.requests`), what it waits for in ``after`` and its array in ``array``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.slurm.settings.amounts import Count

FIELD = "slurm"
"""The field of a job."""


class JobFields(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Options of ``sbatch``; names that are empty were not given.

    The partitions of a job are those of its request, and its user is its field ``user``.
    """

    account: str = ""
    qos: str = ""
    nice: Annotated[int, Meta(ge=-(1 << 31), le=1 << 31)] = 0
    priority: Count | None = None
    """A priority that was given; then none is computed. A job with 0 is held."""
    begin: Annotated[float, Meta(ge=0)] = 0.0
    """It may not start before, in seconds since its submission."""
    deadline: Annotated[float, Meta(ge=0)] | None = None
    """When its time limit must be over, in seconds since its submission; it is given up if that cannot be."""
    hold: bool = False
    """Held for ever, or until ``released``."""
    released: float | None = None
    """When a hold ends, in seconds since its submission."""
    cpus_per_task: Annotated[int, Meta(ge=1)] = 1
    """So many tasks of its request are a task for Slurm, which may be cut in two and put on two nodes."""
    cpus_of_core: Annotated[int, Meta(ge=1)] | None = None
    """It may use so many processors of a core, where a core has several."""
    tasks_of_core: Annotated[int, Meta(ge=1)] | None = None
    """So many of its tasks may share a core; those of the configuration if left out."""
    least_cpus: Annotated[int, Meta(ge=1)] | None = None
    """So many processors will do, if a range of nodes was asked for without a number of tasks."""
    all_memory: bool = False
    """Whether it asks for all the memory of its nodes, whatever a partition gives a job that does not say."""
    gpus: dict[str, Count] = {}
    """GPUs of the whole job, by name; Slurm decides how many of them each node gives."""
    reservation: str = ""
    requeue: bool | None = None
    """Whether it may be put back into the queue; ``job_requeue`` of the configuration if left out."""
    time_limit: Annotated[float, Meta(ge=0)] | None = None
    """Of a job that runs out of time, in seconds; its walltime leaves the policy time to kill it."""
    no_time_limit: bool = False
    """Whether it did not say how long it runs; then its partition says."""
    time_min: Annotated[float, Meta(ge=0)] | None = None
    """``--time-min``: it may be given a lower time limit, if it starts earlier by that."""
    node_list: str = ""
    """Nodes that it must have, like ``n[1-2]``."""
    exclude: str = ""
    """Nodes that it must not have."""
    contiguous: bool = False
    spread: bool = False
    use_min_nodes: bool = False
    oversubscribe: bool = False
    exclusive_user: bool = False
    """Whether only jobs of the same user may be on its nodes."""
    name: str = ""
    id: str = ""
    """What Slurm calls it, where that was recorded."""


NOTHING = JobFields()


def fields_of(job: Job) -> JobFields:
    """What a job tells Slurm; raises ``ValueError`` if that is not what it may tell."""
    given = job.extra.get(FIELD)
    if not given:
        return NOTHING
    try:
        return msgspec.convert(given, JobFields)
    except msgspec.ValidationError as error:
        raise ValueError(f"{FIELD}: {error}") from None
