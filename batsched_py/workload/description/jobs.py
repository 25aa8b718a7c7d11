"""Which jobs a log is characterised by, how they are distributed, and the bags of tasks that they form."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from batsched_py.workload.swf.conventions import COMPLETED
from batsched_py.workload.swf.log import Floats, Integers, SwfLog


def characterised(log: SwfLog) -> SwfLog:
    """The jobs that completed and asked for processors; also those of run time 0, which took under a second.

    Minh and Wolters take jobs that finished successfully only, as the run time of the others is that of a
    failure or of an impatient user. A log that records no job as completed is taken whole, but for jobs that
    were cancelled while they waited.
    """
    jobs = jobs_that_ran(log)
    completed = jobs.status == COMPLETED
    return jobs.select(completed) if completed.any() else jobs


def tells_completed(log: SwfLog) -> bool:
    """Whether a log says of any job that it completed."""
    return bool((log.status == COMPLETED).any())


def jobs_that_ran(log: SwfLog) -> SwfLog:
    """The jobs that ran and asked for processors, however they ended: they make up the load of a log.

    Models learn from them. In many logs a third of the jobs failed or were killed, and these are the long
    ones: the jobs of LLNL Thunder that completed are 86 % of all, and 40 % of its work.
    """
    return log.select((log.run_time >= 0) & (requested(log) > 0) & ~log.never_started)


def requested(log: SwfLog) -> Integers:
    """The processors that each job asked for, else those it was allocated."""
    return np.where(log.requested_processors > 0, log.requested_processors, log.allocated_processors)


#: What logarithms take for a run time of 0 s.
SHORTEST: Final = 0.5


def log_run_times(run_times: Floats) -> Floats:
    """Natural logarithms of run times; one that is recorded as 0 s counts as half a second.

    >>> log_run_times(np.array([0.0, 0.5, 1.0])).round(3).tolist()
    [-0.693, -0.693, 0.0]
    """
    return np.log(np.maximum(run_times, SHORTEST))


#: Up to how many processors a job is narrow, and up to how many seconds it is short.
NARROW: Final = 8
SHORT: Final = 3600.0
#: The classes that this makes; in their numbers, a short job counts 2 and a wide one 1.
CLASSES: Final = ("long, narrow", "long, wide", "short, narrow", "short, wide")


def class_numbers(run_times: ArrayLike, sizes: ArrayLike) -> NDArray[np.int8]:
    """The place of each job's class in :data:`CLASSES`."""
    is_short: NDArray[Any] = np.asarray(run_times) <= SHORT
    is_wide: NDArray[Any] = np.asarray(sizes) > NARROW
    return 2 * is_short.astype(np.int8) + is_wide.astype(np.int8)


def work_by_class(log: SwfLog) -> dict[str, float]:
    """The share of each class in the processor-seconds of all jobs."""
    sizes = requested(log)
    work = np.bincount(class_numbers(log.run_time, sizes), log.run_time * sizes, len(CLASSES))
    return dict(zip(CLASSES, (work / (work.sum() or 1.0)).tolist(), strict=True))


def size_classes(sizes: NDArray[Any]) -> Integers:
    """Classes of sizes: 1, 2 or 3, 4 to 7, ..."""
    return np.floor(np.log2(sizes)).astype(np.int64)


SHOWN_VALUES: Final = 10


class Distribution(Struct, frozen=True, kw_only=True):
    """How some values are distributed."""

    count: int
    mean: float
    standard_deviation: float
    percentiles: list[float]
    """The 0th, 1st, ... 100th percentile: the least value, ... the median at 50, ... the largest."""
    frequent: dict[str, float]
    """The most frequent values, and the share of each."""

    @property
    def median(self) -> float:
        """The value in the middle."""
        return self.percentiles[50]


class Distributions(Struct, frozen=True, kw_only=True):
    """The distributions of a log."""

    run_time: Distribution
    size: Distribution
    """Processors that jobs asked for."""
    interarrival: Distribution | None
    requested_time: Distribution | None
    accuracy: Distribution | None
    """Run time over requested time; above 1 where a job ran for longer than it said it would."""
    powers_of_two: float
    """Share of the parallel jobs whose size is a power of two."""
    serial: float
    """Share of the jobs that asked for one processor."""
    popularity_classes: int
    """In how many classes Minh and Wolters put sizes, by how many jobs ask for each (their table IV)."""


def distributions(log: SwfLog) -> Distributions:
    """The distributions of a log that has at least one job with a run time and a size."""
    sizes = requested(log)
    parallel = sizes[sizes > 1]
    estimated = log.select(log.requested_time > 0)
    run_time = distribution(log.run_time)
    size = distribution(sizes[sizes > 0])
    assert run_time is not None and size is not None
    return Distributions(
        run_time=run_time,
        size=size,
        interarrival=distribution(np.diff(log.submit)),
        requested_time=distribution(estimated.requested_time),
        accuracy=distribution(estimated.run_time / estimated.requested_time),
        powers_of_two=float(np.mean(parallel & (parallel - 1) == 0)) if len(parallel) else 0.0,
        serial=float(np.mean(sizes == 1)),
        popularity_classes=popularity_classes(sizes),
    )


