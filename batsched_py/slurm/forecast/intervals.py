"""How wide intervals must be, so that they hold what they should.

The draws of a forecast leave out much that happens. So both halves of an interval are stretched, by what the
forecasts of some moments before would have needed. Jobs that have not started yet count, too: theirs needed
more than what would have held a start by now (Kaplan and Meier, *Nonparametric estimation from incomplete
observations*, 1958). A factor beside that follows what is still missed: it grows with each start outside and
shrinks a little with each inside. In the long run as many are outside as should be, even if a log changes
(Gibbs and Candes, *Adaptive conformal inference under distribution shift*, 2021).
"""

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.swf.log import Floats

#: An interval leaves out this share of the starts at each end.
TAIL = 0.1

#: The forecasts of so many moments tell what intervals need.
MOMENTS = 30

#: So many starts must be known before intervals are stretched at all.
ENOUGH = 30

#: By how much a start outside of an interval lets the factor grow, as a logarithm; and at most at once.
STEP, MOST = 0.005, 0.5

#: Intervals are at least so long to either side of their middle, in halves.
LEAST = 0.05

#: What a forecast of a start was, as columns: when it was made, the start, the median, the halves of the
#: interval, and what it began and ended with when it was stretched. Times after the first count from it.
_COLUMNS = 7


class Stretch:
    """Stretches intervals, and learns from those that it has stretched."""

    def __init__(self) -> None:
        self.early, self.late = -1.0, 1.0
        """Where intervals begin and end now: in halves, from the medians that were drawn."""
        self.starts = 0
        """How many starts are known of forecasts that were made."""
        self._factors = np.zeros(2)
        """Logarithms."""
        self._known = self._open = np.empty((0, _COLUMNS))

    @property
    def is_proven(self) -> bool:
        """Whether enough starts are known."""
        return self.starts >= ENOUGH

    def intervals(
        self, moment: float, starts: Floats, early: Floats, median: Floats, late: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """The intervals of jobs that wait at a moment, as they should be, and medians, which lie in them.

        The starts count from the moment, as all times; what they are is learnt when they are over.
        """
        self._learn(moment)
        halves = _halves(early, median, late)
        with np.errstate(invalid="ignore"):  # a start that was not drawn at all is infinite, as is its half
            low, high = (
                np.maximum(median + np.where(part < 0, halves[0], halves[1]) * part, 0.0)
                for part in (self.early, self.late)
            )
            low = np.where(np.isfinite(median), low, early)
            high = np.where(np.isfinite(late), high, np.inf)
        asked = np.column_stack([np.full(len(starts), moment), starts, median, *halves, low, high])
        self._open = np.concatenate([self._open, asked[np.isfinite(asked[:, 2:5]).all(axis=1)]])
        return low, np.clip(median, low, high), high

    def _learn(self, moment: float) -> None:
        """Learn from the jobs that have started by a moment, and from those that have not."""
        has_started = self._open[:, 0] + self._open[:, 1] <= moment
        new, self._open = self._open[has_started], self._open[~has_started]
        if not len(new):
            return
        self.starts += len(new)
        _, start, _, _, _, low, high = new.T
        missed = np.array([(start < low - 1.0).mean(), (start > high + 1.0).mean()]) - TAIL
        self._factors += np.clip(STEP * len(new) * missed, -MOST, MOST)
        self._known = np.concatenate([self._known, new])
        latest = np.unique(self._known[:, 0])[-MOMENTS:]
        self._known = self._known[self._known[:, 0] >= latest[0]]
        if len(self._known) >= ENOUGH:
            still = self._open[self._open[:, 0] >= latest[0]]
            at, start, median, down, up, _, _ = np.concatenate([self._known, still]).T
            is_known = np.arange(len(at)) < len(self._known)
            off = np.where(is_known, start, moment - at) - median
            parts = off / np.where(off < 0, down, up)
            low, middle, high = (least(parts, is_known, part) for part in (TAIL, 0.5, 1 - TAIL))
            low, high = min(low, middle - LEAST), max(high, middle + LEAST)
            wider = np.exp(self._factors)
            self.early = middle - (middle - low) * float(wider[0])
            self.late = middle + (high - middle) * float(wider[1])


def least(values: Floats, is_known: NDArray[np.bool_], part: float) -> float:
    """The value that such a part of all do not exceed; of some, it is only known what they exceed.

    >>> known = np.array([True, True, True, False])
    >>> least(np.array([1.0, 2.0, 3.0, 1.5]), known, 0.5), least(np.array([1.0, 2.0, 3.0, 4.0]), known, 0.9)
    (2.0, 4.0)
    """
    order = np.lexsort((~is_known, values))
    ordered, ends = values[order], is_known[order]
    left = np.cumprod(1.0 - ends / np.arange(len(ordered), 0, -1))
    reached = np.flatnonzero(left <= 1.0 - part + 1e-9)
    return float(ordered[reached[0]] if len(reached) else ordered[-1])


def _halves(early: Floats, median: Floats, late: Floats) -> tuple[Floats, Floats]:
    """The halves of intervals, each a little longer, for draws that all agree say too much."""
    little = 60.0 + 0.1 * median
    with np.errstate(invalid="ignore"):
        return median - early + little, late - median + little
