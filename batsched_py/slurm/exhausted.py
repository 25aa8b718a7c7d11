"""Jobs that run out of time: Slurm takes note of that some time after their time limits."""

from __future__ import annotations

from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.settings.partitions import Partition

LONGER = 60.0
"""So much longer than its time limit a job may run at most, until Slurm takes note of that."""

NEARLY = 5.0
"""A job that ends so shortly before its time limit may reach it if it is launched late."""


def may_reach(time_limit: float, run_time: float) -> bool:
    """Whether a job may run out of time."""
    return run_time > time_limit - NEARLY


def longest(time_limit: float, partition: Partition | None, configuration: Configuration) -> float:
    """How long a job runs at most that is killed because of its time limit."""
    over = None if partition is None else partition.over_time_limit
    return time_limit + LONGER + (configuration.scheduling.over_time_limit if over is None else over)
