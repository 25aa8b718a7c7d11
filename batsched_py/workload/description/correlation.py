"""Do large jobs run longer? Correlation of run time and size."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.selection import requested
from batsched_py.workload.swf.log import Floats, SwfLog


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
