"""The model of Minh and Wolters, to compare with: Algorithms 1 and 2 over the arrivals of ``realistic``.

It differs from the paper in two ways. Arrivals are those of the model ``realistic``, as the paper takes its
own from another one. And Gaussians are fitted to logarithms of run times unless ``run_times=linear`` is asked
for. The paper fits them to run times themselves and draws run times from them; such Gaussians hardly tell
short jobs apart, and draw negative run times, of which the paper says nothing.

As in the paper a bag ends at a size drawn from a Zipf distribution, or when no job comes in time. Sizes of
the log's bags have both causes, so generated ones are cut twice: 35 % of the jobs are in bags where HPC2N has
64 %.

Beside it stands what many papers use: Poisson arrivals, uniform run times and uniform sizes.

Both draw run times and sizes that do not make up the work of the log. So run times are stretched, by
as much as trials of fitting find, unless ``work=published`` is asked for.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from batsched_py.workload.description.jobs import (
    DELTA,
    NARROW,
    contiguous_bags,
    requested,
    zipf_exponent,
)
from batsched_py.workload.models import (
    WORK_HELP,
    Columns,
    LearningModel,
    Parameters,
    Progress,
    Work,
    arrivals,
)
from batsched_py.workload.models.arrivals import Cascade, Exponent, ZipfSizes
from batsched_py.workload.models.shapes import Mixture, Pairs, Scale, count_pairs, fit_mixture
from batsched_py.workload.swf.log import HOUR, Floats, Integers, Random, SwfLog, wall_clock

#: From so many seconds on, run times of wide jobs are stretched for the work of the log. These jobs are few
#: and do most of it, so the distributions of run times stay as they are.
LONG: Final = 6 * HOUR


class NaiveParameters(Parameters):
    """What is taken from the log."""

    interarrival: float
    """The mean time between arrivals."""
    longest: float
    largest: int
    size: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    """The mean size; 0 in files of earlier versions."""


@dataclass
class Naive(LearningModel):
    """Poisson arrivals of the log's rate, uniform run times and sizes; unrealistic.

    Sizes have the log's mean, and run times reach so far that their work is that of the log. With
    `work=published`, as many papers have it, both go up to the largest of the log, which is many times as
    much work.
    """

    name = "naive"

    work: Annotated[Work, Meta(description=WORK_HELP)] = "log"
    parameters: NaiveParameters | None = field(default=None, init=False)

    def learn(self, jobs: SwfLog, source: str, machine: int, progress: Progress | None) -> NaiveParameters:
        """Four numbers are enough."""
        return NaiveParameters(
            source=source,
            machine=machine,
            interarrival=float(np.diff(jobs.submit).mean()),
            longest=float(jobs.run_time.max()),
            largest=int(requested(jobs).max()),
            size=float(requested(jobs).mean()),
        )

    def draw(self, learned: NaiveParameters, jobs: int, random: Random) -> Columns:
        """Draw each job independently of the others."""
        has_mean = self.work == "log" and learned.size > 0
        largest = max(1, round(2 * learned.size) - 1) if has_mean else learned.largest
        sizes = random.integers(1, largest + 1, jobs)
        submit = np.floor(np.cumsum(random.exponential(learned.interarrival, jobs)))
        run_times = random.uniform(0, learned.longest, jobs)
        return {
            "submit": submit,
            "run_time": np.ceil(self.stretched(learned, run_times, sizes)),
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "user": np.arange(1, jobs + 1),
        }


class MinhWoltersParameters(Parameters):
    """What the model learns: the outcome of its first three stages, and the arrivals."""

    arrivals: Cascade
    mixture: Mixture
    parallelism: dict[str, int]
    """The class of each size: the rounded logarithm to the base 2 of how many jobs have it, plus 1."""
    pairs: Pairs
    zipf: ZipfSizes


@dataclass
class MinhWolters(LearningModel):
    """The published model: bags of Zipf sizes, whose jobs have one run time and one size.

    Its arrival process is that of another paper; the one of the model realistic is used instead. It clusters
    logarithms of run times unless told otherwise. It has no users and no estimates; each bag has a user of
    its own. Bags end twice, by their size and by a pause, so fewer jobs are in bags than in the log.
    """

    name = "minh-wolters"

    run_times: Annotated[Scale, Meta(description="What the Gaussians are fitted to.")] = "log"
    window: Annotated[
        float, Meta(ge=0, description="Jobs of a bag follow each other within so many seconds.")
    ] = DELTA
    zipf: Annotated[
        Exponent | None,
        Meta(description="The exponent of the sizes of bags; without it, the one fitted to the log."),
    ] = None
    work: Annotated[Work, Meta(description=WORK_HELP)] = "log"
    parameters: MinhWoltersParameters | None = field(default=None, init=False)

    def learn(
        self, jobs: SwfLog, source: str, machine: int, progress: Progress | None
    ) -> MinhWoltersParameters:
        """Stages 1 to 3."""
        mixture = fit_mixture(jobs.run_time, self.run_times, progress)
        sizes, bags = requested(jobs), contiguous_bags(jobs, self.window)
        return MinhWoltersParameters(
            source=source,
            machine=machine,
            arrivals=arrivals.fit_cascade(wall_clock(jobs, jobs.submit)),
            mixture=mixture,
            parallelism=parallelism_classes(sizes),
            pairs=count_pairs(mixture.likeliest(jobs.run_time), sizes),
            zipf=ZipfSizes(exponent=zipf_exponent(bags.sizes), most=int(bags.sizes.max())),
        )

    def stretchable(self, run_times: Floats, sizes: Floats | Integers) -> Floats:
        """What is long of wide jobs: it is how these go together that the model does not have of the log."""
        return np.where(sizes > NARROW, np.maximum(run_times - LONG, 0), 0.0)

    def draw(self, learned: MinhWoltersParameters, jobs: int, random: Random) -> Columns:
        """Stage 4: Algorithm 1."""
        submit = arrivals.generate_arrivals(learned.arrivals, jobs, random)
        zipf = learned.zipf if self.zipf is None else replace(learned.zipf, exponent=self.zipf)
        bags = arrivals.cut_bags_by_size(zipf, submit, random, self.window)
        weights = np.array(learned.mixture.weights)
        labels = random.choice(len(weights), len(bags.sizes), p=weights / weights.sum())
        sizes = np.repeat(_parallelism(learned, labels, random), bags.sizes)
        means, deviations = map(np.array, (learned.mixture.means, learned.mixture.deviations))
        drawn = random.normal(means[labels], deviations[labels])
        run_times = np.repeat(learned.mixture.from_scale(drawn), bags.sizes)
        return {
            "submit": submit,
            "run_time": self.stretched(learned, run_times, sizes),
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "user": np.repeat(np.arange(len(bags.sizes)), bags.sizes) + 1,
        }


def parallelism_classes(sizes: Integers) -> dict[str, int]:
    """Stage 2: sizes that about as many jobs have are one class."""
    distinct, counts = np.unique(sizes, return_counts=True)
    classes = np.rint(np.log2(counts)).astype(np.int64) + 1
    return {str(size): each for size, each in zip(distinct.tolist(), classes.tolist(), strict=True)}


def _parallelism(learned: MinhWoltersParameters, labels: Integers, random: Random) -> Integers:
    """Algorithm 2 for each label of a run time: first a class of sizes, then one of the sizes in it."""
    pairs = learned.pairs
    clusters, sizes, counts = map(np.array, (pairs.clusters, pairs.sizes, pairs.counts))
    classes = np.array([learned.parallelism[str(size)] for size in pairs.sizes])
    drawn = np.ones(len(labels), dtype=np.int64)
    for label in np.unique(labels).tolist():
        rows = clusters == clusters[np.abs(clusters - label).argmin()]
        of_class = np.bincount(classes[rows], counts[rows])
        members = np.flatnonzero(labels == label)
        chosen = random.choice(len(of_class), len(members), p=of_class / of_class.sum())
        for each in np.unique(chosen).tolist():
            inside = rows & (classes == each)
            share = counts[inside] / counts[inside].sum()
            places = members[chosen == each]
            drawn[places] = random.choice(sizes[inside], len(places), p=share)
    return drawn
