"""Persistence that comes out as it should: parts of hidden values, corrected by trial.

Run times follow hidden values by their ranks, so they are less alike than the values are, and how much less
depends on their distribution and on everything else in the model. So some logs are generated when a model is
fitted. Where the autocorrelation of the logarithms of run times is not that of the log, the parts of the user
and of everyone are corrected by what is missing far apart, the part of the present by what is missing
between, and that of the program by what is missing from one job to the next. This is the method of simulated
moments. What everyone does fades as slowly as the log's autocorrelation does from 10 to 100 jobs apart, or
more slowly if bags of different users show it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from msgspec.structs import replace

from batsched_py.workload.description.persistence import LAGS, autocorrelation
from batsched_py.workload.models.base import Columns, Progress
from batsched_py.workload.models.persistence import Persistence
from batsched_py.workload.swf.log import Floats

TRIALS: Final = 6
#: How little is corrected where jobs share little.
_RIDGE: Final = 0.01
#: The largest share of all parts but the bag's own.
_MOST: Final = 0.99


def calibrate(
    persistence: Persistence,
    run_times: Floats,
    bags_per_job: float,
    trial: Callable[[Persistence, int], Columns],
    progress: Progress,
) -> Persistence:
    """Correct the parts, if there are enough jobs; ``trial`` generates a log with some parts and a seed."""
    if len(run_times) <= LAGS[-1]:
        return persistence
    wanted = _moments(run_times)
    keeping = max(persistence.everyones_keeping, _fading(wanted, bags_per_job))
    persistence = replace(persistence, everyones_keeping=keeping)
    for seed in range(TRIALS):
        jobs = trial(persistence, seed)
        missing = (wanted - _moments(jobs["run_time"])) / (seed + 1)
        near, between, far = (float(np.mean(jobs["user"][lag:] == jobs["user"][:-lag])) for lag in LAGS)
        lasting = persistence.everyones_keeping ** (LAGS[2] * bags_per_job)
        user, everyone = _corrections(missing[2], far, lasting)
        (present,) = _corrections(missing[1] - between * user - everyone, between)
        (program,) = _corrections(missing[0] - near * (user + present) - everyone, near)
        persistence = _corrected(persistence, user, present, everyone, program)
        progress(seed + 1, TRIALS)
    return persistence


def _fading(wanted: Floats, bags_per_job: float) -> float:
    """The correlation from one bag to the next of what fades as run times do between the last two lags."""
    ratio = float(np.clip(wanted[2] / max(wanted[1], _RIDGE), _RIDGE, 1 - _RIDGE))
    return ratio ** (1 / ((LAGS[2] - LAGS[1]) * bags_per_job))


def _corrections(missing: float, *shared: float) -> list[float]:
    """By how much parts change that jobs share to these degrees, to add together what is missing."""
    scale = missing / (sum(degree**2 for degree in shared) + _RIDGE)
    return [scale * degree for degree in shared]


def _corrected(
    persistence: Persistence, user: float, present: float, everyone: float, program: float
) -> Persistence:
    """The corrected parts; none is negative, and together they leave something to the bag.

    If there is too much of them, those that last least become smaller first.
    """
    parts = {
        "program": persistence.program + program,
        "present": persistence.present + present,
        "everyone": persistence.everyone + everyone,
        "user": persistence.user + user,
    }
    parts = {name: max(float(part), 0.0) for name, part in parts.items()}
    excess = sum(parts.values()) - _MOST
    for name, part in parts.items():
        parts[name] = part - float(np.clip(excess, 0, part))
        excess -= part
    return replace(persistence, **parts)


def _moments(run_times: Floats) -> Floats:
    return np.array([autocorrelation(np.log(run_times), lag) or 0.0 for lag in LAGS])
