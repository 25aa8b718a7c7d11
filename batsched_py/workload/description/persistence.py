"""How long what jobs are like lasts: memory in the order of submissions, and in what days bring."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.load import daily_work, variation
from batsched_py.workload.description.selection import requested
from batsched_py.workload.swf.log import Floats, SwfLog

LAGS: Final = (1, 10, 100)


class Persistence(Struct, frozen=True, kw_only=True):
    """How alike jobs are that follow each other, and how much the work of days varies."""

    run_times: dict[str, float | None]
    """The autocorrelation of the logarithms of run times, so many jobs apart."""
    daily_work: float
    """The coefficient of variation of the work that is submitted on each day."""


def persistence(log: SwfLog) -> Persistence:
    """Describe the persistence of a log whose jobs all ran."""
    logarithms = np.log(log.run_time)
    return Persistence(
        run_times={str(lag): autocorrelation(logarithms, lag) for lag in LAGS},
        daily_work=variation(daily_work(log.submit, log.run_time * requested(log))),
    )


def autocorrelation(values: Floats, lag: int) -> float | None:
    """The correlation of values with those so many places later, if there are any and they vary."""
    if len(values) <= lag or np.ptp(values) == 0:
        return None
    around = values - values.mean()
    return float(np.mean(around[lag:] * around[:-lag]) / np.mean(around**2))
