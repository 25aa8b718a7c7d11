"""Partitions: the entries of ``[[partitions]]``."""

from __future__ import annotations

from math import inf
from typing import Literal

from msgspec import Struct

from batsched_py.schedulers.slurm.settings.amounts import Count, Positive, Seconds, Tres
from batsched_py.schedulers.slurm.settings.preemption import PreemptMode

OverSubscribe = Literal["no", "exclusive", "yes", "force"]


class Partition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A partition. ``None`` is no limit, and an empty list of names allows all."""

    name: str
    nodes: str = "ALL"
    """As Slurm writes them, like ``n[1-8],m1``."""
    default: bool = False
    """Whether it is that of jobs that do not say."""
    state: Literal["up", "down", "drain", "inactive"] = "up"
    max_time: Positive = inf
    default_time: Positive | None = None
    """The time limit of jobs that do not say; ``max_time`` if left out."""
    min_nodes: Count = 0
    max_nodes: Count | None = None
    max_cpus_per_node: Count | None = None
    priority_tier: Count = 1
    priority_job_factor: Count = 1
    over_subscribe: OverSubscribe = "no"
    over_subscribe_jobs: Count = 4
    """How many jobs may share a resource, with ``yes`` and ``force``."""
    lln: bool = False
    exclusive_user: bool = False
    req_resv: bool = False
    """Whether jobs must name a reservation."""
    root_only: bool = False
    preempt_mode: PreemptMode | None = None
    grace_time: Seconds = 0.0
    over_time_limit: Seconds | None = None
    qos: str = ""
    """The QOS whose limits are those of the partition."""
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    def_mem_per_cpu: Count | None = None
    """That of ``[selection]`` if left out, as with the others of memory."""
    def_mem_per_node: Count | None = None
    def_mem_per_gpu: Count | None = None
    max_mem_per_cpu: Count | None = None
    max_mem_per_node: Count | None = None
    def_cpu_per_gpu: Count | None = None
    tres_billing_weights: Tres = {}
