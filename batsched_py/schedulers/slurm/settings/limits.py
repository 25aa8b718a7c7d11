"""Limits, as associations and QOS have them."""

from __future__ import annotations

from msgspec import Struct

from batsched_py.schedulers.slurm.settings.amounts import Count, Seconds, Tres


class Limits(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What an association and a QOS both limit; ``None`` and names that are missing have no limit.

    Limits that begin with ``grp`` are for all running jobs together; minutes of resources are in seconds, as
    all times are (``cpu = 3600`` are 60 minutes of a processor).
    """

    grp_jobs: Count | None = None
    grp_submit_jobs: Count | None = None
    grp_tres: Tres = {}
    grp_tres_seconds: Tres = {}
    grp_tres_run_seconds: Tres = {}
    """Of what running jobs may still use until their time limits."""
    grp_wall: Seconds | None = None
    grp_jobs_accrue: Count | None = None
    max_tres_per_job: Tres = {}
    max_tres_per_node: Tres = {}
    max_tres_seconds_per_job: Tres = {}
    max_wall: Seconds | None = None
    """Of each job."""
    min_prio_thres: Count | None = None
