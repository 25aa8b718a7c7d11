"""What is learned of run times and sizes, and the sizes of programs (stages 1, 2 and 4 of Minh and Wolters).

All bags of a program have the same size. Sizes are drawn from those of the log's jobs, separately for
programs that have one job on a day on which they are run, two or three, four to seven, and so on: many jobs
at once are mostly small. They are given to programs in the order of hidden values (``hidden``). Run
times follow, given the sizes (:class:`Means`).
"""

import warnings
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.description.jobs import SHORTEST, Bags, log_run_times, requested, size_classes
from batsched_py.workload.models import Columns, Progress
from batsched_py.workload.swf.log import DAY, HOUR, Floats, Integers, Random, SwfLog

Scale = Literal["log", "linear"]

_MOST_CLUSTERS: Final = 16
_SAMPLE: Final = 20_000
_MOST_STEPS: Final = 200
_LEAST_VARIANCE: Final = 1e-3


class Mixture(Struct):
    """Clusters of run times; on the logarithmic scale all numbers are those of natural logarithms.

    Run times as a mixture of Gaussians, with as many as Bayes' information criterion asks for (stage 1).
    """

    scale: Scale
    weights: list[float]
    means: list[float]
    deviations: list[float]
    least: float
    """The shortest run time, in seconds."""
    most: float

    def to_scale(self, run_times: Floats) -> Floats:
        """Run times as the clusters see them."""
        return log_run_times(run_times) if self.scale == "log" else run_times

    def from_scale(self, values: Floats, longest: Floats | None = None) -> Floats:
        """Whole seconds, not beyond the longest; values beyond are mirrored, as a cut would pile them up.

        Those nearer to what stands for 0 s than to 1 s are 0 s, on the logarithmic scale.
        """
        low = self.to_scale(np.array(self.least))
        high = self.to_scale(np.array(self.most) if longest is None else longest)
        below = np.where(values > high, 2 * high - values, values)
        inside = np.clip(np.where(below < low, 2 * low - below, below), low, high)
        seconds = np.exp(inside) if self.scale == "log" else inside
        return np.where(seconds < SHORTEST**0.5, 0.0, np.maximum(np.rint(seconds), 1.0))

    def likeliest(self, run_times: Floats) -> Integers:
        """The cluster that each run time most likely comes from."""
        return self._responsibilities(run_times).argmax(axis=1)

    def sampled(self, run_times: Floats, random: Random) -> Integers:
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
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise InputError(
            "fitting a mixture needs scikit-learn; install it with: pip install 'batsched-py[models]'"
        ) from None
    whole = Mixture(scale, [], [], [], float(run_times.min()), float(run_times.max()))
    values = np.sort(whole.to_scale(run_times))
    if len(values) > _SAMPLE:
        values = np.quantile(values, (np.arange(_SAMPLE) + 0.5) / _SAMPLE)
    most = min(_MOST_CLUSTERS, len(np.unique(values)))
    least_variance = _LEAST_VARIANCE if scale == "log" else _LEAST_VARIANCE * float(values.var() or 1.0)
    fits = []
    for clusters in range(1, most + 1):
        mixture = GaussianMixture(
            clusters,
            covariance_type="spherical",
            init_params="k-means++",
            random_state=0,
            max_iter=_MOST_STEPS,
            reg_covar=least_variance,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that more steps would change the last digits
            fits.append(mixture.fit(values[:, None]))
        if progress is not None:
            progress(clusters, most)
    best = min(fits, key=lambda mixture: float(mixture.bic(values[:, None])))
    order = np.argsort(best.means_.ravel())
    whole.weights = best.weights_[order].tolist()
    whole.means = best.means_.ravel()[order].tolist()
    whole.deviations = np.sqrt(best.covariances_[order]).tolist()
    return whole


_DECADES: Final = 6
_LARGE: Final = 4
_QUANTILES: Final = 48


class Spread(Struct):
    """For each class of bags, quantiles of how widely their run times spread, and of how jobs deviate.

    Most bags are of jobs that run equally long; in some a few jobs end early or go on for much longer. So
    each bag draws how widely its run times spread, and each of its jobs how many times that it deviates,
    both from what the log shows for bags of about the same mean run time, and of two or three jobs or
    more.
    """

    widths: list[list[float]]
    """The mean of the absolute differences of logarithms to that of the mean."""
    deviations: list[list[float]]
    """The difference of a job's logarithm to that of the mean, over the width of its bag."""


def fit_spread(run_times: Floats, bags: Bags) -> Spread:
    """Learn from the bags of two jobs or more."""
    means = bags.means(run_times)
    around = log_run_times(run_times) - np.repeat(log_run_times(means), bags.sizes)
    widths = np.add.reduceat(np.abs(around), bags.starts) / bags.sizes
    classes = _classes(means, bags.sizes)
    of_jobs, width_of_jobs = np.repeat(classes, bags.sizes), np.repeat(widths, bags.sizes)
    wide = width_of_jobs > 0
    deviations, of_jobs = around[wide] / width_of_jobs[wide], of_jobs[wide]
    return Spread(
        widths=[_quantiles(widths[classes == each]) for each in range(2 * _DECADES)],
        deviations=[_quantiles(deviations[of_jobs == each]) for each in range(2 * _DECADES)],
    )


def spread_out(spread: Spread, means: Floats, bags: Bags, random: Random) -> Floats:
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
    return np.asarray(factors * np.repeat(means / bags.means(factors), bags.sizes))


def _classes(means: Floats, sizes: Integers) -> Integers:
    """The class of each bag, or -1 if it has one job only."""
    decades = np.minimum(np.log10(np.maximum(means, 1)).astype(np.int64), _DECADES - 1)
    return np.where(sizes > 1, decades + _DECADES * (sizes >= _LARGE), -1)


def _quantiles(values: Floats) -> list[float]:
    ranks = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.round(np.quantile(values, ranks), 5).tolist() if len(values) else []


def _drawn(quantiles: list[float], count: int, random: Random) -> Floats:
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
    stretch: list[float] = []
    """By which factor bags of these sizes run longer than the clusters say; 1 where there is none."""


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
            _sizes(of_bags[inside], bags.sizes[inside])
            for inside in (of_programs == each for each in range(BAG_CLASSES))
        ],
        pairs=[
            count_pairs(clusters[inside], of_bags[inside], bags.sizes[inside])
            for inside in (classes == each for each in range(BAG_CLASSES))
        ],
        clusters=[
            _cluster(values[of_jobs == number], sizes[of_jobs == number], deviation)
            for number, deviation in enumerate(mixture.deviations)
        ],
        spread=fit_spread(jobs.run_time, bags),
        longest=np.maximum(largest_of(size_classes(sizes), jobs.run_time), 1).tolist(),
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
    return np.minimum(size_classes(sizes), BAG_CLASSES - 1)


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


