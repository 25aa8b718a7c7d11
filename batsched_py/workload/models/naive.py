"""What many papers use: Poisson arrivals, uniform run times and uniform sizes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from batsched_py.workload.description.distributions import requested
from batsched_py.workload.models import Columns, LearningModel, Parameters, Progress
from batsched_py.workload.swf.log import SwfLog


class NaiveParameters(Parameters):
    """What is taken from the log."""

    interarrival: float
    """The mean time between arrivals."""
    longest: float
    largest: int


@dataclass
class Naive(LearningModel):
    """Poisson arrivals of the log's rate, run times and sizes uniform up to its largest; unrealistic."""

    name = "naive"

    parameters: NaiveParameters | None = field(default=None, init=False)

    def learn(self, jobs: SwfLog, source: str, machine: int, progress: Progress | None) -> NaiveParameters:
        """Three numbers are enough."""
        return NaiveParameters(
            source=source,
            machine=machine,
            interarrival=float(np.diff(jobs.submit).mean()),
            longest=float(jobs.run_time.max()),
            largest=int(requested(jobs).max()),
        )

    def draw(self, learned: NaiveParameters, jobs: int, random: np.random.Generator) -> Columns:
        """Draw each job independently of the others."""
        sizes = random.integers(1, learned.largest + 1, jobs)
        return {
            "submit": np.floor(np.cumsum(random.exponential(learned.interarrival, jobs))),
            "run_time": np.ceil(random.uniform(0, learned.longest, jobs)),
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "user": np.arange(1, jobs + 1),
        }
