"""What users estimate: the requested times of jobs, recorded, exact or drawn from a model."""

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes import Change
from batsched_py.workload.swf.log import HOUR, Floats, Random, SwfLog

#: The twenty round numbers that people use, in seconds.
ROUND: Final = np.array(
    [minutes * 60.0 for minutes in (5, 10, 15, 20, 30, 45)]
    + [hours * HOUR for hours in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18, 24, 36, 48, 72)]
)
#: How much rarer each next value in the order of popularity is.
_DECAY: Final = 0.18
#: How often the interval is halved in which the accuracy of the log is looked for.
_HALVINGS: Final = 8


@dataclass(frozen=True)
class Estimates(Change):
    """Choose what users estimate, which is the requested time of their jobs.

    - exact: the run time.
    - recorded: what the log says, and the run time where it says nothing.
    - factor: a multiple of the run time.
    - round: popular values, after Tsafrir, Etsion and Feitelson (2005), dealt out to jobs anew by the seed,
      none below its run time. A log with estimates has its own values, as popular as they are, and run times
      are the same part of them on average. Other logs get twenty round numbers: the largest is the most
      popular, popularity falls exponentially with rank, and which of the others are popular is up to chance.
    """

    name = "estimates"

    rule: Annotated[Literal["exact", "recorded", "factor", "round"], Meta(description="Which estimates.")]
    factor: Annotated[float, Meta(ge=1, description="The multiple of the rule factor.")] = 2.0
    seed: Annotated[int, Meta(ge=0, description="For the rule round.")] = 0
    values: Annotated[
        int, Meta(ge=0, description="How many of the most popular values the rule round has; 0 is all.")
    ] = 0
    maximum: Annotated[
        float,
        Meta(ge=0, description="The longest estimate of the rule round, in seconds; 0 is the usual one."),
    ] = 0.0

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
                estimates = self._drawn(log)
        changed = replace(log, requested_time=estimates)
        said = estimates > 0
        accuracy = float(np.mean(log.run_time[said] / estimates[said])) if said.any() else 1.0
        return changed, f"run times are {accuracy:.1%} of the requested times on average"

    def _drawn(self, log: SwfLog) -> Floats:
        """Popular values, about as far above the run times as those of the log."""
        random = np.random.default_rng(self.seed)
        values, weights = self._popular(log.run_time, log.requested_time, random)
        known = (log.requested_time > 0) & (log.run_time > 0)
        wanted = _accuracy(log.run_time[known], log.requested_time[known]) if known.any() else None
        return _drawn(log.run_time, values, weights, wanted, random)

    def _popular(self, run_times: Floats, requested: Floats, random: Random) -> tuple[Floats, Floats]:
        """Ascending values, and how popular each is."""
        known = requested[requested > 0]
        if len(known):
            values, counts = np.unique(known, return_counts=True)
            weights = counts.astype(np.float64)
        else:
            longest = self.maximum or ROUND[min(np.searchsorted(ROUND, run_times.max()), len(ROUND) - 1)]
            values = np.append(ROUND[longest > ROUND], longest)
            weights = np.exp(-_DECAY * np.append(random.permutation(np.arange(1, len(values))), 0))
        if self.values:
            chosen = np.sort(np.argsort(-weights, kind="stable")[: self.values])
            values, weights = values[chosen], weights[chosen]
        values, places = np.unique(np.minimum(values, self.maximum or inf), return_inverse=True)
        return values, np.bincount(places, weights).astype(np.float64)


def fill_in(run_times: Floats, requested: Floats) -> Floats:
    """The requested times, and round estimates by the seed 0 for jobs that requested nothing.

    The estimates are dealt out to these jobs by the rule ``round``: the values of the other jobs, as popular
    as they are, and as far above run times on average.
    """
    unsaid = requested <= 0
    if not unsaid.any():
        return requested
    random = np.random.default_rng(0)
    values, weights = Estimates(rule="round")._popular(run_times, requested, random)
    known = ~unsaid & (run_times > 0)
    wanted = _accuracy(run_times[known], requested[known]) if known.any() else None
    filled = requested.astype(np.float64)
    filled[unsaid] = _drawn(run_times[unsaid], values, weights, wanted, random)
    return filled


def _drawn(
    run_times: Floats, values: Floats, weights: Floats, wanted: float | None, random: Random
) -> Floats:
    """For each job one of some popular values, such that the mean accuracy is as wanted, if it can be."""
    order = np.argsort(run_times, kind="stable")
    ascending = run_times[order]
    offered = _offered(ascending, values, weights)
    noise, place = random.random(len(order)), np.arange(len(order)) / len(order)

    def dealt(knowledge: float) -> Floats:
        return _dealt(ascending, offered, (1 - abs(knowledge)) * noise - knowledge * place)

    least, most = -1.0, 1.0
    for _ in range(_HALVINGS):
        knowledge = (least + most) / 2
        if wanted is None:
            break
        if _accuracy(ascending, dealt(knowledge)) < wanted:
            least = knowledge
        else:
            most = knowledge
    estimates = np.empty(len(order))
    estimates[order] = dealt((least + most) / 2)
    return estimates


def _offered(run_times: Floats, values: Floats, weights: Floats) -> Floats:
    """As many values as there are ascending run times, by popularity, ascending and none below its run time.

    One that would be too short is the next value, or whole hours beyond the largest.
    """
    shares = np.cumsum(weights) / weights.sum()
    offered = values[np.searchsorted(shares, (np.arange(len(run_times)) + 0.5) / len(run_times))]
    longer = np.append(values, inf)[np.searchsorted(values, run_times)]
    longer = np.where(longer < inf, longer, np.ceil(run_times / HOUR) * HOUR)
    return np.where(offered < run_times, longer, offered)


def _dealt(run_times: Floats, offered: Floats, keys: Floats) -> Floats:
    """The offered values, from the shortest on: each for the lowest key of the jobs it is enough for."""
    turns = np.argsort(keys, kind="stable")
    turn_of = np.argsort(turns).tolist()
    waiting: list[int] = []
    chosen, nb_waiting = [], 0
    for nb_short in np.searchsorted(run_times, offered, side="right").tolist():
        for job in range(nb_waiting, nb_short):
            heappush(waiting, turn_of[job])
        nb_waiting = nb_short
        chosen.append(heappop(waiting))
    estimates = np.empty(len(run_times))
    estimates[turns[chosen]] = offered
    return estimates


def _accuracy(run_times: Floats, estimates: Floats) -> float:
    """The mean part of its estimate for which a job runs, at most all of it."""
    ran = run_times > 0
    return float(np.mean(np.minimum(run_times[ran] / estimates[ran], 1)))
