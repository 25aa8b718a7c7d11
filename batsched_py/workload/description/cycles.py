"""Daily and weekly cycle: when people submit, on the wall clock where the machine stood."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.wall_clock import HOUR, start_of, wall_clock

HOURS: Final = 7 * 24


class Cycles(Struct, frozen=True, kw_only=True):
    """Submissions by the hour of the week."""

    known: bool
    """Whether the log says when it began; otherwise it is taken to begin on a Monday at midnight."""
    by_hour_of_week: list[int]
    """Jobs submitted in each hour of the week, from Monday 0:00, all weeks taken together."""
    working_hours: float
    """Share of the jobs submitted from Monday to Friday, between 8:00 and 18:00; these are 30 % of a week."""
    weekend: float
    """Share of the jobs submitted on Saturdays and Sundays, 29 % of a week."""


def cycles(log: SwfLog) -> Cycles:
    """Describe when the jobs of a log are submitted."""
    hours = (wall_clock(log, log.submit) // HOUR).astype(np.int64) % HOURS
    counts = np.bincount(hours, minlength=HOURS)
    by_day = counts.reshape(7, 24)
    return Cycles(
        known=start_of(log) is not None,
        by_hour_of_week=counts.tolist(),
        working_hours=float(by_day[:5, 8:18].sum() / counts.sum()),
        weekend=float(by_day[5:].sum() / counts.sum()),
    )
