"""How important a job is: ``[priority]``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from batsched_py.schedulers.slurm.settings.amounts import Count, Positive, Seconds, Tres

ResetPeriod = Literal["none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"]

PriorityFlag = Literal[
    "accrue_always", "calculate_running", "depth_oblivious", "no_fair_tree", "incr_only", "max_tres",
    "no_normal_all", "no_normal_assoc", "no_normal_part", "no_normal_qos", "no_normal_tres",
    "small_relative_to_time",
]  # fmt: skip


class Priority(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``PriorityType`` and the settings of ``priority/multifactor``."""

    type: Literal["basic", "multifactor"] = "basic"
    weight_age: Count = 0
    weight_assoc: Count = 0
    weight_fairshare: Count = 0
    weight_job_size: Count = 0
    weight_partition: Count = 0
    weight_qos: Count = 0
    weight_tres: Tres = {}
    max_age: Positive = 7 * 86400.0
    calc_period: Positive = 300.0
    decay_half_life: Seconds = 7 * 86400.0
    """Usage does not decay if this is 0."""
    usage_reset_period: ResetPeriod = "none"
    favor_small: bool = False
    flags: tuple[PriorityFlag, ...] = ()
    fairshare_dampening: Annotated[int, Meta(ge=1)] = 1
    """``FairShareDampeningFactor``."""

    @property
    def fair_tree(self) -> bool:
        """Whether fair share is that of Slurm's fair tree, which is the usual one."""
        return "no_fair_tree" not in self.flags and "depth_oblivious" not in self.flags
