"""Means over time of what changes in steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mean_level(
    begins: ArrayLike, ends: ArrayLike, heights: ArrayLike, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean, between each two edges, of what is so high from each beginning to each end together."""
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    level = np.concatenate([heights, np.negative(heights)])[order].cumsum()
    times = times[order]
    area = np.concatenate([[0.0], (level[:-1] * np.diff(times)).cumsum()])
    return np.diff(np.interp(edges, times, area)) / np.diff(edges)
