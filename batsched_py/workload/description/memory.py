"""Long-range dependence of the arrivals: how long the effect of a busy time lasts."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.description.hurst import Hurst, Series, hurst
from batsched_py.workload.swf.log import Floats
from batsched_py.workload.wall_clock import WEEK

#: Arrivals are counted in intervals of this many seconds.
INTERVAL: Final = 900.0
_FEWEST_WEEKS: Final = 4


def arrival_hurst(submit: Floats) -> Hurst | None:
    """The Hurst parameter of the number of arrivals in each quarter of an hour, without the weekly cycle.

    A cycle looks like memory to some estimators. So the mean of each quarter of an hour of the week is
    subtracted first, unless the log is shorter than four weeks, which do not show a cycle.
    """
    return hurst(_without_cycle(np.bincount(((submit - submit.min()) // INTERVAL).astype(np.int64))))


def _without_cycle(counts: NDArray[np.int64]) -> Series:
    period = int(WEEK / INTERVAL)
    if len(counts) < _FEWEST_WEEKS * period:
        return counts.astype(np.float64)
    place = np.arange(len(counts)) % period
    means = np.bincount(place, counts) / np.bincount(place)
    return counts - means[place]
