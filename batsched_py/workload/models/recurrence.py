"""What comes again: who submits next, and what, is often what came some steps before.

The discrete autoregressive process of Jacobs and Lewis (1978): each label of a series is that of d steps
before, with a probability for each d, else a new one. It has the distribution of the new ones, whatever the
probabilities are, and how often labels d steps apart are the same follows from them as in any autoregressive
process (the equations of Yule and Walker). So the probabilities are those with which labels recur as often as
in the log, from one step to thousands: users who stay for a session, return the next day, and leave after
some months.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.swf.log import Floats, Integers

#: Classes of steps: 1, 2, 3, 4, 5 to 8, 9 to 16, ... Each begins after the end of the one before.
_ENDS: Final = (0, 1, 2, 3, 4, *(2**power for power in range(3, 14)))
_LAGS: Final = 80
#: From how many steps of a class its mean is computed.
_SAMPLES: Final = 16
#: Fewer labels tell nothing.
_FEWEST: Final = 8
_LITTLE: Final = 1e-9


class Recurrence(Struct):
    """Which of the labels before comes again, if one does."""

    new: float
    """Share of the labels that are new."""
    last: list[float]
    """For each situation, how likely it is the last one."""
    others: list[float]
    """If it is not, how likely it is that of 2 steps before, 3, 4, 5 to 8, 9 to 16, ..."""


def fit_recurrence(
    labels: Integers,
    series: Integers,
    situations: Integers,
    count: int,
    by_chance: float = 0.0,
) -> Recurrence:
    """Learn from labels that belong to one or more series, in order of time.

    Each label has one of ``count`` situations. ``by_chance`` is how likely two new labels are the same.
    """
    if len(labels) < _FEWEST or by_chance == 1:
        return Recurrence(1.0, [0.0] * count, [1.0] + [0.0] * (len(_ENDS) - 3))
    order = np.argsort(series, kind="stable")
    labels, series, situations = labels[order], series[order], situations[order]
    longest = max(min(_ENDS[-1], len(labels) // 4), 1)
    lags = np.unique(np.round(np.geomspace(1, longest, _LAGS)).astype(np.int64))
    same = np.array([_same(labels, series, lag) for lag in lags.tolist()])
    known = np.clip((same - by_chance) / (1 - by_chance), 0, 1)
    columns = np.array([_recurring(lags, known, end, next_end) for end, next_end in pairwise(_ENDS)])
    chances = _least_squares(columns.T, known)
    new = float(np.clip(1 - chances.sum(), 0.001, 1))
    others = chances[1:] / max(chances[1:].sum(), _LITTLE)
    by_others = float(others @ columns[1:, 0])
    follows = series[1:] == series[:-1]
    last = []
    for situation in range(count):
        inside = follows & (situations[1:] == situation)
        again = float(np.mean((labels[1:] == labels[:-1])[inside])) if inside.any() else 0.0
        again = (again - by_chance) / (1 - by_chance) / (1 - new + _LITTLE)
        last.append(float(np.clip((again - by_others) / (1 - by_others + _LITTLE), 0, 1)))
    return Recurrence(round(new, 5), np.round(last, 5).tolist(), np.round(others, 5).tolist())


def draw_steps(recurrence: Recurrence, situations: Integers, random: np.random.Generator) -> Integers:
    """For each label, how many steps before the one is that it repeats, or 0 if it is a new one."""
    count = len(situations)
    ends = np.array(_ENDS[1:])
    cumulated = np.cumsum(recurrence.others)
    classes = np.searchsorted(cumulated, random.random(count) * cumulated[-1], side="right")
    classes = np.minimum(classes, len(ends) - 2)
    steps = ends[classes] + 1 + (random.random(count) * np.diff(ends)[classes]).astype(np.int64)
    steps = np.where(random.random(count) < np.array(recurrence.last)[situations], 1, steps)
    return np.where(random.random(count) < recurrence.new, 0, steps)


def _same(labels: Integers, series: Integers, lag: int) -> float:
    """How likely labels of a series that are so many steps apart are the same."""
    inside = series[lag:] == series[:-lag]
    return float(np.mean((labels[lag:] == labels[:-lag])[inside])) if inside.any() else 0.0


def _recurring(lags: Integers, known: Floats, end: int, next_end: int) -> Floats:
    """How much labels recur at each lag from a label that is some steps before: the mean over a class."""
    steps = np.unique(np.round(np.linspace(end + 1, next_end, _SAMPLES)))
    between = np.abs(lags - steps[:, None])
    found = np.interp(np.log(np.maximum(between, 1)), np.log(lags), known)
    mean: Floats = np.where(between == 0, 1.0, found).mean(axis=0)
    return mean


def _least_squares(matrix: Floats, wanted: Floats) -> Floats:
    """The solution of least squares that has no negative number."""
    from scipy.optimize import nnls  # type: ignore[import-untyped]

    solution: Floats = nnls(matrix, wanted)[0]
    return solution
