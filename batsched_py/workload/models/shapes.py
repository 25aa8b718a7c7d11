"""What is learned of run times and sizes, and the sizes of programs (stages 1, 2 and 4 of Minh and Wolters).

All bags of a program have the same size. Sizes are drawn from those of the log's jobs, separately for
programs that have one job on a day on which they are run, two or three, four to seven, and so on: many jobs
at once are mostly small. They are given to programs in the order of hidden values (``persistence``). Run
times follow, given the sizes (``run_times``).
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import Bags
from batsched_py.workload.description.selection import requested
from batsched_py.workload.models.mixture import Mixture
from batsched_py.workload.models.spread import Spread, fit_spread
from batsched_py.workload.swf.log import Floats, Integers, SwfLog
from batsched_py.workload.wall_clock import DAY

BAG_CLASSES: Final = 10
_SEED: Final = 0
#: A bag of so many jobs is a large one.
_MANY: Final = 8
#: How many jobs' worth a size in a class of bags takes from the size in all classes.
PRIOR: Final = 1.0
RAKES: Final = 20
LITTLE: Final = 1e-9


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


class Sizes(Struct):
    """How many jobs ask for how many processors, in ascending order."""

    sizes: list[int]
    counts: list[int]


Counted = TypeVar("Counted", Pairs, Sizes)


class Shapes(Struct):
    """The parameters of run times and sizes."""

    mixture: Mixture
    sizes: list[Sizes]
    """For each class of programs, by how many jobs they have on a day on which they are run."""
    pairs: list[Pairs]
    """For each class of bags."""
    clusters: list[Cluster]
    spread: Spread
    longest: list[float]
    """The longest run time of jobs of 1 processor, of 2 or 3, of 4 to 7, ..."""


def fit_shapes(jobs: SwfLog, bags: Bags, programs: Integers, mixture: Mixture) -> Shapes:
    """Learn from the contiguous bags of a log, and the number of each bag's program.

    Each bag is counted to a cluster by chance, with the probability that its mean belongs there: one between
    two clusters may be counted to either.
    """
    sizes = requested(jobs)
    of_bags = bags.first(sizes)
    clusters = mixture.sampled(bags.means(jobs.run_time), np.random.default_rng(_SEED))
    of_jobs = mixture.sampled(jobs.run_time, np.random.default_rng(_SEED))
    values = mixture.to_scale(jobs.run_time)
    classes = bag_classes(bags.sizes)
    of_programs = program_classes(programs, bags, jobs.submit)[programs]
    return Shapes(
        mixture=mixture,
        sizes=[
            _sizes(of_bags[of_programs == each], bags.sizes[of_programs == each])
            for each in range(BAG_CLASSES)
        ],
        pairs=[
            count_pairs(clusters[inside], of_bags[inside], bags.sizes[inside])
            for inside in (classes == each for each in range(BAG_CLASSES))
        ],
        clusters=[
            _cluster(values[inside], sizes[inside], deviation)
            for inside, deviation in zip(_members(of_jobs, mixture), mixture.deviations, strict=True)
        ],
        spread=fit_spread(jobs.run_time, bags),
        longest=_longest(jobs.run_time, sizes),
    )


def draw_sizes(shapes: Shapes, programs: Integers, bags: Bags, submit: Floats, places: Floats) -> Integers:
    """The size of each program, given its place between 0 and 1.

    Sizes are dealt out: there are as many jobs of each as in the log, in proportion. A program takes the size
    at its place among what is left for its class of programs, those with the most jobs first.
    """
    jobs = np.bincount(programs, bags.sizes)
    classes = program_classes(programs, bags, submit)
    sizes, left = _sizes_by_class(shapes, np.bincount(classes, jobs, BAG_CLASSES))
    drawn = np.zeros(len(jobs), dtype=np.int64)
    for program in np.argsort(-jobs, kind="stable").tolist():
        mine = left[classes[program]]
        enough = np.where(mine >= jobs[program], mine, 0)
        cumulated = np.cumsum(enough if enough.any() else mine == mine.max())
        drawn[program] = np.searchsorted(cumulated, places[program] * cumulated[-1], side="right")
        mine[drawn[program]] -= jobs[program]
    return sizes[drawn]


def _sizes_by_class(shapes: Shapes, jobs: NDArray[Any]) -> tuple[Integers, Floats]:
    """All sizes, and how many jobs have each in each class of programs, if so many are in each class.

    The log's numbers are raked, so that there are as many jobs of each size as in the log, in proportion.
    """
    sizes = np.unique(np.concatenate([each.sizes for each in shapes.sizes])).astype(np.int64)
    table = np.zeros((BAG_CLASSES, len(sizes)))
    for each, known in enumerate(shapes.sizes):
        table[each, np.searchsorted(sizes, known.sizes)] = known.counts
    wanted = table.sum(axis=0) / table.sum() * jobs.sum()
    table = shares_of(table + PRIOR * wanted / wanted.sum())
    for _ in range(RAKES):
        table = shares_of(table) * jobs[:, None]
        table *= wanted / np.maximum(table.sum(axis=0), LITTLE)
    return sizes, table


def shares_of(counts: Floats) -> Floats:
    """Counts over the sum of each row; a row of zeros stays one."""
    total = counts.sum(axis=-1, keepdims=True)
    return counts / np.where(total > 0, total, 1.0)


def bag_classes(sizes: NDArray[Any]) -> Integers:
    """Classes of bags: of one job, of two or three, of four to seven, ... of 512 and more."""
    return np.minimum(np.floor(np.log2(sizes)).astype(np.int64), BAG_CLASSES - 1)


def is_large(bags: Bags) -> NDArray[np.bool_]:
    """Which bags have many jobs."""
    return bags.sizes >= _MANY


def program_classes(programs: Integers, bags: Bags, submit: Floats) -> Integers:
    """Classes of programs, by how many jobs they have on a day on which they are run."""
    days = np.floor(bags.first(submit) / DAY).astype(np.int64)
    active = np.bincount(np.unique(np.stack([programs, days]), axis=1)[0])
    return bag_classes(np.bincount(programs, bags.sizes) / active)


def count_pairs(clusters: Integers, sizes: Integers, weights: Integers | None = None) -> Pairs:
    """How often each cluster and size come together."""
    pairs, codes = np.unique(np.stack([clusters, sizes]), axis=1, return_inverse=True)
    counts = np.bincount(codes.ravel(), weights).astype(np.int64)
    return Pairs(pairs[0].tolist(), pairs[1].tolist(), counts.tolist())


def nearest(tables: list[Counted], bag_class: int) -> Counted:
    """The table of a class of bags, or of the nearest one that the log has."""
    filled = [each for each in range(len(tables)) if tables[each].counts]
    return tables[min(filled, key=lambda each: abs(each - bag_class))]


def size_classes(sizes: Integers) -> Integers:
    """Classes of sizes: 1 processor, 2 or 3, 4 to 7, ..."""
    return np.floor(np.log2(sizes)).astype(np.int64)


def _sizes(sizes: Integers, jobs: Integers) -> Sizes:
    known, codes = np.unique(sizes, return_inverse=True)
    return Sizes(known.tolist(), np.bincount(codes, jobs).astype(np.int64).tolist())


def _members(clusters: Integers, mixture: Mixture) -> list[NDArray[np.bool_]]:
    return [clusters == cluster for cluster in range(len(mixture.weights))]


def _cluster(values: Floats, sizes: Integers, deviation: float) -> Cluster:
    """A straight line through the jobs of a cluster, and what they deviate from it."""
    logarithms = np.log(sizes)
    slope = centre = 0.0
    if len(values) > 2 and np.ptp(logarithms) > 0:
        centre = float(logarithms.mean())
        slope = float(np.cov(logarithms, values)[0, 1] / logarithms.var(ddof=1))
        deviation = float((values - slope * (logarithms - centre)).std())
    return Cluster(slope, centre, deviation)


def _longest(run_times: Floats, sizes: Integers) -> list[float]:
    longest = np.zeros(int(size_classes(sizes).max()) + 1)
    np.maximum.at(longest, size_classes(sizes), run_times)
    return np.maximum(longest, 1).tolist()
