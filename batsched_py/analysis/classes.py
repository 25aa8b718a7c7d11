"""Classes of jobs: short or long by their run times, narrow or wide by their sizes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Up to how many hosts a job is narrow, and up to how many seconds it is short.
NARROW: Final = 8
SHORT: Final = 3600.0
#: The classes that this makes; in their numbers, a short job counts 2 and a wide one 1.
CLASSES: Final = ("long, narrow", "long, wide", "short, narrow", "short, wide")


def class_numbers(run_times: ArrayLike, sizes: ArrayLike) -> NDArray[np.int8]:
    """The place of each job's class in :data:`CLASSES`."""
    is_short: NDArray[Any] = np.asarray(run_times) <= SHORT
    is_wide: NDArray[Any] = np.asarray(sizes) > NARROW
    return 2 * is_short.astype(np.int8) + is_wide.astype(np.int8)
