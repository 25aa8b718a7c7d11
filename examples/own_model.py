"""A model of logs of your own: a queue of theory, with exponential times.

batsched-py generate examples/own_model.py:Exponential -n 1000 --seed 1 --output mm.swf
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.workload.models import Model
from batsched_py.workload.swf.log import SwfLog


@dataclass
class Exponential(Model):
    """Jobs of one processor with exponential times between them and exponential run times."""

    name = "exponential"

    load: Annotated[float, Meta(description="The offered load, as a share of the machine.")] = 0.8
    machine: Annotated[int, Meta(description="How many processors there are.")] = 16
    minutes: Annotated[float, Meta(description="The mean run time.")] = 60.0

    def generate(self, jobs: int, seed: int) -> SwfLog:
        """Times are whole seconds."""
        random = np.random.default_rng(seed)
        seconds = 60 * self.minutes
        between = random.exponential(seconds / self.machine / self.load, jobs)
        run_time = np.maximum(random.exponential(seconds, jobs).round(), 1).astype(np.int64)
        columns = {
            "submit": between.cumsum().round().astype(np.int64),
            "run_time": run_time,
            "requested_time": run_time,
            "requested_processors": np.ones(jobs, np.int64),
        }
        return self.to_log(columns, self.machine, seed)
