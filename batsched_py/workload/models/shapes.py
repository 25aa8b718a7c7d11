"""How long the jobs of a bag run and on how many processors (stages 1, 2 and 4 of Minh and Wolters).

The size of a job is drawn together with the cluster of its run time, from how often the log has them
together, separately for bags of one job, of two or three, of four to seven, and so on, as large bags are
often made of other jobs than small ones. All jobs of a bag have its size and cluster. Their run times are

    mean + slope * (log(size) - centre) + deviation * (sqrt(r) * bag + sqrt(1 - r) * job)

on the scale of the mixture, with standard normal numbers of the bag and of each job. For each cluster r says
how alike the jobs of a bag are, and the slope how run time grows with size.

Users come back to what they did before. So among the smaller bags many change places in the end, until
those of a user that follow each other look alike as often as they do in the log.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import Bags, bag_keys
from batsched_py.workload.description.selection import requested
from batsched_py.workload.models.mixture import Mixture
from batsched_py.workload.swf.log import Floats, Integers, SwfLog

BAG_CLASSES: Final = 10
#: Bags of these classes may change places.
_SMALL_CLASSES: Final = 4
_GOLDEN: Final = (sqrt(5) - 1) / 2
_SEED: Final = 0
#: A run time that is less than half or more than twice the median of its bag has strayed.
_STRAY: Final = log(2)
#: The mean of the absolute value of a standard normal number.
_MEAN_DEVIATION: Final = sqrt(2 / pi)


class Pairs(Struct):
    """How often clusters of run times and sizes come together, in ascending order of both."""

    clusters: list[int]
    sizes: list[int]
    counts: list[int]


class Cluster(Struct):
    """How run times vary within a cluster."""

    slope: float
    centre: float
    deviation: float
    likeness: float
    """How alike the run times of a bag are, from 0 to 1: r."""


class Shapes(Struct):
    """The parameters of run times and sizes."""

    mixture: Mixture
    pairs: list[Pairs]
    """For each class of bags."""
    clusters: list[Cluster]
    strays: float
    """Share of the jobs in bags of two or more whose run time is not like that of the others."""
    longest: list[float]
    """The longest run time of jobs of 1 processor, of 2 or 3, of 4 to 7, ..."""
    repetition: float
    """How likely a bag looks like the one before it of the same user."""


def fit_shapes(jobs: SwfLog, bags: Bags, mixture: Mixture) -> Shapes:
    """Learn from the contiguous bags of a log.

    Each job is counted to a cluster by chance, with the probability that it belongs there: a job between two
    clusters may be counted to either.
    """
    sizes = requested(jobs)
    clusters = mixture.sampled(jobs.run_time, np.random.default_rng(_SEED))
    classes = np.repeat(bag_classes(bags.sizes), bags.sizes)
    values = mixture.to_scale(jobs.run_time)
    within = values - np.repeat(_medians(values, bags), bags.sizes)
    shared = np.repeat(bags.sizes > 1, bags.sizes)
    logarithms = np.log(jobs.run_time)
    strays = np.abs(logarithms - np.repeat(_medians(logarithms, bags), bags.sizes)) > _STRAY
    alike = shared & ~strays
    return Shapes(
        mixture=mixture,
        pairs=[count_pairs(clusters[classes == each], sizes[classes == each]) for each in range(BAG_CLASSES)],
        clusters=[
            _cluster(values[inside], sizes[inside], within[inside & alike], deviation)
            for inside, deviation in zip(_members(clusters, mixture), mixture.deviations, strict=True)
        ],
        strays=float(strays[shared].mean()) if shared.any() else 0.0,
        longest=_longest(jobs.run_time, sizes),
        repetition=_repetition(jobs, bags),
    )


def draw_shapes(
    shapes: Shapes, bags: Bags, users: Integers, random: np.random.Generator
) -> tuple[Floats, Integers, Integers]:
    """The run time of each job, and the size and cluster of each bag, given its user.

    Bags take their turns through all pairs of cluster and size in proportion to their counts: those of one
    job in equal steps, so that what the log has even once is there, and larger ones along the golden ratio,
    the largest first, so that any number of them is spread evenly. Thus one log does not differ from the next
    by which pairs happened to fall on the few largest bags.
    """
    cluster = np.zeros(len(bags.sizes), dtype=np.int64)
    size = np.ones(len(bags.sizes), dtype=np.int64)
    classes = bag_classes(bags.sizes)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        members = members[np.lexsort((random.random(len(members)), -bags.sizes[members]))]
        pairs = _nearest(shapes.pairs, each)
        step = _GOLDEN if each else 1 / len(members)
        turns = (np.arange(len(members)) * step + random.random()) % 1
        cumulated = np.cumsum(pairs.counts)
        chosen = np.searchsorted(cumulated, turns * cumulated[-1], side="right")
        if each < _SMALL_CLASSES:
            members, chosen = _alike(members, chosen, users, shapes.repetition, random)
        cluster[members] = np.array(pairs.clusters)[chosen]
        size[members] = np.array(pairs.sizes)[chosen]
    slope, centre, deviation, likeness = np.array(
        [(each.slope, each.centre, each.deviation, each.likeness) for each in shapes.clusters]
    )[cluster].T
    middle = np.array(shapes.mixture.means)[cluster] + slope * (np.log(size) - centre)
    middle += deviation * np.sqrt(likeness) * random.standard_normal(len(cluster))
    around = np.repeat(deviation * np.sqrt(1 - likeness), bags.sizes)
    values = np.repeat(middle, bags.sizes) + around * random.standard_normal(len(around))
    longest = np.repeat(np.array(shapes.longest)[_size_classes(size)], bags.sizes)
    run_times = shapes.mixture.from_scale(values, longest)
    return _strayed(run_times, bags, size, shapes.strays, random), size, cluster


def _strayed(
    run_times: Floats, bags: Bags, sizes: Integers, share: float, random: np.random.Generator
) -> Floats:
    """The same run times, of which some are exchanged between bags of one size and about as many jobs."""
    chosen = random.random(len(run_times)) < share
    groups = np.repeat(bag_classes(bags.sizes) * (int(sizes.max()) + 1) + sizes, bags.sizes)
    strays = np.flatnonzero(chosen & np.repeat(bags.sizes > 1, bags.sizes))
    places = strays[np.argsort(groups[strays], kind="stable")]
    sources = strays[np.lexsort((random.random(len(strays)), groups[strays]))]
    exchanged = run_times.copy()
    exchanged[places] = run_times[sources]
    return exchanged


def _alike(
    members: Integers, chosen: Integers, users: Integers, repetition: float, random: np.random.Generator
) -> tuple[Integers, Integers]:
    """The same bags and choices, many of which have changed places, so that a user's bags look alike."""
    moved = random.random(len(members)) < np.sqrt(repetition)
    order = random.permutation(int(users.max()) + 1)
    places = members[moved][np.lexsort((members[moved], order[users[members[moved]]]))]
    return (
        np.concatenate([members[~moved], places]),
        np.concatenate([chosen[~moved], np.sort(chosen[moved])]),
    )


