"""The waits of some jobs, as recorded and as simulated."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.correlation import spearman
from batsched_py.workload.swf.log import Floats

#: Two waits are near each other if they differ by no more than this many seconds,
NEAR_SECONDS = 600.0

#: or if the longer one is at most so many times the shorter one.
NEAR_FACTOR = 2.0


class Waits(Struct, frozen=True, kw_only=True):
    """What is compared of some jobs; times are in seconds."""

    jobs: int
    mean_recorded: float
    mean_simulated: float
    median_recorded: float
    median_simulated: float
    rank_correlation: float | None
    """Spearman's: 1 if jobs are in the same order by both waits; none where one of them does not vary."""
    near: float
    """The share of jobs whose two waits are near each other."""
    only_recorded: float
    """The share of jobs that waited for long in the log and hardly in the simulation."""
    only_simulated: float
    """The share of jobs for which it was the other way round."""

    @classmethod
    def of(cls, recorded: Floats, simulated: Floats) -> Waits:
        """The comparison of some waits, job by job; there must be one job at least."""
        short, long = np.minimum(recorded, simulated), np.maximum(recorded, simulated)
        near = (long - short <= NEAR_SECONDS) | (long <= NEAR_FACTOR * short)
        hardly = short <= long / 10
        return cls(
            jobs=len(recorded),
            mean_recorded=float(recorded.mean()),
            mean_simulated=float(simulated.mean()),
            median_recorded=float(np.median(recorded)),
            median_simulated=float(np.median(simulated)),
            rank_correlation=spearman(recorded, simulated),
            near=float(near.mean()),
            only_recorded=float((~near & hardly & (recorded > simulated)).mean()),
            only_simulated=float((~near & hardly & (recorded < simulated)).mean()),
        )

    @property
    def factor(self) -> float:
        """How many times the smaller of the two means the larger one is; 1 where both are hardly anything."""
        low, high = sorted((self.mean_recorded, self.mean_simulated))
        return 1.0 if high <= NEAR_SECONDS / 10 else high / low if low else float("inf")