def _sizes(sizes: Integers, jobs: Integers) -> Sizes:
    known, codes = np.unique(sizes, return_inverse=True)
    return Sizes(known.tolist(), np.bincount(codes, jobs).astype(np.int64).tolist())


def _cluster(values: Floats, sizes: Integers, deviation: float) -> Cluster:
    """A straight line through the jobs of a cluster, and what they deviate from it."""
    logarithms = np.log(sizes)
    slope = centre = 0.0
    if len(values) > 2 and np.ptp(logarithms) > 0:
        centre = float(logarithms.mean())
        slope = float(np.cov(logarithms, values)[0, 1] / logarithms.var(ddof=1))
        deviation = float((values - slope * (logarithms - centre)).std())
    return Cluster(slope, centre, deviation)


def largest_of(groups: Integers, values: Floats) -> Floats:
    """The largest value of each group, at least 0."""
    largest = np.zeros(int(groups.max()) + 1)
    np.maximum.at(largest, groups, values)
    return largest


#: No size is stretched by more.
_MOST_STRETCH: Final = 2.0
#: From at least so many run times in ascending order each bag takes the one at its place.
_FEWEST: Final = 32


def draw_run_times(shapes: Shapes, means: Floats, sizes: Integers, bags: Bags, random: Random) -> Floats:
    """The run time of each job, given the mean and the size of each bag, in whole seconds."""
    longest = np.repeat(np.array(shapes.longest)[size_classes(sizes)], bags.sizes)
    run_times = np.rint(spread_out(shapes.spread, np.maximum(means, SHORTEST), bags, random))
    return np.clip(run_times, np.rint(shapes.mixture.least), longest)


