"""When the main loop and the backfill loop run, and how much each of them looks at: ``[scheduling]``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from batsched_py.schedulers.slurm.settings.amounts import Count, Positive, Seconds


class Scheduling(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``SchedulerType``, ``SchedulerParameters``, and what else of ``slurm.conf`` shapes the loops.

    A number of jobs that is 0 means that there is no limit.
    """

    type: Literal["backfill", "builtin"] = "backfill"

    sched_interval: Annotated[float, Meta(ge=-1)] = 60.0
    """Between two looks of the main loop at the whole queue; it never does that if this is -1."""
    sched_min_interval: Seconds = 2e-6
    """At least between two runs of the main loop."""
    batch_sched_delay: Seconds = 3.0
    """How long the main loop may be put off after a batch job is submitted."""
    default_queue_depth: Count = 100
    """Jobs that the main loop looks at when an event makes it run."""
    partition_job_depth: Count = 0
    """Jobs of each partition that the main loop looks at."""
    sched_max_job_start: Count = 0
    max_sched_time: Positive = 2.0
    """How long a run of the main loop may take."""
    defer: bool = False
    """Whether no job is tried at the moment of its submission."""
    assoc_limit_stop: bool = False
    """Whether a job that waits for a limit of its association holds up the jobs behind it."""
    ignore_prefer_validation: bool = False

    bf_interval: Annotated[float, Meta(ge=-1)] = 30.0
    """From the end of a backfill cycle to the next; there are none if this is -1."""
    bf_resolution: Positive = 60.0
    bf_window: Positive = 86400.0
    """How far the plan of the backfill loop reaches."""
    bf_max_job_test: Annotated[int, Meta(ge=1)] = 500
    bf_max_job_user: Count = 0
    bf_max_job_part: Count = 0
    bf_max_job_user_part: Count = 0
    bf_max_job_assoc: Count = 0
    bf_max_job_start: Count = 0
    bf_max_job_array_resv: Count = 20
    """Tasks of one array for which a start is planned."""
    bf_max_time: Positive | None = None
    """How long a cycle may take; as long as ``bf_interval`` if left out."""
    bf_continue: bool = False
    """Whether a cycle goes on after a break in which the queue or the machine changed."""
    bf_yield_interval: Positive = 2.0
    bf_yield_sleep: Seconds = 0.5
    bf_busy_nodes: bool = False
    """Whether nodes that are partly used are preferred where a start is planned."""
    bf_min_prio_reserve: Count = 0
    """The least priority of a job for which a later start is planned."""
    bf_min_age_reserve: Seconds = 0.0
    """The least age of a job for which a later start is planned."""
    bf_job_part_count_reserve: Count = 0
    """A later start is planned for so many jobs of each partition only."""
    bf_one_resv_per_job: bool = False
    bf_running_job_reserve: bool = False
    bf_licenses: bool = False
    bf_window_linear: Seconds = 0.0

    enforce_part_limits: Literal["no", "any", "all"] = "no"
    """Whether a job beyond the limits of its partitions is refused at its submission."""
    over_time_limit: Seconds = 0.0
    """So much longer than its time limit may a job run."""
    kill_wait: Seconds = 30.0
    message_timeout: Seconds = 10.0
    complete_wait: Seconds = 0.0
    job_requeue: bool = True
    """Whether a job can be put back into the queue if it does not say."""
    max_array_size: Count = 1001
    max_job_count: Count = 10000
