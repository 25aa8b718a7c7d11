"""What a configuration leaves out has the default that Slurm's manual names."""

from __future__ import annotations

from math import inf

import pytest
from msgspec import Struct
from msgspec.structs import asdict

from batsched_py.slurm.policy.job import JobFields
from batsched_py.slurm.policy.settings import (
    Association,
    NodeSettings,
    Partition,
    Preemption,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Selection,
)

DAY = 86400.0

#: Those that are neither off, nor 0, nor without a limit.
DEFAULTS: list[tuple[Struct, dict[str, float]]] = [
    (Selection(), {}),
    (NodeSettings(nodes="n1"), {"weight": 1, "sockets": 1, "threads_per_core": 1}),
    (
        Scheduling(),
        {
            "sched_interval": 60,
            "sched_min_interval": 2e-6,
            "batch_sched_delay": 3,
            "default_queue_depth": 100,
            "max_sched_time": 2,
            "bf_interval": 30,
            "bf_resolution": 60,
            "bf_window": DAY,
            "bf_max_job_test": 500,
            "bf_max_job_array_resv": 20,
            "bf_yield_interval": 2,
            "bf_yield_sleep": 0.5,
            "max_switch_wait": 300,
            "kill_wait": 30,
            "message_timeout": 10,
            "job_requeue": True,
            "max_array_size": 1001,
            "max_job_count": 10000,
        },
    ),
    (
        Priority(),
        {
            "max_age": 7 * DAY,
            "calc_period": 300,
            "decay_half_life": 7 * DAY,
            "fairshare_dampening": 1,
        },
    ),
    (Preemption(), {"reorder_count": 1}),
    (
        Partition(name="batch"),
        {"max_time": inf, "priority_tier": 1, "priority_job_factor": 1, "over_subscribe_jobs": 4},
    ),
    (Qos(name="normal"), {"usage_factor": 1}),
    (Association(account="physics"), {"shares": 1}),
    (Reservation(name="night", start=0.0), {"end": inf}),
    (JobFields(), {"cpus_per_task": 1}),
]


@pytest.mark.parametrize(("given", "defaults"), DEFAULTS, ids=lambda each: type(each).__name__)
def test_what_is_left_out_has_the_default_of_slurm(given: Struct, defaults: dict[str, float]) -> None:
    found = {name: value for name, value in asdict(given).items() if isinstance(value, int | float) and value}
    assert found == defaults