def ranks_within(groups: Integers, values: Floats) -> Floats:
    """The place of each value among those of its group, as a share of their number, from 0 to below 1."""
    order = np.lexsort((values, groups))
    count = np.bincount(groups)
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values)) - np.repeat(np.cumsum(count) - count, count)
    return ranks / count[groups]


class Means:
    """Mean run times for bags of each class and size, to be given out in the order of hidden values.

    The mean run time of a bag is drawn from how often the log has sizes and clusters of run times
    together, separately for bags of one job, of two or three, and so on, as large bags are often made of
    other jobs than small ones. It is

        mean + slope * (log(size) - centre) + deviation * standard normal

    on the scale of the mixture, with the mean of the cluster; the slope says how run time grows with
    size. These are given to bags in the order of hidden values (``hidden``), so that they persist as in
    the log, whatever their distribution is. Around the mean the jobs of a bag differ (:class:`Spread`).
    """

    def __init__(self, shapes: Shapes, bags: Bags, sizes: Integers, random: Random) -> None:
        self._classes = bag_classes(bags.sizes)
        kinds, codes, counts = np.unique(
            np.stack([self._classes, sizes]), axis=1, return_inverse=True, return_counts=True
        )
        self._kinds = codes.ravel()
        self._of_kind = counts[self._kinds]
        drawn = np.maximum(counts, _FEWEST)
        self._drawn = drawn[self._kinds]
        self._first = (np.cumsum(drawn) - drawn)[self._kinds]
        jobs = np.bincount(self._kinds, bags.sizes)
        whose = np.repeat(np.arange(len(drawn)), drawn)
        clusters = _clusters(_raked(shapes, kinds[0], kinds[1], jobs), drawn, random)
        run_times = _run_times(shapes, clusters, kinds[1][whose], random)
        self._run_times = run_times[np.lexsort((run_times, whose))]

    def by(self, values: Floats) -> Floats:
        """The mean run time of each bag: the least one of its kind for the least value, and so on.

        The only bag of its kind takes one by its place among all bags of its class.
        """
        turns = ranks_within(self._kinds, values) + ranks_within(self._classes, values) / self._of_kind
        return self._run_times[self._first + (turns * self._drawn).astype(np.int64)]


def _run_times(shapes: Shapes, clusters: Integers, sizes: Integers, random: Random) -> Floats:
    """A run time for each pair of a cluster and a size."""
    lines = np.array([(each.slope, each.centre, each.deviation) for each in shapes.clusters])
    slope, centre, deviation = lines[clusters].T
    middle = np.array(shapes.mixture.means)[clusters] + slope * (np.log(sizes) - centre)
    values = middle + deviation * random.standard_normal(len(clusters))
    longest = np.array(shapes.longest)[size_classes(sizes)]
    run_times = shapes.mixture.from_scale(values, longest)
    if shapes.stretch:
        run_times = np.minimum(run_times * np.array(shapes.stretch)[size_classes(sizes)], longest)
    return run_times


def stretched(shapes: Shapes, run_times: Floats, sizes: Integers, trial: Columns, step: float) -> list[float]:
    """The stretch of each class of sizes, corrected by what a trial lacks of the log's work.

    Clusters tell the run times of each size as well as a few Gaussians can. What they miss in wide jobs is
    much of the load. A step of 1 makes up for all that is missing.
    """
    classes = len(shapes.longest)
    wanted = np.bincount(size_classes(sizes), run_times, classes) / np.bincount(
        size_classes(sizes), minlength=classes
    ).clip(1)
    of_trial = size_classes(trial["requested_processors"])
    count = np.bincount(of_trial, minlength=classes)
    found = np.bincount(of_trial, trial["run_time"], classes) / count.clip(1)
    known = (wanted > 0) & (found > 0)
    ratio = np.divide(wanted, found, out=np.ones(classes), where=known)
    before = np.array(shapes.stretch or [1.0] * classes)
    return np.clip(before * ratio**step, 1 / _MOST_STRETCH, _MOST_STRETCH).tolist()


