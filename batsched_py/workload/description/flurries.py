"""Flurries and dominating users: activity of one user that hides everybody else's.

The rule is explicit, so that a paper can state it. Time is cut into weeks from the first submission.
A *flurry* is a week in which one user submits at least half of the jobs, and at least three times as many
as the median week has in all; consecutive such weeks of a user are one flurry. A *dominating user* submits at
least a quarter of all jobs of the log. Both numbers can be chosen.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.wall_clock import WEEK

SHARE: Final = 0.5
FACTOR: Final = 3.0
DOMINATING_SHARE: Final = 0.25
SHOWN_USERS: Final = 5


class Flurry(Struct, frozen=True, kw_only=True):
    """A surge of one user."""

    user: int
    first_week: int
    """Weeks count from 0, which begins with the first submission."""
    last_week: int
    jobs: int
    """Jobs of the user in these weeks."""
    share_of_jobs: float
    """Their share of all jobs of these weeks."""


class DominatingUser(Struct, frozen=True, kw_only=True):
    """A user whose jobs are a large part of the whole log."""

    user: int
    jobs: int
    share_of_jobs: float


class Flurries(Struct, frozen=True, kw_only=True):
    """What single users do to the statistics of a log."""

    flurries: list[Flurry]
    dominating: list[DominatingUser]
    weekly: dict[str, list[int]]
    """Jobs in each week of the users that stand out or are the busiest, by number, then of ``others``."""


def flurries(log: SwfLog) -> Flurries:
    """Find the flurries and dominating users of a log."""
    found = find_flurries(log)
    dominating = find_dominating(log)
    return Flurries(flurries=found, dominating=dominating, weekly=_weekly(log, found))


def weeks_of(log: SwfLog) -> NDArray[np.int64]:
    """The week in which each job is submitted."""
    return ((log.submit - log.submit.min()) // WEEK).astype(np.int64)


def find_flurries(log: SwfLog, share: float = SHARE, factor: float = FACTOR) -> list[Flurry]:
    """The flurries of a log, in the order of their weeks; jobs without a user are never a flurry."""
    weeks = weeks_of(log)
    per_week = np.bincount(weeks)
    numbers, who = np.unique(log.user, return_inverse=True)
    table = np.zeros((len(numbers), len(per_week)), dtype=np.int64)
    np.add.at(table, (who, weeks), 1)
    surge = (table >= share * per_week) & (table >= factor * np.median(per_week)) & (numbers >= 0)[:, None]
    found = []
    for row in np.flatnonzero(surge.any(axis=1)).tolist():
        padded = np.concatenate([[0], surge[row].astype(np.int8), [0]])
        firsts, lasts = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1) - 1
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            jobs = int(table[row, first : last + 1].sum())
            found.append(
                Flurry(
                    user=int(numbers[row]),
                    first_week=first,
                    last_week=last,
                    jobs=jobs,
                    share_of_jobs=jobs / int(per_week[first : last + 1].sum()),
                )
            )
    return sorted(found, key=lambda flurry: (flurry.first_week, flurry.user))


def find_dominating(log: SwfLog, share: float = DOMINATING_SHARE) -> list[DominatingUser]:
    """The users with at least this share of the jobs, busiest first."""
    numbers, jobs = np.unique(log.user, return_counts=True)
    return [
        DominatingUser(user=int(numbers[i]), jobs=int(jobs[i]), share_of_jobs=float(jobs[i] / len(log)))
        for i in np.argsort(-jobs, kind="stable")
        if jobs[i] >= share * len(log) and numbers[i] >= 0
    ]


def _weekly(log: SwfLog, found: list[Flurry]) -> dict[str, list[int]]:
    weeks = weeks_of(log)
    count = int(weeks.max()) + 1
    numbers, jobs = np.unique(log.user, return_counts=True)
    busiest = numbers[np.argsort(-jobs, kind="stable")].tolist()
    shown = list(dict.fromkeys([*(flurry.user for flurry in found), *busiest]))[:SHOWN_USERS]
    table = {str(user): np.bincount(weeks[log.user == user], minlength=count).tolist() for user in shown}
    others = ~np.isin(log.user, shown)
    return table | {"others": np.bincount(weeks[others], minlength=count).tolist()}
