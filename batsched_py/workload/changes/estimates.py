"""How long users say that their jobs will run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes.base import Change
from batsched_py.workload.swf.log import Floats, SwfLog

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
#: The twenty round numbers that people use, in seconds.
ROUND: Final = np.array(
    [minutes * _MINUTE for minutes in (5, 10, 15, 20, 30, 45)]
    + [hours * _HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 24, 36, 48, 72)]
)
#: How much rarer each next value in the order of popularity is.
_DECAY: Final = 0.18


@dataclass(frozen=True)
class Estimates(Change):
    """Choose what users estimate, which is the requested time of their jobs.

    - exact: the run time.
    - recorded: what the log says, and the run time where it says nothing.
    - factor: a multiple of the run time.
    - round: one of the twenty round numbers that people use, not below the run time. Tsafrir, Etsion and
      Feitelson (2005) found that twenty values make up 90 % of the estimates, that the largest one allowed is
      the most popular, and that popularity falls exponentially with rank; which of the other values are
      popular is up to chance, by the seed.
    """

    name = "estimates"

    rule: Annotated[Literal["exact", "recorded", "factor", "round"], Meta(description="Which estimates.")]
    factor: Annotated[float, Meta(ge=1, description="The multiple of the rule factor.")] = 2.0
    seed: Annotated[int, Meta(ge=0, description="For the rule round.")] = 0

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log with other requested times."""
        match self.rule:
            case "exact":
                estimates = log.run_time
            case "recorded":
                estimates = np.where(log.requested_time > 0, log.requested_time, log.run_time)
            case "factor":
                estimates = log.run_time * self.factor
            case "round":
                estimates = _round(log.run_time, np.random.default_rng(self.seed))
        changed = replace(log, requested_time=estimates)
        ran = log.run_time > 0
        accuracy = float(np.mean(log.run_time[ran] / estimates[ran])) if ran.any() else 1.0
        return changed, f"run times are {accuracy:.1%} of the requested times on average"


def _round(run_times: Floats, random: np.random.Generator) -> Floats:
    """A round number for each run time, of those that are not below it; whole hours beyond the largest."""
    limit = int(min(np.searchsorted(ROUND, run_times.max()), len(ROUND) - 1))
    values = ROUND[: limit + 1]
    ranks = np.concatenate([random.permutation(np.arange(1, limit + 1)), [0]])
    weights = np.exp(-_DECAY * ranks)
    above = np.concatenate([[0.0], np.cumsum(weights)])
    least = above[np.minimum(np.searchsorted(values, run_times), limit)]
    drawn = least + random.random(len(run_times)) * (above[-1] - least)
    chosen = values[np.clip(np.searchsorted(above, drawn, side="right") - 1, 0, limit)]
    return np.maximum(chosen, np.where(run_times > values[-1], np.ceil(run_times / _HOUR) * _HOUR, 0.0))
