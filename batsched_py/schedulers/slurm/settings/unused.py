"""Settings that are read, and that the policy does not act on.

The importer lists them as not modelled where a cluster has them. Who lets the policy act on one takes it off
the list; a test compares the list with the code.
"""

from __future__ import annotations

#: The fields of each table.
UNUSED: dict[str, frozenset[str]] = {
    "scheduling": frozenset(
        """sched_min_interval max_sched_time defer ignore_prefer_validation bf_max_time
        bf_yield_interval bf_yield_sleep bf_busy_nodes bf_one_resv_per_job bf_licenses enforce_part_limits
        complete_wait max_array_size max_job_count""".split()
    ),
    "selection": frozenset(
        """core_default_dist_block pack_serial_at_end def_mem_per_gpu
        max_mem_per_node def_cpu_per_gpu topology""".split()
    ),
    "nodes": frozenset(),
    "priority": frozenset(["usage_reset_period"]),
    "preemption": frozenset("send_user_signal within_qos".split()),
    "partitions": frozenset(
        """over_subscribe_jobs exclusive_user req_resv root_only
        allow_accounts deny_accounts allow_qos deny_qos def_mem_per_gpu
        max_mem_per_node def_cpu_per_gpu""".split()
    ),
    "limits": frozenset(
        """grp_submit_jobs grp_tres_seconds grp_tres_run_seconds grp_wall grp_jobs_accrue
        min_prio_thres""".split()
    ),
    "qos": frozenset(
        """usage_threshold limit_factor
        max_submit_jobs_per_user max_submit_jobs_per_account max_jobs_accrue_per_user
        max_jobs_accrue_per_account min_tres_per_job""".split()
    ),
    "associations": frozenset("max_submit_jobs max_jobs_accrue".split()),
    "reservations": frozenset("node_count max_start_delay".split()),
    "job": frozenset(
        """spread use_min_nodes oversubscribe
        exclusive_user""".split()
    ),
}


def is_unused(table: str, field: str) -> bool:
    """Whether the policy does not act on a field of a table."""
    also = ("limits",) if table in ("qos", "associations") else ()
    return any(field in UNUSED[each] for each in (table, *also))
