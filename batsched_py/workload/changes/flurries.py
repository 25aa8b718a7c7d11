"""Flurries and dominating users, removed by an explicit rule or kept alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from batsched_py.errors import InputError
from batsched_py.workload.changes.base import Change
from batsched_py.workload.description.users import (
    DOMINATING_SHARE,
    FACTOR,
    SHARE,
    find_dominating,
    find_flurries,
    weeks_of,
)
from batsched_py.workload.swf.log import SwfLog

Action = Literal["remove", "keep"]


@dataclass(frozen=True)
class Flurries(Change):
    """Remove the flurries, or keep nothing else.

    A flurry is a week, counted from the first submission, in which one user submits at least a given share of
    the jobs and at least a given factor times the jobs of the median week; consecutive weeks are one.
    """

    name = "flurries"

    action: Annotated[Action, Meta(description="What happens to the jobs of a flurry.")] = "remove"
    share: Annotated[float, Meta(gt=0, le=1, description="Least share of a week's jobs.")] = SHARE
    factor: Annotated[float, Meta(gt=0, description="Least multiple of the median week's jobs.")] = FACTOR

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log without the flurries, or they alone."""
        weeks = weeks_of(log)
        found = find_flurries(log, self.share, self.factor)
        jobs = np.zeros(len(log), dtype=bool)
        for flurry in found:
            jobs |= (log.user == flurry.user) & (weeks >= flurry.first_week) & (weeks <= flurry.last_week)
        which = ", ".join(f"user {each.user} in weeks {each.first_week}-{each.last_week}" for each in found)
        return _chosen(log, jobs, self.action, str(self), which)


@dataclass(frozen=True)
class Dominating(Change):
    """Remove the jobs of users who submit a large share of all jobs, or keep nothing else."""

    name = "dominating"

    action: Annotated[Action, Meta(description="What happens to the jobs of these users.")] = "remove"
    share: Annotated[float, Meta(gt=0, le=1, description="Least share of all jobs.")] = DOMINATING_SHARE

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log without these users, or they alone."""
        found = find_dominating(log, self.share)
        jobs = np.isin(log.user, [each.user for each in found])
        which = ", ".join(f"user {each.user} with {each.share_of_jobs:.0%} of all jobs" for each in found)
        return _chosen(log, jobs, self.action, str(self), which)


def _chosen(log: SwfLog, jobs: np.ndarray, action: Action, change: str, which: str) -> tuple[SwfLog, str]:
    left = jobs if action == "keep" else ~jobs
    if not left.any():
        raise InputError(f"{change}: no job is left")
    verb = "kept" if action == "keep" else "removed"
    return log.select(left), f"{verb} {int(jobs.sum())} of {len(log)} jobs ({which or 'there is none'})"
