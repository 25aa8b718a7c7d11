"""How similar two logs are: the checks of Minh and Wolters and the memory of jobs, with tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import DELTA, contiguous_bags, repeat_gaps
from batsched_py.workload.description.distributions import (
    characterised,
    kolmogorov_smirnov,
    pearson,
    requested,
)
from batsched_py.workload.description.memory import (
    arrival_hurst,
    persistence,
    spatial_entropy,
    temporal_entropy,
)
from batsched_py.workload.swf.log import SwfLog


class Tolerance(NamedTuple):
    """How far a quantity may be from the log's to count as alike."""

    limit: float
    of: Literal["difference", "share", "factor"] = "difference"
    """Whether the difference is limited, or its share of the log's value, or the quotient."""

    def holds(self, log: float, copy: float) -> bool:
        """Whether a copy's value is near enough; one that is not known is not."""
        if self.of == "factor":
            return log / self.limit <= copy <= log * self.limit
        return abs(copy - log) <= (self.limit if self.of == "difference" else self.limit * abs(log))

    def __str__(self) -> str:
        texts = {
            "difference": f"{self.limit:.2f}",
            "share": f"{self.limit:.0%}",
            "factor": f"factor {self.limit:g}",
        }
        return texts[self.of]


TOLERANCES: Final = {
    "spatial entropy": Tolerance(0.03),
    "run time and size": Tolerance(0.03),
    "entropy, 15 min": Tolerance(0.02),
    "entropy, 30 min": Tolerance(0.02),
    "Hurst parameter": Tolerance(0.07),
    "jobs in bags": Tolerance(0.05),
    "largest bag": Tolerance(2, "factor"),
    "repeats within 100 s": Tolerance(0.1),
    "run times, 1 job apart": Tolerance(0.1),
    "run times, 10 jobs apart": Tolerance(0.1),
    "run times, 100 jobs apart": Tolerance(0.1),
    "variation of daily work": Tolerance(0.3, "share"),
    "deviation in bags of 1e3 to 1e4 s": Tolerance(0.4, "share"),
}
#: Up to which Kolmogorov-Smirnov distance two distributions count as alike.
DISTANCES: Final = {"run times": 0.05, "sizes": 0.05, "sizes of bags": 0.05, "run times of bags": 0.06}


class Traits(Struct, frozen=True, kw_only=True):
    """What a log is compared by."""

    quantities: dict[str, float]
    samples: dict[str, NDArray[Any]]


class Likeness(Struct, frozen=True, kw_only=True):
    """How similar a copy is to the original."""

    quantities: dict[str, float]
    """The copy's values."""
    distances: dict[str, float]
    """Kolmogorov-Smirnov distances of its distributions to those of the original."""


def traits(log: SwfLog) -> Traits:
    """What a log is compared by, computed from the jobs that characterise it."""
    jobs = characterised(log)
    bags = contiguous_bags(jobs)
    large = bags.sizes > 1
    means = bags.means(jobs.run_time)
    middling = large & (means >= 1e3) & (means < 1e4)
    gaps = repeat_gaps(jobs)
    memory = arrival_hurst(jobs.submit)
    correlation = pearson(jobs.run_time, requested(jobs))
    lasting = persistence(jobs)
    return Traits(
        quantities={
            "spatial entropy": spatial_entropy(jobs),
            "run time and size": _known(correlation),
            "entropy, 15 min": temporal_entropy(jobs.submit, 900),
            "entropy, 30 min": temporal_entropy(jobs.submit, 1800),
            "Hurst parameter": np.nan if memory is None else memory.median,
            "jobs in bags": float(bags.sizes[large].sum() / bags.sizes.sum()),
            "largest bag": float(bags.sizes.max()),
            "repeats within 100 s": _mean(gaps <= DELTA),
            **{
                f"run times, {lag} {'job' if lag == '1' else 'jobs'} apart": _known(value)
                for lag, value in lasting.run_times.items()
            },
            "variation of daily work": lasting.daily_work,
            "deviation in bags of 1e3 to 1e4 s": _mean(bags.deviations(jobs.run_time)[middling]),
        },
        samples={
            "run times": jobs.run_time,
            "sizes": requested(jobs),
            "sizes of bags": bags.sizes,
            "run times of bags": means[large],
        },
    )


def likeness(original: Traits, copy: Traits) -> Likeness:
    """Compare two logs; a distribution that one of them lacks has the largest distance."""
    return Likeness(
        quantities=copy.quantities,
        distances={
            name: kolmogorov_smirnov(sample, copy.samples[name])
            if len(sample) and len(copy.samples[name])
            else 1.0
            for name, sample in original.samples.items()
        },
    )


def failures(original: Traits, copies: Sequence[Likeness]) -> Mapping[str, int]:
    """For each check how many of the copies fail it."""
    failed = {
        name: sum(not tolerance.holds(original.quantities[name], copy.quantities[name]) for copy in copies)
        for name, tolerance in TOLERANCES.items()
    }
    far = {name: sum(copy.distances[name] > limit for copy in copies) for name, limit in DISTANCES.items()}
    return failed | far


def _known(value: float | None) -> float:
    return np.nan if value is None else value


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else np.nan