def _clusters(shares: Floats, counts: Integers, random: Random) -> Integers:
    """For each row of shares so many clusters, in proportion to them."""
    cumulated = np.cumsum(shares, axis=1)
    cumulated /= cumulated[:, -1:]
    chosen = [
        np.searchsorted(row, (np.arange(count) + random.random()) / count, side="right")
        for row, count in zip(cumulated, counts.tolist(), strict=True)
    ]
    return np.minimum(np.concatenate(chosen), shares.shape[1] - 1)


def _raked(shapes: Shapes, classes: Integers, sizes: Integers, jobs: NDArray[Any]) -> Floats:
    """The shares of clusters of run times for each class of bags and size, of which there are so many jobs.

    Where these come together in other numbers than in the log, the log's shares are raked (by proportional
    fitting) until the clusters of each class of bags, and those of each size, are the log's.
    """
    count = len(shapes.mixture.weights)
    known, codes = np.unique(np.concatenate([each.sizes for each in shapes.pairs]), return_inverse=True)
    table = np.zeros((len(shapes.pairs), len(known), count))
    bag_class = np.repeat(np.arange(len(shapes.pairs)), [len(each.sizes) for each in shapes.pairs])
    clusters = np.concatenate([each.clusters for each in shapes.pairs]).astype(np.int64)
    np.add.at(table, (bag_class, codes, clusters), np.concatenate([each.counts for each in shapes.pairs]))
    place = np.searchsorted(known, sizes)
    of_class, of_size = shares_of(table.sum(axis=1))[classes], shares_of(table.sum(axis=0))[place]
    shares = shares_of(table[classes, place] + PRIOR * of_size + LITTLE)
    for _ in range(RAKES):
        for groups, wanted in ((classes, of_class), (place, of_size)):
            found = np.zeros((int(groups.max()) + 1, count))
            np.add.at(found, groups, shares * jobs[:, None])
            total = np.bincount(groups, jobs)
            aim = np.where(
                wanted.sum(axis=1, keepdims=True) > 0, wanted * total[groups][:, None], found[groups]
            )
            shares = shares_of(shares * aim / np.maximum(found[groups], LITTLE) + LITTLE)
    return shares


_BINS_PER_OCTAVE: Final = 2


class Requests(Struct):
    """How often which time was requested, by classes of run time; -1 where none was."""

    classes: list[int]
    times: list[float]
    counts: list[int]


def fit_requests(run_times: Floats, requested: Floats) -> Requests:
    """Learn from the jobs of a log."""
    known = np.where(requested > 0, requested, -1.0)
    rows, counts = np.unique(np.stack([_run_time_classes(run_times), known]), axis=1, return_counts=True)
    return Requests(rows[0].astype(np.int64).tolist(), rows[1].tolist(), counts.tolist())


def draw_requests(requests: Requests, run_times: Floats, random: Random) -> Floats:
    """A requested time for each run time: one of its class that is not below it, else whole hours."""
    drawn = np.full(len(run_times), -1.0)
    classes = _run_time_classes(run_times)
    known, times, counts = map(np.array, (requests.classes, requests.times, requests.counts))
    seen = np.unique(known)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        rows = known == seen[np.abs(seen - each).argmin()]
        said = rows & (times > 0)
        if said.any():
            chosen = at_least(run_times[members], times[said], counts[said], random)
            unsaid = counts[rows & ~said].sum() / counts[rows].sum()
            drawn[members] = np.where(random.random(len(members)) < unsaid, -1.0, chosen)
    return drawn


def at_least(run_times: Floats, times: Floats, weights: NDArray[Any], random: Random) -> Floats:
    """For each run time one of some ascending times that are not below it; whole hours beyond the largest."""
    cumulated = np.concatenate([[0], np.cumsum(weights)])
    least = cumulated[np.searchsorted(times, run_times)]
    drawn = least + random.random(len(run_times)) * (cumulated[-1] - least)
    chosen = times[np.clip(np.searchsorted(cumulated, drawn, side="right") - 1, 0, len(times) - 1)]
    return np.where(least < cumulated[-1], chosen, np.ceil(run_times / HOUR) * HOUR)


def _run_time_classes(run_times: Floats) -> Integers:
    return np.floor(_BINS_PER_OCTAVE * np.log2(np.maximum(run_times, 1))).astype(np.int64)
