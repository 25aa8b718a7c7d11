"""How long the jobs of a bag run, given its size (stages 1 and 4 of Minh and Wolters).

The mean run time of a bag is drawn from how often the log has sizes and clusters of run times together,
separately for bags of one job, of two or three, and so on, as large bags are often made of other jobs than
small ones. It is

    mean + slope * (log(size) - centre) + deviation * standard normal

on the scale of the mixture, with the mean of the cluster; the slope says how run time grows with size. These
are given to bags in the order of hidden values (``hidden``), so that they persist as in the log,
whatever their distribution is. Around the mean the jobs of a bag differ (``spread``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import Bags
from batsched_py.workload.models.shapes import (
    LITTLE,
    PRIOR,
    RAKES,
    Shapes,
    bag_classes,
    shares_of,
    size_classes,
    spread_out,
)
from batsched_py.workload.swf.log import Floats, Integers

#: From at least so many run times in ascending order each bag takes the one at its place.
_FEWEST: Final = 32


def draw_run_times(
    shapes: Shapes, means: Floats, sizes: Integers, bags: Bags, random: np.random.Generator
) -> Floats:
    """The run time of each job, given the mean and the size of each bag, in whole seconds."""
    longest = np.repeat(np.array(shapes.longest)[size_classes(sizes)], bags.sizes)
    run_times = np.rint(spread_out(shapes.spread, means, bags, random))
    return np.clip(run_times, max(shapes.mixture.least, 1), longest)


def ranks_within(groups: Integers, values: Floats) -> Floats:
    """The place of each value among those of its group, as a share of their number, from 0 to below 1."""
    order = np.lexsort((values, groups))
    count = np.bincount(groups)
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values)) - np.repeat(np.cumsum(count) - count, count)
    return ranks / count[groups]


class Means:
    """Mean run times for bags of each class and size, to be given out in the order of hidden values."""

    def __init__(self, shapes: Shapes, bags: Bags, sizes: Integers, random: np.random.Generator) -> None:
        self._classes = bag_classes(bags.sizes)
        kinds, codes, counts = np.unique(
            np.stack([self._classes, sizes]), axis=1, return_inverse=True, return_counts=True
        )
        self._kinds = codes.ravel()
        self._of_kind = counts[self._kinds]
        drawn = np.maximum(counts, _FEWEST)
        self._drawn = drawn[self._kinds]
        self._first = (np.cumsum(drawn) - drawn)[self._kinds]
        jobs = np.bincount(self._kinds, bags.sizes)
        whose = np.repeat(np.arange(len(drawn)), drawn)
        clusters = _clusters(_raked(shapes, kinds[0], kinds[1], jobs), drawn, random)
        run_times = _run_times(shapes, clusters, kinds[1][whose], random)
        self._run_times = run_times[np.lexsort((run_times, whose))]

    def by(self, values: Floats) -> Floats:
        """The mean run time of each bag: the least one of its kind for the least value, and so on.

        The only bag of its kind takes one by its place among all bags of its class.
        """
        turns = ranks_within(self._kinds, values) + ranks_within(self._classes, values) / self._of_kind
        return self._run_times[self._first + (turns * self._drawn).astype(np.int64)]


def _run_times(shapes: Shapes, clusters: Integers, sizes: Integers, random: np.random.Generator) -> Floats:
    """A run time for each pair of a cluster and a size."""
    slope, centre, deviation = np.array(
        [(each.slope, each.centre, each.deviation) for each in shapes.clusters]
    )[clusters].T
    middle = np.array(shapes.mixture.means)[clusters] + slope * (np.log(sizes) - centre)
    values = middle + deviation * random.standard_normal(len(clusters))
    return shapes.mixture.from_scale(values, np.array(shapes.longest)[size_classes(sizes)])


def _clusters(shares: Floats, counts: Integers, random: np.random.Generator) -> Integers:
    """For each row of shares so many clusters, in proportion to them."""
    cumulated = np.cumsum(shares, axis=1)
    cumulated /= cumulated[:, -1:]
    chosen = [
        np.searchsorted(row, (np.arange(count) + random.random()) / count, side="right")
        for row, count in zip(cumulated, counts.tolist(), strict=True)
    ]
    return np.minimum(np.concatenate(chosen), shares.shape[1] - 1)


def _raked(shapes: Shapes, classes: Integers, sizes: Integers, jobs: NDArray[Any]) -> Floats:
    """The shares of clusters of run times for each class of bags and size, of which there are so many jobs.

    Where these come together in other numbers than in the log, the log's shares are raked (by proportional
    fitting) until the clusters of each class of bags, and those of each size, are the log's.
    """
    count = len(shapes.mixture.weights)
    known, codes = np.unique(np.concatenate([each.sizes for each in shapes.pairs]), return_inverse=True)
    table = np.zeros((len(shapes.pairs), len(known), count))
    bag_class = np.repeat(np.arange(len(shapes.pairs)), [len(each.sizes) for each in shapes.pairs])
    clusters = np.concatenate([each.clusters for each in shapes.pairs]).astype(np.int64)
    np.add.at(table, (bag_class, codes, clusters), np.concatenate([each.counts for each in shapes.pairs]))
    place = np.searchsorted(known, sizes)
    of_class, of_size = shares_of(table.sum(axis=1))[classes], shares_of(table.sum(axis=0))[place]
    shares = shares_of(table[classes, place] + PRIOR * of_size + LITTLE)
    for _ in range(RAKES):
        for groups, wanted in ((classes, of_class), (place, of_size)):
            found = np.zeros((int(groups.max()) + 1, count))
            np.add.at(found, groups, shares * jobs[:, None])
            total = np.bincount(groups, jobs)
            aim = np.where(
                wanted.sum(axis=1, keepdims=True) > 0, wanted * total[groups][:, None], found[groups]
            )
            shares = shares_of(shares * aim / np.maximum(found[groups], LITTLE) + LITTLE)
    return shares


_BINS_PER_OCTAVE: Final = 2
_HOUR: Final = 3600.0


class Requests(Struct):
    """How often which time was requested, by classes of run time; -1 where none was."""

    classes: list[int]
    times: list[float]
    counts: list[int]


def fit_requests(run_times: Floats, requested: Floats) -> Requests:
    """Learn from the jobs of a log."""
    known = np.where(requested > 0, requested, -1.0)
    rows, counts = np.unique(np.stack([_classes(run_times), known]), axis=1, return_counts=True)
    return Requests(rows[0].astype(np.int64).tolist(), rows[1].tolist(), counts.tolist())


def draw_requests(requests: Requests, run_times: Floats, random: np.random.Generator) -> Floats:
    """A requested time for each run time: one of its class that is not below it, else whole hours."""
    drawn = np.empty(len(run_times))
    classes = _classes(run_times)
    known, times, counts = (
        np.array(column) for column in (requests.classes, requests.times, requests.counts)
    )
    seen = np.unique(known)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        rows = known == seen[np.abs(seen - each).argmin()]
        drawn[members] = _at_least(times[rows], counts[rows], run_times[members], random)
    return drawn


def _at_least(times: Floats, counts: Integers, run_times: Floats, random: np.random.Generator) -> Floats:
    """For each run time one of the times not below it, or none at all, as often as they were seen."""
    unsaid = float(counts[times < 0].sum() / counts.sum())
    said, weights = times[times > 0], counts[times > 0]
    if not len(said):
        return np.full(len(run_times), -1.0)
    cumulated = np.concatenate([[0], np.cumsum(weights)])
    least = cumulated[np.searchsorted(said, run_times)]
    chosen = np.searchsorted(
        cumulated, least + random.random(len(run_times)) * (cumulated[-1] - least), side="right"
    )
    above = np.where(
        least < cumulated[-1], said[np.clip(chosen - 1, 0, len(said) - 1)], np.ceil(run_times / _HOUR) * _HOUR
    )
    return np.where(random.random(len(run_times)) < unsaid, -1.0, above)


def _classes(run_times: Floats) -> Integers:
    return np.floor(_BINS_PER_OCTAVE * np.log2(np.maximum(run_times, 1))).astype(np.int64)
