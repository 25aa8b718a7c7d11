"""How the run times of the jobs of a bag differ from each other.

Most bags are of jobs that run equally long; in some a few jobs end early or go on for much longer. So each
bag draws how widely its run times spread, and each of its jobs how many times that it deviates, both from
what the log shows for bags of about the same mean run time, and of two or three jobs or more.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.bags import Bags
from batsched_py.workload.swf.log import Floats, Integers

_DECADES: Final = 6
_LARGE: Final = 4
_QUANTILES: Final = 48


class Spread(Struct):
    """For each class of bags, quantiles of how widely their run times spread, and of how jobs deviate."""

    widths: list[list[float]]
    """The mean of the absolute differences of logarithms to that of the mean."""
    deviations: list[list[float]]
    """The difference of a job's logarithm to that of the mean, over the width of its bag."""


def fit_spread(run_times: Floats, bags: Bags) -> Spread:
    """Learn from the bags of two jobs or more."""
    means = bags.means(run_times)
    around = np.log(run_times) - np.repeat(np.log(means), bags.sizes)
    widths = np.add.reduceat(np.abs(around), bags.starts) / bags.sizes
    classes = _classes(means, bags.sizes)
    of_jobs, width_of_jobs = np.repeat(classes, bags.sizes), np.repeat(widths, bags.sizes)
    wide = width_of_jobs > 0
    return Spread(
        widths=[_quantiles(widths[classes == each]) for each in range(2 * _DECADES)],
        deviations=[
            _quantiles((around[wide] / width_of_jobs[wide])[of_jobs[wide] == each])
            for each in range(2 * _DECADES)
        ],
    )


def spread_out(spread: Spread, means: Floats, bags: Bags, random: np.random.Generator) -> Floats:
    """The run time of each job, given the mean of its bag."""
    classes = _classes(means, bags.sizes)
    of_jobs = np.repeat(classes, bags.sizes)
    around = np.zeros(len(of_jobs))
    for each in np.unique(classes[classes >= 0]).tolist():
        bag, job = classes == each, of_jobs == each
        widths = _drawn(spread.widths[each], int(bag.sum()), random)
        deviations = _drawn(spread.deviations[each], int(job.sum()), random)
        around[job] = np.repeat(widths, bags.sizes[bag]) * deviations
    factors = np.exp(around)
    run_times: Floats = factors * np.repeat(means / bags.means(factors), bags.sizes)
    return run_times


def _classes(means: Floats, sizes: Integers) -> Integers:
    """The class of each bag, or -1 if it has one job only."""
    decades = np.minimum(np.log10(np.maximum(means, 1)).astype(np.int64), _DECADES - 1)
    return np.where(sizes > 1, decades + _DECADES * (sizes >= _LARGE), -1)


def _quantiles(values: Floats) -> list[float]:
    if not len(values):
        return []
    found = np.quantile(values, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.round(found, 5).tolist()


def _drawn(quantiles: list[float], count: int, random: np.random.Generator) -> Floats:
    """So many values, spread evenly over the quantiles; without any, all are 0."""
    if not quantiles:
        return np.zeros(count)
    ranks = random.permutation((np.arange(count) + random.random(count)) / count)
    return np.interp(ranks * len(quantiles) - 0.5, np.arange(len(quantiles)), quantiles)
