"""What is learned of run times and sizes, and the sizes of programs (stages 1, 2 and 4 of Minh and Wolters).

All bags of a program have the same size. Sizes are drawn from those of the log's jobs, separately for
programs that have one job on a day on which they are run, two or three, four to seven, and so on: many jobs
at once are mostly small. They are given to programs in the order of hidden values (``hidden``). Run
times follow, given the sizes (``run_times``).
"""

from __future__ import annotations

import warnings
from typing import Any, Final, Literal, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.description.bags import Bags
from batsched_py.workload.description.distributions import requested
from batsched_py.workload.models import Progress
from batsched_py.workload.swf.log import DAY, Floats, Integers, SwfLog

Scale = Literal["log", "linear"]

_MOST_CLUSTERS: Final = 16
_SAMPLE: Final = 20_000
_MOST_STEPS: Final = 200
_LEAST_VARIANCE: Final = 1e-3


class Mixture(Struct):
    """Clusters of run times; on the logarithmic scale all numbers are those of natural logarithms."""

    scale: Scale
    weights: list[float]
    means: list[float]
    deviations: list[float]
    least: float
    """The shortest run time, in seconds."""
    most: float

    def to_scale(self, run_times: Floats) -> Floats:
        """Run times as the clusters see them."""
        return np.log(run_times) if self.scale == "log" else run_times

    def from_scale(self, values: Floats, longest: Floats | None = None) -> Floats:
        """Whole seconds, not beyond the longest; values beyond are mirrored, as a cut would pile them up."""
        low = self.to_scale(np.array(self.least))
        high = self.to_scale(np.array(self.most) if longest is None else longest)
        below = np.where(values > high, 2 * high - values, values)
        inside = np.clip(np.where(below < low, 2 * low - below, below), low, high)
        seconds = np.exp(inside) if self.scale == "log" else inside
        return np.maximum(np.rint(seconds), 1.0)

    def likeliest(self, run_times: Floats) -> Integers:
        """The cluster that each run time most likely comes from."""
        return self._responsibilities(run_times).argmax(axis=1)

    def sampled(self, run_times: Floats, random: np.random.Generator) -> Integers:
        """A cluster for each run time, by the probabilities that it comes from each of them."""
        cumulated = np.cumsum(self._responsibilities(run_times), axis=1)
        chances = random.random((len(run_times), 1)) * cumulated[:, -1:]
        return np.minimum((cumulated <= chances).sum(axis=1), len(self.weights) - 1)

    def _responsibilities(self, run_times: Floats) -> Floats:
        """How likely each run time comes from each cluster, up to a common factor."""
        values = self.to_scale(run_times)[:, None]
        deviations = np.array(self.deviations)
        exponents = -(((values - np.array(self.means)) / deviations) ** 2) / 2
        logarithms = np.log(self.weights) - np.log(deviations) + exponents
        return np.exp(logarithms - logarithms.max(axis=1, keepdims=True))


def fit_mixture(run_times: Floats, scale: Scale, progress: Progress | None = None) -> Mixture:
    """The mixture of the least criterion among those of 1 to 16 clusters.

    More than 20,000 run times are represented by that many of their quantiles, which loses nothing that
    a mixture could show.
    """
    learner = _gaussian_mixture()
    whole = Mixture(scale, [], [], [], float(run_times.min()), float(run_times.max()))
    values = np.sort(whole.to_scale(run_times))
    if len(values) > _SAMPLE:
        values = np.quantile(values, (np.arange(_SAMPLE) + 0.5) / _SAMPLE)
    most = min(_MOST_CLUSTERS, len(np.unique(values)))
    least_variance = _LEAST_VARIANCE if scale == "log" else _LEAST_VARIANCE * float(values.var() or 1.0)
    best, least = None, np.inf
    for clusters in range(1, most + 1):
        fitted = learner(
            clusters,
            covariance_type="spherical",
            init_params="k-means++",
            random_state=0,
            max_iter=_MOST_STEPS,
            reg_covar=least_variance,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that more steps would change the last digits
            fitted.fit(values[:, None])
        criterion = fitted.bic(values[:, None])
        if criterion < least:
            best, least = fitted, criterion
        if progress is not None:
            progress(clusters, most)
    assert best is not None
    order = np.argsort(best.means_.ravel())
    whole.weights = best.weights_[order].tolist()
    whole.means = best.means_.ravel()[order].tolist()
    whole.deviations = np.sqrt(best.covariances_[order]).tolist()
    return whole


def _gaussian_mixture() -> Any:
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise InputError(
            "fitting a mixture needs scikit-learn; install it with: pip install 'batsched-py[models]'"
        ) from None
    return GaussianMixture


_DECADES: Final = 6
_LARGE: Final = 4
_QUANTILES: Final = 48


class Spread(Struct):
    """For each class of bags, quantiles of how widely their run times spread, and of how jobs deviate."""

    widths: list[list[float]]
    """The mean of the absolute differences of logarithms to that of the mean."""
    deviations: list[list[float]]
    """The difference of a job's logarithm to that of the mean, over the width of its bag."""


def fit_spread(run_times: Floats, bags: Bags) -> Spread:
    """Learn from the bags of two jobs or more."""
    means = bags.means(run_times)
    around = np.log(run_times) - np.repeat(np.log(means), bags.sizes)
    widths = np.add.reduceat(np.abs(around), bags.starts) / bags.sizes
    classes = _classes(means, bags.sizes)
    of_jobs, width_of_jobs = np.repeat(classes, bags.sizes), np.repeat(widths, bags.sizes)
    wide = width_of_jobs > 0
    return Spread(
        widths=[_quantiles(widths[classes == each]) for each in range(2 * _DECADES)],
        deviations=[
            _quantiles((around[wide] / width_of_jobs[wide])[of_jobs[wide] == each])
            for each in range(2 * _DECADES)
        ],
    )


def spread_out(spread: Spread, means: Floats, bags: Bags, random: np.random.Generator) -> Floats:
    """The run time of each job, given the mean of its bag."""
    classes = _classes(means, bags.sizes)
    of_jobs = np.repeat(classes, bags.sizes)
    around = np.zeros(len(of_jobs))
    for each in np.unique(classes[classes >= 0]).tolist():
        bag, job = classes == each, of_jobs == each
        widths = _drawn(spread.widths[each], int(bag.sum()), random)
        deviations = _drawn(spread.deviations[each], int(job.sum()), random)
        around[job] = np.repeat(widths, bags.sizes[bag]) * deviations
    factors = np.exp(around)
    run_times: Floats = factors * np.repeat(means / bags.means(factors), bags.sizes)
    return run_times


def _classes(means: Floats, sizes: Integers) -> Integers:
    """The class of each bag, or -1 if it has one job only."""
    decades = np.minimum(np.log10(np.maximum(means, 1)).astype(np.int64), _DECADES - 1)
    return np.where(sizes > 1, decades + _DECADES * (sizes >= _LARGE), -1)


def _quantiles(values: Floats) -> list[float]:
    if not len(values):
        return []
    found = np.quantile(values, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.round(found, 5).tolist()


def _drawn(quantiles: list[float], count: int, random: np.random.Generator) -> Floats:
    """So many values, spread evenly over the quantiles; without any, all are 0."""
    if not quantiles:
        return np.zeros(count)
    ranks = random.permutation((np.arange(count) + random.random(count)) / count)
    return np.interp(ranks * len(quantiles) - 0.5, np.arange(len(quantiles)), quantiles)


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
