"""Bags of tasks: jobs that a user submits in one go and that look alike (Minh and Wolters, definition II-C).

A bag is a longest run of jobs of which each follows the one before it within ``delta`` seconds, and which
agree in six attributes: user, group, queue, executable, requested time and requested processors.
*Contiguous* bags are runs of the whole log, as in the paper, so that another user's job in between ends
them. *Per key* they are runs of the jobs with the same attributes, regardless of other jobs in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.distributions import Distribution, distribution, requested
from batsched_py.workload.swf.log import Floats, Integers, SwfLog

Indices = NDArray[np.intp]
Column = TypeVar("Column", Floats, Integers)

#: Nearly 90 % of the times between similar jobs were shorter in the logs of the paper.
DELTA: Final = 100.0
#: The six attributes that the jobs of a bag share.
ATTRIBUTES: Final = ("user", "group", "queue", "executable", "requested_time", "requested_processors")
#: Classes of bags by their mean run time, in seconds, as in the paper's Table III.
RUN_TIME_CLASSES: Final = (0.0, 1e2, 1e3, 1e4, 1e5, 1e6)
SHORT_DURATION: Final = 1000.0


@dataclass(frozen=True, eq=False)
class Bags:
    """The bags of a log; bags of one job included, as in the definition."""

    order: Indices
    """The positions of the jobs in the log, bag after bag."""
    sizes: Integers
    """Jobs of each bag."""

    @cached_property
    def starts(self) -> Indices:
        """Where each bag begins in ``order``."""
        return np.cumsum(self.sizes) - self.sizes

    def means(self, values: Floats) -> Floats:
        """The mean over each bag of something that each job of the log has."""
        return np.add.reduceat(values[self.order], self.starts) / self.sizes

    def deviations(self, values: Floats) -> Floats:
        """The standard deviation within each bag."""
        around = values[self.order] - np.repeat(self.means(values), self.sizes)
        return np.sqrt(np.add.reduceat(around**2, self.starts) / self.sizes)

    def first(self, values: Column) -> Column:
        """The value of the first job of each bag."""
        return values[self.order[self.starts]]

    def last(self, values: Floats) -> Floats:
        """The value of the last job of each bag."""
        return values[self.order[self.starts + self.sizes - 1]]


class BagClass(Struct, frozen=True, kw_only=True):
    """Bags whose mean run time lies between two bounds."""

    run_time_from: float
    run_time_to: float
    bags: int
    variability: float | None
    """The mean of the standard deviations of the run times within each bag, in seconds."""


class BagStatistics(Struct, frozen=True, kw_only=True):
    """What the bags of two jobs or more are like."""

    share_of_jobs: float
    """Share of all jobs that belong to such a bag."""
    bags: int
    sizes: Distribution | None
    size_classes: list[int]
    """How many bags have 1 job, 2 or 3, 4 to 7, and so on."""
    zipf_exponent: float
    """Of the Zipf distribution that fits the sizes of all bags best, those of one job included."""
    run_times: Distribution | None
    """The run time of a bag is the mean of its jobs'."""
    variability: list[BagClass]
    submission_durations: Distribution | None
    """From the first to the last submission of a bag."""
    share_of_short_submissions: float | None
    """Share of the bags that are submitted within 1000 s."""


class BagsOfTasks(Struct, frozen=True, kw_only=True):
    """The bags of a log by both definitions."""

    delta: float
    share_within_delta: float | None
    """Share of the times between successive similar jobs that are not longer than ``delta``."""
    contiguous: BagStatistics
    per_key: BagStatistics


def bags_of_tasks(log: SwfLog, delta: float = DELTA) -> BagsOfTasks:
    """Describe the bags of a log."""
    between = repeat_gaps(log)
    return BagsOfTasks(
        delta=delta,
        share_within_delta=float(np.mean(between <= delta)) if len(between) else None,
        contiguous=bag_statistics(log, contiguous_bags(log, delta)),
        per_key=bag_statistics(log, per_key_bags(log, delta)),
    )


def repeat_gaps(log: SwfLog) -> Floats:
    """The times between successive jobs that agree in the six attributes."""
    keys = bag_keys(log)
    return np.diff(log.submit)[keys[1:] == keys[:-1]]


def bag_keys(log: SwfLog) -> Integers:
    """A number for each combination of the six attributes."""
    keys = np.zeros(len(log), dtype=np.int64)
    for name in ATTRIBUTES:
        column = requested(log) if name == "requested_processors" else getattr(log, name)
        values, codes = np.unique(column, return_inverse=True)
        _, keys = np.unique(keys * len(values) + codes, return_inverse=True)
    return keys


def contiguous_bags(log: SwfLog, delta: float = DELTA) -> Bags:
    """The bags that are runs of the whole log."""
    return _runs(log, bag_keys(log), np.arange(len(log)), delta)


def per_key_bags(log: SwfLog, delta: float = DELTA) -> Bags:
    """The bags that are runs of the jobs with the same attributes."""
    keys = bag_keys(log)
    return _runs(log, keys, np.argsort(keys, kind="stable"), delta)


def _runs(log: SwfLog, keys: Integers, order: Indices, delta: float) -> Bags:
    keys, submit = keys[order], log.submit[order]
    ends = (keys[1:] != keys[:-1]) | (np.diff(submit) > delta)
    borders = np.concatenate([[0], np.flatnonzero(ends) + 1, [len(order)]])
    return Bags(order, np.diff(borders))


def bag_statistics(log: SwfLog, bags: Bags) -> BagStatistics:
    """Describe some bags of a log."""
    large = bags.sizes > 1
    run_times = bags.means(log.run_time)[large]
    deviations = bags.deviations(log.run_time)[large]
    durations = (bags.last(log.submit) - bags.first(log.submit))[large]
    return BagStatistics(
        share_of_jobs=float(bags.sizes[large].sum() / bags.sizes.sum()),
        bags=int(large.sum()),
        sizes=distribution(bags.sizes[large]),
        size_classes=np.bincount(np.floor(np.log2(bags.sizes)).astype(np.int64)).tolist(),
        zipf_exponent=zipf_exponent(bags.sizes),
        run_times=distribution(run_times),
        variability=_variability(run_times, deviations),
        submission_durations=distribution(durations),
        share_of_short_submissions=float(np.mean(durations < SHORT_DURATION)) if large.any() else None,
    )


def _variability(run_times: Floats, deviations: Floats) -> list[BagClass]:
    classes = []
    for low, high in pairwise(RUN_TIME_CLASSES):
        inside = (run_times >= low) & (run_times < high)
        mean = float(deviations[inside].mean()) if inside.any() else None
        classes.append(
            BagClass(run_time_from=low, run_time_to=high, bags=int(inside.sum()), variability=mean)
        )
    return classes


def zipf_exponent(sizes: Integers) -> float:
    """The exponent a of largest likelihood when a size s has a probability in proportion to ``s ** -a``.

    Sizes go up to the largest one seen.
    """
    logarithms = np.log(np.arange(1, sizes.max() + 1))
    mean = float(np.log(sizes).mean())
    exponents = np.arange(0.0, 6.0, 0.01)
    costs = [exponent * mean + np.log(np.exp(-exponent * logarithms).sum()) for exponent in exponents]
    return float(exponents[int(np.argmin(costs))])
