"""Choosing jobs by the number of their user, queue and so on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.swf.log import Integers


def matching(numbers: Integers, keep: Sequence[int], drop: Sequence[int], change: str) -> NDArray[np.bool_]:
    """Which jobs have one of the numbers to keep, if any are given, and none of those to drop."""
    for number in (*keep, *drop):
        if number not in numbers:
            raise InputError(f"{change}: no job of the log has the number {number}")
    chosen = np.isin(numbers, keep) if keep else np.ones(len(numbers), dtype=bool)
    chosen &= ~np.isin(numbers, drop)
    if not chosen.any():
        raise InputError(f"{change}: no job is left")
    return chosen
