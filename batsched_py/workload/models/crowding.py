"""What people submit on busy days: jobs that the machine can still take.

In a log the work of a day varies less than it would if its jobs had come in any order: a day with many jobs
has smaller and shorter ones. Users see the queue, and the machine does no more than it can (Feitelson calls
this self-regulation). So programs of days that ask for more processors than the days around them exchange
sizes with programs of other days, until the processors of days vary about as in the log at most. Then bags of
days with more work exchange run times with bags of days with less, until the work of days varies as it does
in the log. Without the first step the second has more or less to do in each generated log, and as it makes
the run times of a day alike, their autocorrelation would differ much between seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from batsched_py.workload.description.load import daily_work, variation
from batsched_py.workload.swf.log import Floats, Integers
from batsched_py.workload.wall_clock import DAY

_MOST_STEPS: Final = 12
#: In so many steps days are compared with those around them less and less.
_STEPS_OF_WEEKS: Final = 7
#: How close to the wanted variation is close enough.
_CLOSE: Final = 1.2
#: How often the last step is halved, so as not to go farther than needed.
_HALVINGS: Final = 3
#: By how much the hidden values of a day with e times the mean work fall in a step, at most.
_LARGEST_STEP: Final = 0.3
#: Days with less than this share of the mean work count as if they had it; work varies at least so much.
_LEAST: Final = 0.1


def make_room(
    values: Floats,
    whose: Integers,
    starts: Floats,
    wanted: float,
    weigh: Callable[[Floats], Floats | Integers],
) -> Floats:
    """The hidden values, lower on days with much, until what days bring varies as wanted.

    Each bag starts at some time and has one of the values: its own, or that of its program. ``weigh`` tells
    how much each bag brings, given the hidden values.
    """
    days = ((starts - starts.min()) // DAY).astype(np.int64)
    bags = np.bincount(whose)
    limit = _CLOSE * max(wanted, _LEAST)
    before = values
    for step in range(_MOST_STEPS):
        brought = daily_work(starts, weigh(values))
        found = variation(brought)
        if found <= limit:
            break
        fullness = np.log(np.maximum(brought / brought.mean(), _LEAST))
        fullness -= max(1 - step / _STEPS_OF_WEEKS, 0) * _around(fullness)
        size = min((_CLOSE * found / limit - 1) / 2, _LARGEST_STEP)
        before, values = values, values - size * np.bincount(whose, fullness[days]) / bags
    for _ in range(_HALVINGS if before is not values else 0):
        middle = (before + values) / 2
        if variation(daily_work(starts, weigh(middle))) <= limit:
            values = middle
        else:
            before = middle
    return values


def fullness_of_days(starts: Floats, processors: Integers) -> Floats:
    """For each bag, how much the bags of its day ask for: a logarithm, with the mean 0 and the variance 1."""
    days = ((starts - starts.min()) // DAY).astype(np.int64)
    full = np.log(daily_work(starts, processors)[days])
    return (full - full.mean()) / max(float(full.std()), 1e-9)


def _around(values: Floats) -> Floats:
    """For each day the mean of the week around it."""
    week = np.ones(7)
    means: Floats = np.convolve(values, week)[3:-3] / np.convolve(np.ones(len(values)), week)[3:-3]
    return means
