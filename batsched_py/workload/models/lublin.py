"""The model of Lublin and Feitelson (2003), fitted by them to three large logs of the nineties.

Sizes: a job is serial with some probability; else the logarithm of its size is uniform between two bounds
with one probability and between the second and a third with the rest, and rounded with some probability,
which makes the size a power of two. Run times: the logarithm is one of two gamma variates, and which of
them depends on the size, so that large jobs run longer. Arrivals: the time to the next job in rush hours is
the exponential of a gamma variate; it is spent along the day in half-hour slots, of which each costs as
much as its weight, and the weights follow a gamma density. Interactive and batch jobs have parameters of
their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log2
from typing import TYPE_CHECKING, Annotated, Final, Literal

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.workload.models import Model
from batsched_py.workload.swf.log import Floats, Integers, Random, SwfLog

if TYPE_CHECKING:
    from batsched_py.workload.models.slots import SlotsParameters

_SLOTS: Final = 48
_SLOT: Final = 1800.0
#: The first half hour of the day that the gamma density of the weights is laid over: the day begins at 5:30.
_DAWN: Final = 11
#: No run time is longer than exp(12) s, about two days, and no rush-hour gap than exp(13) s, about five.
LONGEST: Final = 12.0
_LONGEST_GAP: Final = 13.0
_PUBLISHED_SIZE: Final = 128


class JobClass(Struct, frozen=True):
    """The published parameters of one type of jobs."""

    serial: float
    """Probability of one processor."""
    power_of_two: float
    """Probability of a power of two."""
    low: float
    middle: float
    high: float
    """Bounds of the logarithm of the size, to the base 2."""
    below: float
    """Probability that the logarithm lies below the middle."""
    first: tuple[float, float]
    """Shape and scale of the gamma distribution of the logarithm of short run times."""
    second: tuple[float, float]
    """Of long ones."""
    slope: float
    start: float
    """A run time is a short one with the probability ``slope * size + start``."""
    gap: tuple[float, float]
    """Shape and scale of the logarithm of the gaps in rush hours."""
    whole_day: float
    """Factor of the shape that extends it to all hours."""
    day: tuple[float, float]
    """Shape and scale of the density of arrivals along the day, in half hours."""


BATCH: Final = JobClass(
    serial=0.2927, power_of_two=0.6686, low=1.2, middle=5.0, high=7.0, below=0.875,
    first=(6.57, 0.823), second=(639.1, 0.0156), slope=-0.003, start=0.6986,
    gap=(6.0415, 0.8531), whole_day=1.0519, day=(6.1271, 5.2740),
)  # fmt: skip
INTERACTIVE: Final = JobClass(
    serial=0.1541, power_of_two=0.625, low=1.0, middle=3.0, high=5.5, below=0.705,
    first=(3.8351, 0.6605), second=(7.073, 0.6856), slope=-0.0118, start=0.9156,
    gap=(6.5510, 0.6621), whole_day=0.9797, day=(8.9186, 3.6680),
)  # fmt: skip
#: For all jobs, without a distinction of types.
EITHER: Final = JobClass(
    serial=0.244, power_of_two=0.576, low=0.8, middle=4.5, high=7.0, below=0.86,
    first=(4.2, 0.94), second=(312.0, 0.03), slope=-0.0054, start=0.78,
    gap=(10.2303, 0.4871), whole_day=1.0225, day=(8.1737, 3.9631),
)  # fmt: skip

#: The numbers of the queues of both types, by the convention of the Standard Workload Format.
INTERACTIVE_QUEUE: Final = 0
BATCH_QUEUE: Final = 1


@dataclass
class Lublin(Model):
    """The Lublin-Feitelson model with its published parameters, for batch and interactive jobs."""

    name = "lublin"

    types: Annotated[
        Literal["both", "batch", "interactive", "either"],
        Meta(description="Which jobs; either: the published parameters for all jobs alike."),
    ] = "both"
    processors: Annotated[
        int, Meta(ge=8, description="Size of the machine; the bounds of sizes move with it.")
    ] = _PUBLISHED_SIZE

    def generate(self, jobs: int, seed: int) -> SwfLog:
        """The jobs of the types that come first."""
        random = np.random.default_rng(seed)
        chosen = {
            "both": {INTERACTIVE_QUEUE: INTERACTIVE, BATCH_QUEUE: BATCH},
            "batch": {BATCH_QUEUE: BATCH},
            "interactive": {INTERACTIVE_QUEUE: INTERACTIVE},
            "either": {-1: EITHER},
        }[self.types]
        submit = np.concatenate([arrivals(each, jobs, random) for each in chosen.values()])
        queue = np.repeat(list(chosen), jobs)
        first = np.argsort(submit, kind="stable")[:jobs]
        submit, queue = submit[first], queue[first]
        sizes, run_times = np.ones(jobs, dtype=np.int64), np.ones(jobs)
        moved = log2(self.processors / _PUBLISHED_SIZE)
        for number, each in chosen.items():
            mine = queue == number
            middle, high = each.middle + moved, each.high + moved  # as is advised for another machine
            resized = replace(each, low=min(each.low, middle), middle=middle, high=high)
            sizes[mine] = job_sizes(resized, int(mine.sum()), random)
            run_times[mine] = job_run_times(each, sizes[mine], random)
        columns = {
            "submit": np.floor(submit),
            "run_time": run_times,
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "queue": queue,
        }
        return self.to_log(columns, self.processors, seed)


def job_sizes(jobs: JobClass | SlotsParameters, count: int, random: Random) -> Integers:
    """Processors of each job."""
    kind = random.random(count)
    below = random.random(count) <= jobs.below
    lower, upper = np.where(below, jobs.low, jobs.middle), np.where(below, jobs.middle, jobs.high)
    logarithm = random.uniform(lower, upper)
    rounded = np.where(kind <= jobs.serial + jobs.power_of_two, np.floor(logarithm + 0.5), logarithm)
    sizes = np.floor(2**rounded + 0.5).astype(np.int64)
    return np.where(kind <= jobs.serial, 1, sizes)


def job_run_times(jobs: JobClass, sizes: Integers, random: Random) -> Floats:
    """Seconds that each job runs; one that is too long is drawn again."""
    run_times = np.zeros(len(sizes))
    left = np.arange(len(sizes))
    short = np.clip(jobs.slope * sizes + jobs.start, 0, 1)
    while len(left):
        first = random.random(len(left)) <= short[left]
        shape, scale = (np.where(first, a, b) for a, b in zip(jobs.first, jobs.second, strict=True))
        run_times[left] = random.gamma(shape, scale)
        left = left[run_times[left] > LONGEST]
    return np.floor(np.exp(run_times))


def arrivals(jobs: JobClass, count: int, random: Random) -> Floats:
    """When each job comes, in seconds since midnight.

    A gap is consumed by the slots of the day: each one uses up its weight. So the sums of the gaps are
    turned into times by the inverse of the weights' sums.
    """
    shape, scale = jobs.gap
    gaps = random.gamma(shape * jobs.whole_day, scale, count)
    while (long := gaps > _LONGEST_GAP).any():
        gaps[long] = random.gamma(shape * jobs.whole_day, scale, int(long.sum()))
    spent = np.cumsum(np.exp(gaps) / _SLOT)
    weights = slot_weights(jobs)
    days, rest = np.divmod(spent, weights.sum())
    ends = np.cumsum(weights)
    slot = np.minimum(np.searchsorted(ends, rest), _SLOTS - 1)
    inside = (rest - (ends - weights)[slot]) / weights[slot]
    return (days * _SLOTS + slot + inside) * _SLOT


def slot_weights(jobs: JobClass) -> Floats:
    """The weights of the half hours of a day from midnight, with a mean of 1.

    They are those of the gamma density over the half hours 11 to 58, of which those after midnight belong to
    the beginning of the day.
    """
    shape, scale = jobs.day
    fine = 200
    points = (np.arange(_SLOTS * fine) + 0.5) / fine + _DAWN - 0.5
    logarithms = (shape - 1) * np.log(points) - points / scale - lgamma(shape) - shape * np.log(scale)
    masses = np.exp(logarithms).reshape(_SLOTS, fine).mean(axis=1)
    weights = np.roll(masses, _DAWN - 1)
    return weights / weights.mean()
