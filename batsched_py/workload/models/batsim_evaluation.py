"""The generator of the evaluation of Batsim (Dutot, Mercier, Poquet and Richard, 2016, section 6.2).

Gaps between arrivals are Weibull variates. A size is 2 to the power of a lognormal variate, rounded down;
variates that give more than the largest size are drawn again. A job is one of the MPI programs of the NAS
Parallel Benchmarks (section 6.1) that were measured at its size, each as likely as the others. Its authors
made this to compare Batsim with a real machine. They say that it is no sound way to compare schedulers.

The paper does not tell run times. Those here are in a workload of the evaluation that Batsim is distributed
with. In that workload no job runs for more than 1000 s, and requested times are 1.5 times the run time, or a
minute more if that is longer.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from batsched_py.workload.models import Model
from batsched_py.workload.swf.log import SwfLog

#: Seconds on 1, 2, 4, 8, 16 and 32 processors; 0 where a program was not measured, or runs for too long.
PROGRAMS: Final = {
    "ft.B": (88.51, 62.08, 35.932, 19.294, 10.346, 6.31),
    "ft.C": (386.48, 265.8, 151.94, 80.71, 41.998, 22.671),
    "ft.D": (0, 0, 0, 0, 0, 568.66),
    "is.B": (9.257, 6.609, 3.993, 2.33, 1.561, 1.908),
    "is.C": (0, 26.481, 16.684, 9.567, 5.59, 3.301),
    "is.D": (0, 0, 0, 0, 0, 46.028),
    "lu.B": (279.99, 140.95, 87.69, 48.8, 25.905, 13.385),
    "lu.C": (0, 593.59, 290.53, 179.08, 95.56, 52.81),
}

#: Mean and standard deviation of the logarithm of the variate that sizes are made of.
MU: Final = 0.25
SIGMA: Final = 0.5

#: A row for each size that has the run time of each program.
_SECONDS: Final = np.array(list(PROGRAMS.values())).T


@dataclass
class BatsimEvaluation(Model):
    """Batsim's evaluation: Weibull gaps, lognormal sizes in powers of two, NAS programs; not for studies."""

    name = "batsim-evaluation"

    shape: Annotated[float, Meta(gt=0, description="Shape of the Weibull distribution of gaps.")] = 2.0
    scale: Annotated[float, Meta(gt=0, description="Its scale in seconds.")] = 15.0
    processors: Annotated[
        Literal[1, 2, 4, 8, 16, 32], Meta(description="Size of the machine and of the largest job.")
    ] = 32

    def generate(self, jobs: int, seed: int) -> SwfLog:
        """Draw each job independently of the others."""
        random = np.random.default_rng(seed)
        gaps = self.scale * random.weibull(self.shape, jobs)
        drawn = np.floor(random.lognormal(MU, SIGMA, jobs))
        while (large := drawn >= self.processors.bit_length()).any():
            drawn[large] = np.floor(random.lognormal(MU, SIGMA, int(large.sum())))
        powers = drawn.astype(np.int64)
        programs = np.empty(jobs, dtype=np.int64)
        for power, seconds in enumerate(_SECONDS):
            mine = powers == power
            programs[mine] = random.choice(np.flatnonzero(seconds), int(mine.sum()))
        run_times = _SECONDS[powers, programs]
        columns = {
            "submit": np.round(np.cumsum(gaps) - gaps[0], 6),
            "run_time": run_times,
            "allocated_processors": 2**powers,
            "requested_processors": 2**powers,
            "requested_time": np.ceil(np.maximum(1.5 * run_times, run_times + 60)),
            "executable": programs + 1,
        }
        return self.to_log(columns, self.processors, seed)