def popularity_classes(sizes: Integers) -> int:
    """The highest class of a size: 1 plus the logarithm to base 2 of how many jobs ask for it, rounded.

    >>> popularity_classes(np.repeat([4, 10, 16], [250, 300, 1]))
    9
    """
    jobs = np.unique(sizes, return_counts=True)[1]
    return 1 + int(np.rint(np.log2(jobs.max())))


def distribution(values: NDArray[Any]) -> Distribution | None:
    """The distribution of some values, if there are any."""
    if not len(values):
        return None
    distinct, counts = np.unique(values, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:SHOWN_VALUES]
    return Distribution(
        count=len(values),
        mean=float(values.mean()),
        standard_deviation=float(values.std()),
        percentiles=np.percentile(values, np.arange(101)).tolist(),
        frequent={f"{distinct[i]:g}": float(counts[i] / len(values)) for i in most if counts[i] > 1},
    )


def kolmogorov_smirnov(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The largest distance between the cumulative distributions of two samples; 1 where one of them is empty.

    >>> kolmogorov_smirnov(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6]))
    0.5
    """
    if not (len(first) and len(second)):
        return 1.0
    first, second = np.sort(first), np.sort(second)
    values = np.concatenate([first, second])
    below_first = np.searchsorted(first, values, side="right") / len(first)
    below_second = np.searchsorted(second, values, side="right") / len(second)
    return float(np.abs(below_first - below_second).max())


class SizeClass(Struct, frozen=True, kw_only=True):
    """Jobs of about the same size."""

    size_from: int
    size_to: int
    share_of_jobs: float
    mean_run_time: float
    median_run_time: float


class Correlation(Struct, frozen=True, kw_only=True):
    """How run time and size go together."""

    pearson: float | None
    """Pearson's coefficient of run time and requested processors; none where one of them does not vary."""
    spearman: float | None
    """That of their ranks, which no outlier can dominate."""
    by_size: list[SizeClass]
    """Classes of sizes from one power of two to below the next."""


def correlation(log: SwfLog) -> Correlation:
    """Describe how run time and size of a log's jobs go together."""
    sizes = requested(log)
    classes = size_classes(sizes)
    return Correlation(
        pearson=pearson(log.run_time, sizes),
        spearman=spearman(log.run_time, sizes),
        by_size=[
            SizeClass(
                size_from=2**power,
                size_to=2 ** (power + 1) - 1,
                share_of_jobs=float(np.mean(classes == power)),
                mean_run_time=float(log.run_time[classes == power].mean()),
                median_run_time=float(np.median(log.run_time[classes == power])),
            )
            for power in np.unique(classes).tolist()
        ],
    )


