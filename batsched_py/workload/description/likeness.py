"""How similar two logs are: the checks of Minh and Wolters, as numbers with tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.bags import contiguous_bags
from batsched_py.workload.description.burstiness import spatial_entropy, temporal_entropy
from batsched_py.workload.description.correlation import pearson
from batsched_py.workload.description.distributions import kolmogorov_smirnov
from batsched_py.workload.description.memory import arrival_hurst
from batsched_py.workload.description.selection import characterised, requested
from batsched_py.workload.swf.log import SwfLog

#: How far a quantity may be from the log's to count as alike.
TOLERANCES: Final = {
    "spatial entropy": 0.03,
    "run time and size": 0.03,
    "entropy, 15 min": 0.02,
    "entropy, 30 min": 0.02,
    "Hurst parameter": 0.07,
    "jobs in bags": 0.05,
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
    memory = arrival_hurst(jobs.submit)
    correlation = pearson(jobs.run_time, requested(jobs))
    return Traits(
        quantities={
            "spatial entropy": spatial_entropy(jobs),
            "run time and size": np.nan if correlation is None else correlation,
            "entropy, 15 min": temporal_entropy(jobs.submit, 900),
            "entropy, 30 min": temporal_entropy(jobs.submit, 1800),
            "Hurst parameter": np.nan if memory is None else memory.median,
            "jobs in bags": float(bags.sizes[bags.sizes > 1].sum() / bags.sizes.sum()),
        },
        samples={
            "run times": jobs.run_time,
            "sizes": requested(jobs),
            "sizes of bags": bags.sizes,
            "run times of bags": bags.means(jobs.run_time)[bags.sizes > 1],
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
        name: sum(not abs(copy.quantities[name] - original.quantities[name]) <= tolerance for copy in copies)
        for name, tolerance in TOLERANCES.items()
    }
    far = {name: sum(copy.distances[name] > limit for copy in copies) for name, limit in DISTANCES.items()}
    return failed | far
