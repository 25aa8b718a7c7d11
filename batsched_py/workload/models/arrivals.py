"""Arrivals with the memory, the bursts and the cycles of a log: a multiplicative cascade along the calendar.

The number of jobs of a week is divided between two parts of the week, that of each part between two halves of
it, and so on: weeks into days, days into hours, hours into halves, quarters, ... and finally about a second.
What part of the jobs goes to the first half is drawn from what the log shows for that place in the week and
for as many jobs. A bag of a hundred jobs, say, mostly stays together down to the scale of a minute, while
the jobs of a usual day spread over its hours as people work. Thus the variance at every scale is the log's,
and so are its burstiness and memory below a week; this generalises the multifractal wavelet model of Riedi
and others (1999), where all halves at a scale have the same, symmetric distribution. Above a week memory
comes from fractional Gaussian noise of the log's Hurst parameter, whose ranks choose among its weekly counts.
"""

import math
from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from batsched_py.workload.description.jobs import DELTA, Bags, size_classes
from batsched_py.workload.description.over_time import arrival_hurst
from batsched_py.workload.swf.log import HOUR, WEEK, Floats, Integers, Random


def fractional_gaussian_noise(count: int, hurst: float, random: Random) -> Floats:
    """A standard normal series whose autocorrelation is exactly that of the Hurst parameter.

    Its covariance matrix is embedded into a circulant one, which the Fourier transform makes diagonal (Davies
    and Harte 1987).
    """
    lags = np.arange(count + 1, dtype=np.float64)
    powers = np.abs(np.arange(-1, count + 2, dtype=np.float64)) ** (2 * hurst)
    covariances = (powers[2:] - 2 * lags ** (2 * hurst) + powers[:-2]) / 2
    circle = np.concatenate([covariances, covariances[-2:0:-1]])
    eigenvalues = np.maximum(np.fft.fft(circle).real, 0)
    noise = random.standard_normal(len(circle)) + 1j * random.standard_normal(len(circle))
    return np.fft.fft(noise * np.sqrt(eigenvalues / len(circle))).real[:count]


_HOURS: Final = 168
_WEEKEND: Final = 5
#: How often an hour is halved: to less than a second.
_HALVINGS: Final = 12
#: Counts up to this many are classes of their own.
_FEW: Final = 8
_CLASSES: Final = 64
#: The most shares that are kept of a class.
_MOST_SHARES: Final = 64
_NO_MEMORY: Final = 0.5


class Shares(Struct):
    """What part of the jobs goes to the first half, for classes of how many jobs there are."""

    classes: list[int]
    """The class that each share was seen in, in ascending order."""
    shares: list[float]


class Cascade(Struct):
    """The parameters of the arrivals."""

    hurst: float
    weeks: list[int]
    """The numbers of jobs of whole weeks, in ascending order."""
    calendar: dict[str, Shares]
    """For parts of a week and of a day: see :func:`_splits`."""
    halves: list[Shares]
    """For halves of an hour, of half an hour, and so on."""
    rate: float = 0.0
    """Jobs a week from the first arrival to the last; 0 if it is the mean of whole weeks."""


