"""The options in ``SchedulerParameters``: where each of them goes, and which the twin does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batsched_py.slurm.values import count, number, signed


def _minutes(text: str) -> float:
    return number(text) * 60


def _microseconds(text: str) -> float:
    return number(text) / 1_000_000


#: Where an option goes, and how its value is read; without a reader it is a switch.
Target = tuple[str, str, Callable[[str], Any] | None]

TARGETS: dict[str, Target] = {
    **{
        name: ("scheduling", name, count)
        for name in (
            "default_queue_depth", "partition_job_depth", "sched_max_job_start", "bf_max_job_test",
            "bf_max_job_user", "bf_max_job_part", "bf_max_job_user_part", "bf_max_job_assoc",
            "bf_max_job_start", "bf_max_job_array_resv", "bf_min_prio_reserve", "bf_job_part_count_reserve",
        )
    },
    **{
        name: ("scheduling", name, number)
        for name in (
            "batch_sched_delay", "max_sched_time", "bf_resolution", "bf_max_time", "bf_min_age_reserve",
            "bf_window_linear",
        )
    },
    **{name: ("scheduling", name, signed) for name in ("sched_interval", "bf_interval")},
    **{
        name: ("scheduling", name, None)
        for name in (
            "defer", "assoc_limit_stop", "bf_continue", "bf_busy_nodes", "bf_one_resv_per_job",
            "bf_running_job_reserve", "bf_licenses",
        )
    },
    "bf_window": ("scheduling", "bf_window", _minutes),
    "sched_min_interval": ("scheduling", "sched_min_interval", _microseconds),
    "bf_yield_interval": ("scheduling", "bf_yield_interval", _microseconds),
    "bf_yield_sleep": ("scheduling", "bf_yield_sleep", _microseconds),
    "pack_serial_at_end": ("selection", "pack_serial_at_end", None),
    "preempt_reorder_count": ("preemption", "reorder_count", count),
    "preempt_strict_order": ("preemption", "strict_order", None),
    "preempt_youngest_first": ("preemption", "youngest_first", None),
}  # fmt: skip

#: What else shapes schedules.
UNMODELLED = frozenset(
    """allow_zero_lic bb_array_stage_cnt bf_hetjob_immediate bf_hetjob_prio bf_node_space_size
    build_queue_timeout correspond_after_task_cnt delay_boot ignore_prefer_validation max_array_tasks
    max_rpc_cnt max_switch_wait reduce_completing_frag spec_cores_first whole_hetjob enable_user_top
    ignore_numa""".split()
)

WITHOUT_EFFECT = frozenset(
    """disable_job_shrink disable_hetjob_steps enable_hetjob_steps max_script_size no_backup_scheduling
    no_env_cache nohold_on_prolog_fail requeue_setup_env_fail salloc_wait_nodes sbatch_wait_nodes
    step_retry_count step_retry_time""".split()
)
