"""Distributions of what a log records of each job: moments, percentiles, and the most frequent values."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.swf.log import Floats, Integers, SwfLog

COMPLETED = 1


def characterised(log: SwfLog) -> SwfLog:
    """The jobs that completed, ran for some time, and asked for processors.

    Minh and Wolters take jobs that finished successfully only, as the run time of the others is that of a
    failure or of an impatient user. A log that records no job as completed is taken whole.
    """
    usable = (log.run_time > 0) & (requested(log) > 0)
    completed = usable & (log.status == COMPLETED)
    return log.select(completed if completed.any() else usable)


def requested(log: SwfLog) -> Integers:
    """The processors that each job asked for, else those it was allocated."""
    return np.where(log.requested_processors > 0, log.requested_processors, log.allocated_processors)


SHOWN_VALUES: Final = 10


class Distribution(Struct, frozen=True, kw_only=True):
    """How some values are distributed."""

    count: int
    mean: float
    standard_deviation: float
    percentiles: list[float]
    """The 0th, 1st, ... 100th percentile: the least value, ... the median at 50, ... the largest."""
    frequent: dict[str, float]
    """The most frequent values, and the share of each."""

    @property
    def median(self) -> float:
        """The value in the middle."""
        return self.percentiles[50]


class Distributions(Struct, frozen=True, kw_only=True):
    """The distributions of a log."""

    run_time: Distribution
    size: Distribution
    """Processors that jobs asked for."""
    interarrival: Distribution | None
    requested_time: Distribution | None
    accuracy: Distribution | None
    """Run time over requested time; above 1 where a job ran for longer than it said it would."""
    powers_of_two: float
    """Share of the parallel jobs whose size is a power of two."""
    serial: float
    """Share of the jobs that asked for one processor."""


def distributions(log: SwfLog) -> Distributions:
    """The distributions of a log that has at least one job with a run time and a size."""
    sizes = requested(log)
    parallel = sizes[sizes > 1]
    estimated = log.select(log.requested_time > 0)
    run_time = distribution(log.run_time)
    size = distribution(sizes[sizes > 0])
    assert run_time is not None and size is not None
    return Distributions(
        run_time=run_time,
        size=size,
        interarrival=distribution(np.diff(log.submit)),
        requested_time=distribution(estimated.requested_time),
        accuracy=distribution(estimated.run_time / estimated.requested_time),
        powers_of_two=float(np.mean(parallel & (parallel - 1) == 0)) if len(parallel) else 0.0,
        serial=float(np.mean(sizes == 1)),
    )


def distribution(values: NDArray[Any]) -> Distribution | None:
    """The distribution of some values, if there are any."""
    if not len(values):
        return None
    distinct, counts = np.unique(values, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:SHOWN_VALUES]
    return Distribution(
        count=len(values),
        mean=float(values.mean()),
        standard_deviation=float(values.std()),
        percentiles=np.percentile(values, np.arange(101)).tolist(),
        frequent={f"{distinct[i]:g}": float(counts[i] / len(values)) for i in most if counts[i] > 1},
    )


def kolmogorov_smirnov(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The largest distance between the cumulative distributions of two samples.

    >>> kolmogorov_smirnov(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6]))
    0.5
    """
    first, second = np.sort(first), np.sort(second)
    values = np.concatenate([first, second])
    below_first = np.searchsorted(first, values, side="right") / len(first)
    below_second = np.searchsorted(second, values, side="right") / len(second)
    return float(np.abs(below_first - below_second).max())


class SizeClass(Struct, frozen=True, kw_only=True):
    """Jobs of about the same size."""

    size_from: int
    size_to: int
    share_of_jobs: float
    mean_run_time: float
    median_run_time: float


class Correlation(Struct, frozen=True, kw_only=True):
    """How run time and size go together."""

    pearson: float | None
    """Pearson's coefficient of run time and requested processors; none where one of them does not vary."""
    spearman: float | None
    """That of their ranks, which no outlier can dominate."""
    by_size: list[SizeClass]
    """Classes of sizes from one power of two to below the next."""


def correlation(log: SwfLog) -> Correlation:
    """Describe how run time and size of a log's jobs go together."""
    sizes = requested(log)
    classes = np.floor(np.log2(sizes)).astype(np.int64)
    return Correlation(
        pearson=pearson(log.run_time, sizes),
        spearman=spearman(log.run_time, sizes),
        by_size=[
            SizeClass(
                size_from=2**size_class,
                size_to=2 ** (size_class + 1) - 1,
                share_of_jobs=float(np.mean(classes == size_class)),
                mean_run_time=float(log.run_time[classes == size_class].mean()),
                median_run_time=float(np.median(log.run_time[classes == size_class])),
            )
            for size_class in np.unique(classes).tolist()
        ],
    )


def pearson(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Pearson's coefficient of correlation, unless one of the two does not vary."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Spearman's coefficient, which is Pearson's of the ranks, unless one of the two does not vary."""
    return pearson(_ranks(first), _ranks(second))


def _ranks(values: NDArray[Any]) -> Floats:
    """The rank of each value; equal ones share the mean of theirs."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]
