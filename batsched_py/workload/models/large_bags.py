"""The largest bags of a log: few of them, but they hold many jobs and fill the queue at once.

Arrivals that are drawn without regard to bags hardly ever bring thousands of jobs a second apart, so bags cut
from them end too soon. Here the largest bags, one in some hundreds, are planned: their sizes and how long it
took to submit them are those of the log, as often for each job as there. Each takes the place of as many
successive arrivals in about the same time, the largest first, so that the memory and the cycles of the
arrivals stay.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.bags import Bags
from batsched_py.workload.swf.log import Floats, Integers

#: One in so many bags is a large one.
_ONE_IN: Final = 300


class LargeBags(Struct):
    """The sizes of the largest bags, in ascending order, and how long it took to submit each."""

    jobs: int
    """Jobs of the whole log."""
    sizes: list[int]
    durations: list[float]


def fit_large_bags(submit: Floats, bags: Bags) -> LargeBags:
    """Learn from the contiguous bags of a log."""
    largest = np.argsort(bags.sizes, kind="stable")[_small(bags) :]
    durations = bags.last(submit) - bags.first(submit)
    return LargeBags(len(submit), bags.sizes[largest].tolist(), durations[largest].tolist())


def most_of_small_bags(bags: Bags) -> int:
    """How many jobs the largest of all other bags has."""
    return int(np.sort(bags.sizes)[_small(bags) - 1])


def _small(bags: Bags) -> int:
    return len(bags.sizes) - len(bags.sizes) // _ONE_IN


def place_large_bags(
    large: LargeBags, submit: Floats, window: float, random: np.random.Generator
) -> tuple[Floats, Integers]:
    """Arrivals in which large bags have places, and for each job the number of its large bag, or 0."""
    submit, planned = submit.copy(), np.zeros(len(submit), dtype=np.int64)
    for number, which in enumerate(_drawn(large, len(submit), random), start=1):
        size = large.sizes[which]
        duration = min(large.durations[which], size * window / 2)
        first = _place(submit, planned, size, duration)
        if first is None:
            continue
        inside = slice(first, first + size)
        steps = (np.arange(size) + np.append(0.0, random.random(size - 1))) / size
        submit[inside] = np.floor(submit[first] + duration * steps)
        planned[inside] = number
    return submit, planned


def _drawn(large: LargeBags, jobs: int, random: np.random.Generator) -> list[int]:
    """Which of the log's large bags so many jobs have, the largest first."""
    known = len(large.sizes)
    count = int(known * jobs / large.jobs + random.random())
    chosen = (np.arange(count) + random.random(count)) / max(count, 1) * known
    return [which for which in chosen.astype(np.int64).tolist()[::-1] if large.sizes[which] < jobs]


def _place(submit: Floats, planned: Integers, size: int, duration: float) -> int | None:
    """The first of so many successive arrivals that came in about so long, and are not of a large bag yet."""
    before = np.append(0, np.cumsum(planned > 0))
    free = before[size:] == before[:-size]
    room = np.append(submit[size:], np.inf) - submit[: len(submit) - size + 1]
    fits = free & (room > duration)
    if not fits.any():
        return None
    span = submit[size - 1 :] - submit[: len(submit) - size + 1]
    return int(np.where(fits, np.abs(span - duration), np.inf).argmin())
