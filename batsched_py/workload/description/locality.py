"""Locality of sampling: at any time the jobs are more alike than those of the whole log (Feitelson 2007).

For each week the distribution of an attribute is compared with that of the whole log by their total variation
distance, half the sum of the absolute differences of the shares of each bin: 0 when a week is like the whole
log, 1 when they have nothing in common. Weeks of few jobs differ from the whole by chance, too. So the same
is computed with the jobs in a random order, and the ratio of the two is what is left.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import bag_keys
from batsched_py.workload.description.selection import requested
from batsched_py.workload.swf.log import Integers, SwfLog
from batsched_py.workload.wall_clock import WEEK

_BINS: Final = 24
_SEED: Final = 0


class AttributeLocality(Struct, frozen=True, kw_only=True):
    """How far weeks are from the whole log in one attribute."""

    distance: float
    """Mean over weeks, weighted by their jobs, of the total variation distance to the whole log."""
    by_chance: float
    """The same with the jobs in a random order."""


class Locality(Struct, frozen=True, kw_only=True):
    """How much jobs are like those around them."""

    run_time: AttributeLocality
    size: AttributeLocality
    user: AttributeLocality
    repetition: float | None
    """Share of the jobs that agree in all attributes of a bag with the same user's previous job."""


def locality(log: SwfLog) -> Locality:
    """Describe the locality of a log."""
    weeks = np.unique((log.submit - log.submit.min()) // WEEK, return_inverse=True)[1]
    return Locality(
        run_time=_locality(_binned(log.run_time), weeks),
        size=_locality(_binned(requested(log)), weeks),
        user=_locality(np.unique(log.user, return_inverse=True)[1], weeks),
        repetition=_repetition(log),
    )


def _binned(values: NDArray[Any]) -> Integers:
    """The bin of each value; bins have about the same number of values, and equal values share one."""
    borders = np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS))
    return np.searchsorted(borders, values, side="left")


def _locality(bins: Integers, weeks: Integers) -> AttributeLocality:
    shuffled = np.random.default_rng(_SEED).permutation(bins)
    return AttributeLocality(distance=_distance(bins, weeks), by_chance=_distance(shuffled, weeks))


def _distance(bins: Integers, weeks: Integers) -> float:
    count = int(bins.max()) + 1
    table = np.bincount(weeks * count + bins, minlength=(int(weeks.max()) + 1) * count).reshape(-1, count)
    jobs = table.sum(axis=1)
    whole = table.sum(axis=0) / table.sum()
    distances = np.abs(table / jobs[:, None] - whole).sum(axis=1) / 2
    return float(np.average(distances, weights=jobs))


def _repetition(log: SwfLog) -> float | None:
    order = np.argsort(log.user, kind="stable")
    same_user = np.diff(log.user[order]) == 0
    keys = bag_keys(log)[order]
    return float(np.mean((keys[1:] == keys[:-1])[same_user])) if same_user.any() else None