def pearson(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Pearson's coefficient of correlation, unless one of the two does not vary."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Spearman's coefficient, which is Pearson's of the ranks, unless one of the two does not vary."""
    return pearson(_ranks(first), _ranks(second))


def _ranks(values: NDArray[Any]) -> Floats:
    """The rank of each value; equal ones share the mean of theirs."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


Indices = NDArray[np.intp]
Column = TypeVar("Column", Floats, Integers)

#: Nearly 90 % of the times between similar jobs were shorter in the logs of the paper.
DELTA: Final = 100.0
#: The six attributes that the jobs of a bag share.
ATTRIBUTES: Final = ("user", "group", "queue", "executable", "requested_time", "requested_processors")
#: Classes of bags by their mean run time, in seconds, as in the paper's Table III.
RUN_TIME_CLASSES: Final = (0.0, 1e2, 1e3, 1e4, 1e5, 1e6)
SHORT_DURATION: Final = 1000.0


@dataclass(frozen=True, eq=False)
class Bags:
    """The bags of a log; bags of one job included, as in the definition.

    Bags of tasks: jobs that a user submits in one go and that look alike (Minh and Wolters, definition
    II-C).

    A bag is a longest run of jobs of which each follows the one before it within ``delta`` seconds, and
    which agree in six attributes: user, group, queue, executable, requested time and requested
    processors. *Contiguous* bags are runs of the whole log, as in the paper, so that another user's job
    in between ends them. *Per key* they are runs of the jobs with the same attributes, regardless of
    other jobs in between.
    """

    order: Indices
    """The positions of the jobs in the log, bag after bag."""
    sizes: Integers
    """Jobs of each bag."""

    @cached_property
    def starts(self) -> Indices:
        """Where each bag begins in ``order``."""
        return np.cumsum(self.sizes) - self.sizes

    def means(self, values: Floats) -> Floats:
        """The mean over each bag of something that each job of the log has."""
        return np.add.reduceat(values[self.order], self.starts) / self.sizes

    def deviations(self, values: Floats) -> Floats:
        """The standard deviation within each bag."""
        around = values[self.order] - np.repeat(self.means(values), self.sizes)
        return np.sqrt(np.add.reduceat(around**2, self.starts) / self.sizes)

    def first(self, values: Column) -> Column:
        """The value of the first job of each bag."""
        return values[self.order[self.starts]]

    def last(self, values: Floats) -> Floats:
        """The value of the last job of each bag."""
        return values[self.order[self.starts + self.sizes - 1]]


class BagClass(Struct, frozen=True, kw_only=True):
    """Bags whose mean run time lies between two bounds."""

    run_time_from: float
    run_time_to: float
    bags: int
    variability: float | None
    """The mean of the standard deviations of the run times within each bag, in seconds."""


class BagStatistics(Struct, frozen=True, kw_only=True):
    """What the bags of two jobs or more are like."""

    share_of_jobs: float
    """Share of all jobs that belong to such a bag."""
    bags: int
    sizes: Distribution | None
    size_classes: list[int]
    """How many bags have 1 job, 2 or 3, 4 to 7, and so on."""
    zipf_exponent: float
    """Of the Zipf distribution that fits the sizes of all bags best, those of one job included."""
    run_times: Distribution | None
    """The run time of a bag is the mean of its jobs'."""
    variability: list[BagClass]
    submission_durations: Distribution | None
    """From the first to the last submission of a bag."""
    share_of_short_submissions: float | None
    """Share of the bags that are submitted within 1000 s."""


class BagsOfTasks(Struct, frozen=True, kw_only=True):
    """The bags of a log by both definitions."""

    delta: float
    share_within_delta: float | None
    """Share of the times between successive similar jobs that are not longer than ``delta``."""
    contiguous: BagStatistics
    per_key: BagStatistics


def bags_of_tasks(log: SwfLog, delta: float = DELTA) -> BagsOfTasks:
    """Describe the bags of a log."""
    between = repeat_gaps(log)
    return BagsOfTasks(
        delta=delta,
        share_within_delta=float(np.mean(between <= delta)) if len(between) else None,
        contiguous=bag_statistics(log, contiguous_bags(log, delta)),
        per_key=bag_statistics(log, per_key_bags(log, delta)),
    )


def repeat_gaps(log: SwfLog) -> Floats:
    """The times between successive jobs that agree in the six attributes."""
    keys = bag_keys(log)
    return np.diff(log.submit)[keys[1:] == keys[:-1]]


def bag_keys(log: SwfLog) -> Integers:
    """A number for each combination of the six attributes."""
    keys = np.zeros(len(log), dtype=np.int64)
    for name in ATTRIBUTES:
        column = requested(log) if name == "requested_processors" else getattr(log, name)
        values, codes = np.unique(column, return_inverse=True)
        _, keys = np.unique(keys * len(values) + codes, return_inverse=True)
    return keys


def contiguous_bags(log: SwfLog, delta: float = DELTA) -> Bags:
    """The bags that are runs of the whole log."""
    return _runs(log, bag_keys(log), np.arange(len(log)), delta)


def per_key_bags(log: SwfLog, delta: float = DELTA) -> Bags:
    """The bags that are runs of the jobs with the same attributes."""
    keys = bag_keys(log)
    return _runs(log, keys, np.argsort(keys, kind="stable"), delta)


def _runs(log: SwfLog, keys: Integers, order: Indices, delta: float) -> Bags:
    keys, submit = keys[order], log.submit[order]
    ends = (keys[1:] != keys[:-1]) | (np.diff(submit) > delta)
    borders = np.concatenate([[0], np.flatnonzero(ends) + 1, [len(order)]])
    return Bags(order, np.diff(borders))


def bag_statistics(log: SwfLog, bags: Bags) -> BagStatistics:
    """Describe some bags of a log."""
    large = bags.sizes > 1
    run_times = bags.means(log.run_time)[large]
    deviations = bags.deviations(log.run_time)[large]
    durations = (bags.last(log.submit) - bags.first(log.submit))[large]
    classes = []
    for low, high in pairwise(RUN_TIME_CLASSES):
        inside = (run_times >= low) & (run_times < high)
        count, mean = int(inside.sum()), float(deviations[inside].mean()) if inside.any() else None
        classes.append(BagClass(run_time_from=low, run_time_to=high, bags=count, variability=mean))
    return BagStatistics(
        share_of_jobs=float(bags.sizes[large].sum() / bags.sizes.sum()),
        bags=int(large.sum()),
        sizes=distribution(bags.sizes[large]),
        size_classes=np.bincount(size_classes(bags.sizes)).tolist(),
        zipf_exponent=zipf_exponent(bags.sizes),
        run_times=distribution(run_times),
        variability=classes,
        submission_durations=distribution(durations),
        share_of_short_submissions=float(np.mean(durations < SHORT_DURATION)) if large.any() else None,
    )


def zipf_exponent(sizes: Integers) -> float:
    """The exponent a of largest likelihood when a size s has a probability in proportion to ``s ** -a``.

    Sizes go up to the largest one seen.
    """
    logarithms = np.log(np.arange(1, sizes.max() + 1))
    mean = float(np.log(sizes).mean())
    exponents = np.arange(0.0, 6.0, 0.01)
    costs = [exponent * mean + np.log(np.exp(-exponent * logarithms).sum()) for exponent in exponents]
    return float(exponents[int(np.argmin(costs))])
