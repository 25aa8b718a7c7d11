"""Burstiness as normalised entropy (Minh and Wolters, section V): 1 for an even spread, towards 0 for bursts.

For probabilities p over N cells it is ``-sum(p * log(p)) / log(N)``, which lies between 0, when everything is
in one cell, and 1, when all cells have the same.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.selection import requested
from batsched_py.workload.swf.log import Floats, SwfLog

#: The lengths of the intervals that time is divided into, in seconds, from a minute to a day.
SCALES: Final = {
    "1 min": 60.0,
    "5 min": 300.0,
    "15 min": 900.0,
    "30 min": 1800.0,
    "1 h": 3600.0,
    "4 h": 14400.0,
    "12 h": 43200.0,
    "1 d": 86400.0,
}


class Burstiness(Struct, frozen=True, kw_only=True):
    """How unevenly a log is spread over time and over sizes."""

    temporal: dict[str, float]
    """Normalised entropy of the arrivals, for each length of interval."""
    spatial: float
    """Normalised entropy of the run time over the sizes of jobs."""


def burstiness(log: SwfLog) -> Burstiness:
    """Describe the burstiness of a log."""
    return Burstiness(
        temporal={name: temporal_entropy(log.submit, scale) for name, scale in SCALES.items()},
        spatial=spatial_entropy(log),
    )


def temporal_entropy(submit: Floats, scale: float) -> float:
    """Normalised entropy of arrivals over intervals of ``scale`` seconds, from the first to the last."""
    return _normalised_entropy(np.bincount(((submit - submit.min()) // scale).astype(np.int64)))


def spatial_entropy(log: SwfLog) -> float:
    """Normalised entropy of the run time of all jobs that ask for i processors, i = 1 ... the largest."""
    return _normalised_entropy(np.bincount(requested(log), log.run_time)[1:])


def _normalised_entropy(amounts: NDArray[Any]) -> float:
    if len(amounts) < 2:
        return 0.0
    shares = amounts[amounts > 0] / amounts.sum()
    return float(-(shares * np.log(shares)).sum() / np.log(len(amounts)))
