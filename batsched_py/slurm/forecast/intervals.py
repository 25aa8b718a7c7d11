"""How wide intervals must be, so that they hold what they should.

The draws of a forecast leave out much that happens. So both halves of an interval are stretched, by what the
forecasts of some moments before would have needed, as far as their jobs have started since. A factor beside
that follows what is still missed: it grows with each start outside and shrinks a little with each inside. In
the long run as many are outside as should be, even if a log changes (Gibbs and Candes, *Adaptive conformal
inference under distribution shift*, 2021).
"""

from __future__ import annotations

import numpy as np

from batsched_py.workload.swf.log import Floats

#: An interval leaves out this share of the starts at each end.
TAIL = 0.1

#: The forecasts of so many moments tell what intervals need.
MOMENTS = 30

#: So many starts must be known before intervals are stretched at all.
ENOUGH = 30

#: By how much a start outside of an interval lets the factor grow, as a logarithm; and at most at once.
STEP, MOST = 0.005, 0.5

#: What a forecast of a start was, as columns: when it was made, when the job started, how far before and
#: behind the median that was, in halves of the interval, and whether it was before and behind the interval.
_COLUMNS = 6


class Stretch:
    """Stretches intervals, and learns from those that it has stretched."""

    def __init__(self) -> None:
        self.early = self.late = 1.0
        """By how much the halves are stretched now."""
        self._factors = np.zeros(2)
        """Logarithms."""
        self._known = self._open = np.empty((0, _COLUMNS))

    def intervals(
        self, moment: float, starts: Floats, early: Floats, median: Floats, late: Floats
    ) -> tuple[Floats, Floats]:
        """The intervals of jobs that wait at a moment, as they should be.

        The starts count from the moment, as all times; what they are is learnt when they are over.
        """
        self._learn(moment)
        down, up = _halves(early, median, late)
        with np.errstate(
            invalid="ignore"
        ):  # a start that was not drawn at all is infinite, and so is its half
            low = np.where(np.isfinite(median), np.maximum(median - self.early * down, 0.0), early)
            high = np.where(np.isfinite(late), median + self.late * up, np.inf)
            before, behind = (median - starts) / down, (starts - median) / up
        asked = np.column_stack(
            [
                np.full(len(starts), moment),
                moment + starts,
                before,
                behind,
                starts < low - 1.0,
                starts > high + 1.0,
            ]
        )
        self._open = np.concatenate([self._open, asked[np.isfinite(asked).all(axis=1)]])
        return low, high

    def _learn(self, moment: float) -> None:
        """Learn from the jobs that have started by a moment."""
        has_started = self._open[:, 1] <= moment
        new, self._open = self._open[has_started], self._open[~has_started]
        if not len(new):
            return
        missed = (new[:, 4:6] - TAIL).sum(axis=0)
        self._factors += np.clip(STEP * missed, -MOST, MOST)
        self._known = np.concatenate([self._known, new])
        latest = np.unique(self._known[:, 0])[-MOMENTS:]
        self._known = self._known[self._known[:, 0] >= latest[0]]
        if len(self._known) >= ENOUGH:
            needed = np.maximum(np.quantile(self._known[:, 2:4], 1 - TAIL, axis=0), 0.05)
            self.early, self.late = (needed * np.exp(self._factors)).tolist()


def _halves(early: Floats, median: Floats, late: Floats) -> tuple[Floats, Floats]:
    """The halves of intervals, each a little longer, for draws that all agree say too much."""
    little = 60.0 + 0.1 * median
    with np.errstate(invalid="ignore"):
        return median - early + little, late - median + little
