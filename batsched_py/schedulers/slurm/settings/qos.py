"""Qualities of service: the entries of ``[[qos]]``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.schedulers.slurm.settings.amounts import Count, Seconds, Tres
from batsched_py.schedulers.slurm.settings.limits import Limits
from batsched_py.schedulers.slurm.settings.preemption import PreemptMode

QosFlag = Literal[
    "deny_on_limit", "enforce_usage_threshold", "no_decay", "no_reserve", "override_part_qos",
    "partition_max_nodes", "partition_min_nodes", "partition_time_limit", "require_reservation",
    "usage_factor_safe",
]  # fmt: skip


class Qos(Limits, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A quality of service."""

    name: str
    priority: Count = 0
    preempt: tuple[str, ...] = ()
    """The QOS whose jobs may be preempted by jobs of this one."""
    preempt_mode: PreemptMode | None = None
    """That of the whole machine if left out."""
    preempt_exempt_time: Seconds | None = None
    grace_time: Seconds = 0.0
    usage_factor: Annotated[float, Meta(ge=0)] = 1.0
    usage_threshold: float | None = None
    limit_factor: float | None = None
    flags: tuple[QosFlag, ...] = ()
    max_jobs_per_user: Count | None = None
    max_submit_jobs_per_user: Count | None = None
    max_jobs_per_account: Count | None = None
    max_submit_jobs_per_account: Count | None = None
    max_jobs_accrue_per_user: Count | None = None
    max_jobs_accrue_per_account: Count | None = None
    max_tres_per_user: Tres = {}
    max_tres_per_account: Tres = {}
    min_tres_per_job: Tres = {}
