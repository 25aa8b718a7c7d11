"""Which of the arrivals are one bag of tasks (stage 3 and Algorithm 1 of Minh and Wolters).

In the paper a bag goes on while jobs follow each other within delta seconds, up to a size that is drawn from
a Zipf distribution fitted to the sizes in the log. But bags of the log mostly ended because nothing more came
in time, so to end them once more makes them too small. Here a job that comes in time opens a new bag with the
probability that the log shows for such a delay after the previous job and for a bag of so many jobs, both in
classes. Its size then follows from the arrivals, as it does in the log, except for the largest bags, which
have their places before (``large_bags``).
"""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import DELTA, Bags, zipf_exponent
from batsched_py.workload.swf.log import Floats, Integers

#: Classes of delays: up to so many seconds.
_DELAYS: Final = np.array([0, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, np.inf])
#: Sizes up to this many are classes of their own; above, each power of two is one.
_SMALL: Final = 4
_SIZES: Final = 14
#: How many jobs' worth a class without any takes the mean of its size from.
_PRIOR: Final = 0.5

#: How fast the probabilities of Zipf sizes fall.
Exponent = Annotated[float, Meta(ge=0, le=100)]


class BagCuts(Struct):
    """How likely a job that comes within delta opens a new bag."""

    chances: list[list[float]]
    """For each class of the bag's size so far, and each class of delays."""
    most: int
    """The largest bag that comes about in this way."""


def fit_bag_cuts(submit: Floats, bags: Bags, most: int, delta: float = DELTA) -> BagCuts:
    """Learn from the contiguous bags of a log that have at most so many jobs."""
    delays = np.diff(submit)
    opens = np.zeros(len(submit), dtype=bool)
    opens[bags.starts] = True
    sizes = np.arange(len(submit)) - np.repeat(bags.starts, bags.sizes) + 1
    in_time = (delays <= delta) & np.repeat(bags.sizes <= most, bags.sizes)[:-1]
    place = (_size_class(sizes[:-1][in_time]), _delay_class(delays[in_time]))
    opened, jobs = np.zeros((_SIZES, len(_DELAYS))), np.zeros((_SIZES, len(_DELAYS)))
    np.add.at(opened, place, opens[1:][in_time])
    np.add.at(jobs, place, 1)
    mean = opened.sum(axis=1, keepdims=True) / np.maximum(jobs.sum(axis=1, keepdims=True), 1)
    return BagCuts(np.round((opened + _PRIOR * mean) / (jobs + _PRIOR), 5).tolist(), most)


def cut_bags(
    cuts: BagCuts, submit: Floats, planned: Integers, random: np.random.Generator, delta: float = DELTA
) -> Bags:
    """Cut arrivals into bags; those with the same positive number in ``planned`` are one already."""
    delays = np.diff(submit)
    late = ((delays > delta) | (planned[1:] != planned[:-1])).tolist()
    inside = (planned > 0).tolist()
    delay_classes = _delay_class(delays).tolist()
    size_classes = _size_class(np.arange(1, len(submit) + 1)).tolist()
    chances = random.random(len(submit)).tolist()
    sizes, size = [], 1
    for place in range(len(submit) - 1):
        chance = cuts.chances[size_classes[size - 1]][delay_classes[place]]
        if late[place] or (not inside[place] and (size == cuts.most or chances[place] < chance)):
            sizes.append(size)
            size = 1
        else:
            size += 1
    return Bags(np.arange(len(submit)), np.array([*sizes, size]))


class ZipfSizes(Struct):
    """The sizes of bags of the paper: a size s has a probability in proportion to ``s ** -exponent``."""

    exponent: Exponent
    most: int


def fit_zipf_sizes(bags: Bags) -> ZipfSizes:
    """The Zipf distribution of the largest likelihood."""
    return ZipfSizes(exponent=zipf_exponent(bags.sizes), most=int(bags.sizes.max()))


def cut_bags_by_size(
    zipf: ZipfSizes, submit: Floats, random: np.random.Generator, delta: float = DELTA
) -> Bags:
    """Cut arrivals into bags as Algorithm 1 does."""
    cumulated = np.cumsum(np.arange(1, zipf.most + 1) ** -zipf.exponent)
    drawn = np.searchsorted(cumulated, random.random(len(submit)) * cumulated[-1], side="right") + 1
    limits = iter(np.minimum(drawn, zipf.most).tolist())
    borders = np.concatenate([[0], np.flatnonzero(np.diff(submit) > delta) + 1, [len(submit)]])
    sizes = []
    for left in np.diff(borders).tolist():
        while left > 0:
            sizes.append(min(next(limits), left))
            left -= sizes[-1]
    return Bags(np.arange(len(submit)), np.array(sizes))


def _size_class(sizes: Integers) -> NDArray[np.int64]:
    large = np.floor(np.log2(np.maximum(sizes, 1))).astype(np.int64) + _SMALL - 2
    return np.minimum(np.where(sizes <= _SMALL, sizes - 1, large), _SIZES - 1)


def _delay_class(delays: Floats) -> NDArray[np.int64]:
    return np.minimum(np.searchsorted(_DELAYS, delays), len(_DELAYS) - 1)


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