def bag_classes(sizes: Integers) -> Integers:
    """Classes of bags: of one job, of two or three, of four to seven, ... of 512 and more."""
    return np.minimum(np.floor(np.log2(sizes)).astype(np.int64), BAG_CLASSES - 1)


def count_pairs(clusters: Integers, sizes: Integers) -> Pairs:
    """How often each cluster and size come together."""
    pairs, counts = np.unique(np.stack([clusters, sizes]), axis=1, return_counts=True)
    return Pairs(pairs[0].tolist(), pairs[1].tolist(), counts.tolist())


def _nearest(pairs: list[Pairs], bag_class: int) -> Pairs:
    """The pairs of a class of bags, or of the nearest one that the log has."""
    filled = [each for each in range(len(pairs)) if pairs[each].counts]
    return pairs[min(filled, key=lambda each: abs(each - bag_class))]


def _medians(values: Floats, bags: Bags) -> Floats:
    """The median of each bag, the lower one of two."""
    whose = np.repeat(np.arange(len(bags.sizes)), bags.sizes)
    return values[np.lexsort((values, whose))][bags.starts + (bags.sizes - 1) // 2]


def _members(clusters: Integers, mixture: Mixture) -> list[NDArray[np.bool_]]:
    return [clusters == cluster for cluster in range(len(mixture.weights))]


def _cluster(values: Floats, sizes: Integers, within: Floats, deviation: float) -> Cluster:
    """A straight line through the jobs of a cluster, what they deviate from it, and how much within bags."""
    logarithms = np.log(sizes)
    slope = centre = 0.0
    if len(values) > 2 and np.ptp(logarithms) > 0:
        centre = float(logarithms.mean())
        slope = float(np.cov(logarithms, values)[0, 1] / logarithms.var(ddof=1))
        deviation = float((values - slope * (logarithms - centre)).std())
    typical = float(np.mean(np.abs(within))) / _MEAN_DEVIATION if len(within) else 0.0
    likeness = max(1 - (typical / deviation) ** 2, 0.0) if deviation else 1.0
    return Cluster(slope, centre, deviation, likeness)


def _longest(run_times: Floats, sizes: Integers) -> list[float]:
    longest = np.zeros(int(_size_classes(sizes).max()) + 1)
    np.maximum.at(longest, _size_classes(sizes), run_times)
    return np.maximum(longest, 1).tolist()


def _size_classes(sizes: Integers) -> Integers:
    return np.floor(np.log2(sizes)).astype(np.int64)


def _repetition(jobs: SwfLog, bags: Bags) -> float:
    """Share of the bags that agree in all attributes with the same user's bag before."""
    first = bags.order[bags.starts]
    users, keys = jobs.user[first], bag_keys(jobs)[first]
    order = np.argsort(users, kind="stable")
    same_user = np.diff(users[order]) == 0
    return float(np.mean((np.diff(keys[order]) == 0)[same_user])) if same_user.any() else 0.0