def fit_cascade(clock: Floats) -> Cascade:
    """Learn from arrivals, given in seconds on the wall clock since a Monday at midnight."""
    clock = np.sort(clock)
    weeks = int(clock[-1] // WEEK) + 1
    hours = np.bincount((clock // HOUR).astype(np.int64), minlength=weeks * _HOURS).reshape(weeks, _HOURS)
    before = np.concatenate([np.zeros((weeks, 1), dtype=np.int64), np.cumsum(hours, axis=1)], axis=1)
    seen: dict[str, list[Integers]] = {}
    for first, middle, last, table in _splits():
        whole, part = before[:, last] - before[:, first], before[:, middle] - before[:, first]
        seen.setdefault(table, []).append(np.stack([whole, part]))
    memory = arrival_hurst(clock)
    span = float(clock[-1] - clock[0])
    totals = hours.sum(axis=1)
    inner = totals[1:-1] if weeks > 4 else totals
    return Cascade(
        hurst=_NO_MEMORY if memory is None else float(np.clip(memory.median, _NO_MEMORY, 0.95)),
        weeks=np.sort(inner).tolist(),
        calendar={table: _shares(*np.concatenate(pairs, axis=1)) for table, pairs in seen.items()},
        halves=[_halved(clock, HOUR / 2**level) for level in range(_HALVINGS)],
        rate=len(clock) * WEEK / span if span > 0 else 0.0,
    )


def generate_arrivals(cascade: Cascade, jobs: int, random: Random) -> Floats:
    """So many arrivals, in whole seconds since a Monday at midnight, in ascending order.

    Whole weeks are generated, as many as are needed, and cut off after the last of these arrivals.
    """
    counts = {(0, _HOURS): _weekly(cascade, jobs, random)}
    for first, middle, last, table in _splits():
        whole = counts.pop((first, last))
        part = _split(cascade.calendar.get(table), whole, random)
        counts[first, middle], counts[middle, last] = part, whole - part
    cells = np.concatenate([np.arange(len(count)) * _HOURS + hour for (hour, _), count in counts.items()])
    count = np.concatenate(list(counts.values()))
    cells, count = cells[count > 0], count[count > 0]
    for shares in cascade.halves:
        part = _split(shares, count, random)
        cells = np.concatenate([2 * cells, 2 * cells + 1])
        count = np.concatenate([part, count - part])
        cells, count = cells[count > 0], count[count > 0]
    times = (np.repeat(cells, count) + random.random(int(count.sum()))) * (HOUR / 2**_HALVINGS)
    return np.floor(np.sort(times))[:jobs]


def _splits() -> list[tuple[int, int, int, str]]:
    """How a week is divided: first hour, middle and last of each part, and the table that tells how.

    Days are told apart by their place in the week, hours by their place in a working day or a day of rest.
    """
    splits, parts = [], [(0, _HOURS)]
    while parts:
        first, last = parts.pop(0)
        if last - first > 24:
            middle, table = first + 24 * ((last - first + 24) // 48), f"days {first // 24}-{last // 24}"
        elif last - first > 1:
            rest = "rest" if first // 24 >= _WEEKEND else "work"
            middle, table = first + (last - first) // 2, f"{rest} {first % 24}-{(last - 1) % 24 + 1}"
        else:
            continue
        splits.append((first, middle, last, table))
        parts += [(first, middle), (middle, last)]
    return splits


def _weekly(cascade: Cascade, jobs: int, random: Random) -> Integers:
    """The number of jobs of each week, at least so many in all."""
    rate = cascade.rate or float(np.mean(cascade.weeks))
    weeks = max(1, math.ceil(jobs / max(rate, 1.0)))
    total = max(jobs, round(weeks * rate))
    noise = fractional_gaussian_noise(weeks, cascade.hurst, random)
    ranks = (np.argsort(np.argsort(noise)) + 0.5) / weeks
    wanted = np.quantile(cascade.weeks, ranks) + 1e-9
    wanted *= total / wanted.sum()
    counts = np.floor(wanted).astype(np.int64)
    counts[np.argsort(counts - wanted, kind="stable")[: total - counts.sum()]] += 1
    return counts


def _halved(clock: Floats, length: float) -> Shares:
    """How jobs spread over the halves of intervals of some length."""
    halves, count = np.unique(np.floor(clock / (length / 2)), return_counts=True)
    _, whole = np.unique(halves // 2, return_inverse=True)
    return _shares(np.bincount(whole, count), np.bincount(whole, count * (halves % 2 == 0)))


def _class(counts: Integers, few: int = _FEW) -> Integers:
    """Classes of counts: each up to a few, which is a power of two, is one; above, each power of two is."""
    large = size_classes(np.maximum(counts, 1)) + few + 2 - few.bit_length()
    return np.where(counts <= few, counts, large)


def _shares(whole: Integers, part: Integers) -> Shares:
    """What part of how many, in classes of how many; of many shares, evenly spread ones are kept."""
    filled = whole > 0
    share, number = (part[filled] / whole[filled]), _class(whole[filled].astype(np.int64))
    order = np.lexsort((share, number))
    share, number = share[order], number[order]
    classes: list[int] = []
    shares: list[float] = []
    for each in np.unique(number).tolist():
        inside = share[number == each]
        if len(inside) > _MOST_SHARES:
            inside = np.quantile(inside, (np.arange(_MOST_SHARES) + 0.5) / _MOST_SHARES, method="nearest")
        classes += [each] * len(inside)
        shares += np.round(inside, 4).tolist()
    return Shares(classes, shares)


def _split(shares: Shares | None, whole: Integers, random: Random) -> Integers:
    """How many of each number of jobs go to the first half; a class never seen is like the nearest."""
    if shares is None or not shares.classes:
        return random.binomial(whole, 0.5)
    seen, first, count = np.unique(shares.classes, return_index=True, return_counts=True)
    nearest = np.abs(seen - np.arange(_CLASSES)[:, None]).argmin(axis=1)
    row = nearest[_class(whole)]
    chosen = first[row] + (_stratified(row, random) * count[row]).astype(np.int64)
    drawn = np.floor(np.array(shares.shares)[chosen] * whole + random.random(len(whole)))
    return np.clip(drawn, 0, whole).astype(np.int64)


def _stratified(groups: Integers, random: Random) -> Floats:
    """A uniform number for each place, spread evenly within its group: one in each of equal strata."""
    order = np.lexsort((random.random(len(groups)), groups))
    _, codes, count = np.unique(groups, return_inverse=True, return_counts=True)
    rank = np.empty(len(groups))
    rank[order] = np.arange(len(groups))
    rank -= (np.cumsum(count) - count)[codes]
    return (rank + random.random(len(groups))) / count[codes]


#: Classes of delays: up to so many seconds.
_DELAYS: Final = np.array([0, 1, 2, 3, 5, 8, 12, 20, 35, 60, 100, np.inf])
#: Sizes up to this many are classes of their own.
_SMALL: Final = 4
_SIZES: Final = 14
#: How many jobs' worth a class without any takes the mean of its size from.
_PRIOR: Final = 0.5

#: How fast the probabilities of Zipf sizes fall.
Exponent = Annotated[float, Meta(ge=0, le=100)]


class BagCuts(Struct):
    """How likely a job that comes within delta opens a new bag.

    In the paper a bag goes on while jobs follow each other within delta seconds, up to a size that is
    drawn from a Zipf distribution fitted to the sizes in the log. But bags of the log mostly ended
    because nothing more came in time, so to end them once more makes them too small. Here a job that
    comes in time opens a new bag with the probability that the log shows for such a delay after the
    previous job and for a bag of so many jobs, both in classes. Its size then follows from the arrivals,
    as it does in the log, except for the largest bags, which have their places before
    (:class:`LargeBags`).
    """

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
    place = (_size_class(sizes[:-1][in_time]), np.searchsorted(_DELAYS, delays[in_time]))
    opened, jobs = np.zeros((_SIZES, len(_DELAYS))), np.zeros((_SIZES, len(_DELAYS)))
    np.add.at(opened, place, opens[1:][in_time])
    np.add.at(jobs, place, 1)
    mean = opened.sum(axis=1, keepdims=True) / np.maximum(jobs.sum(axis=1, keepdims=True), 1)
    return BagCuts(np.round((opened + _PRIOR * mean) / (jobs + _PRIOR), 5).tolist(), most)


def cut_bags(cuts: BagCuts, submit: Floats, planned: Integers, random: Random, delta: float = DELTA) -> Bags:
    """Cut arrivals into bags; those with the same positive number in ``planned`` are one already."""
    delays = np.diff(submit)
    late = ((delays > delta) | (planned[1:] != planned[:-1])).tolist()
    inside = (planned > 0).tolist()
    delay_classes = np.searchsorted(_DELAYS, delays).tolist()
    classes = _size_class(np.arange(1, len(submit) + 1)).tolist()
    chances = random.random(len(submit)).tolist()
    sizes, size = [], 1
    for place in range(len(submit) - 1):
        chance = cuts.chances[classes[size - 1]][delay_classes[place]]
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


def cut_bags_by_size(zipf: ZipfSizes, submit: Floats, random: Random, delta: float = DELTA) -> Bags:
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


def _size_class(sizes: Integers) -> Integers:
    return np.minimum(_class(sizes, _SMALL), _SIZES) - 1


#: One in so many bags is a large one.
_ONE_IN: Final = 300


class LargeBags(Struct):
    """The sizes of the largest bags, in ascending order, and how long it took to submit each.

    The largest bags of a log: few of them, but they hold many jobs and fill the queue at once.

    Arrivals that are drawn without regard to bags hardly ever bring thousands of jobs a second apart, so
    bags cut from them end too soon. Here the largest bags, one in some hundreds, are planned: their sizes
    and how long it took to submit them are those of the log, as often for each job as there. Each takes
    the place of as many successive arrivals in about the same time, the largest first, so that the memory
    and the cycles of the arrivals stay.
    """

    jobs: int
    """Jobs of the whole log."""
    sizes: list[int]
    durations: list[float]


def fit_large_bags(submit: Floats, bags: Bags) -> LargeBags:
    """Learn from the contiguous bags of a log."""
    order = np.argsort(bags.sizes, kind="stable")
    largest = order[len(order) - len(order) // _ONE_IN :]
    durations = bags.last(submit) - bags.first(submit)
    return LargeBags(len(submit), bags.sizes[largest].tolist(), durations[largest].tolist())


def place_large_bags(
    large: LargeBags, submit: Floats, window: float, random: Random
) -> tuple[Floats, Integers]:
    """Arrivals in which large bags have places, and for each job the number of its large bag, or 0.

    A bag has the place of as many successive arrivals that came in about as long and are of no other yet.
    """
    submit, planned = submit.copy(), np.zeros(len(submit), dtype=np.int64)
    known = len(large.sizes)
    count = int(known * len(submit) / large.jobs + random.random())
    chosen = (np.arange(count) + random.random(count)) / max(count, 1) * known
    drawn = [which for which in chosen.astype(np.int64).tolist()[::-1] if large.sizes[which] < len(submit)]
    for number, which in enumerate(drawn, start=1):
        size = large.sizes[which]
        duration = min(large.durations[which], size * window / 2)
        before = np.append(0, np.cumsum(planned > 0))
        room = np.append(submit[size:], np.inf) - submit[: len(submit) - size + 1]
        fits = (before[size:] == before[:-size]) & (room > duration)
        if not fits.any():
            continue
        span = submit[size - 1 :] - submit[: len(submit) - size + 1]
        first = int(np.where(fits, np.abs(span - duration), np.inf).argmin())
        inside = slice(first, first + size)
        steps = (np.arange(size) + np.append(0.0, random.random(size - 1))) / size
        submit[inside] = np.floor(submit[first] + duration * steps)
        planned[inside] = number
    return submit, planned
