"""What many papers use: Poisson arrivals, uniform run times and uniform sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.description.load import machine_of
from batsched_py.workload.description.selection import characterised, requested
from batsched_py.workload.models.base import LearningModel, Progress
from batsched_py.workload.swf.log import SwfLog


class NaiveParameters(Struct):
    """What is taken from the log."""

    source: str
    machine: int
    interarrival: float
    """The mean time between arrivals."""
    longest: float
    largest: int


@dataclass
class Naive(LearningModel):
    """Poisson arrivals of the log's rate, run times and sizes uniform up to its largest; unrealistic."""

    name = "naive"

    parameters: NaiveParameters | None = field(default=None, init=False)

    def fit(self, log: SwfLog, progress: Progress | None = None) -> Self:
        """Three numbers are enough."""
        jobs = characterised(log)
        if len(jobs) < 2:
            raise InputError(f"{log.path or 'the log'}: too few jobs that ran to learn from: {len(jobs)}")
        self.parameters = NaiveParameters(
            source=Path(log.path).name,
            machine=machine_of(log) or int(requested(jobs).max()),
            interarrival=float(np.diff(jobs.submit).mean()),
            longest=float(jobs.run_time.max()),
            largest=int(requested(jobs).max()),
        )
        return self

    def generate(self, jobs: int, seed: int) -> SwfLog:
        """Every job for itself."""
        learned = self.parameters
        if learned is None:
            raise InputError("the model naive learns from a log; give it one")
        random = np.random.default_rng(seed)
        sizes = random.integers(1, learned.largest + 1, jobs)
        columns = {
            "submit": np.floor(np.cumsum(random.exponential(learned.interarrival, jobs))),
            "run_time": np.ceil(random.uniform(0, learned.longest, jobs)),
            "allocated_processors": sizes,
            "requested_processors": sizes,
            "user": np.arange(1, jobs + 1),
        }
        return self.log_of(columns, learned.machine, seed, learned.source)
