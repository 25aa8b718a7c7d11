"""The generator of AccaSim (Galleguillos and others 2020): the day in slots, and jobs by the work they do.

Arrivals: a day has 48 slots of half an hour, each with the share of the log's jobs that come in it as its
weight. The time to the next job is drawn from those of the log, in days, up to a limit, and spent along the
slots: to pass one costs its weight. The limit grows from a slot to the longest time of the log with the
progress made: ``limit = longest - (longest - slot) * (1 - progress)``. Progress is the product of three
ratios, for the hour of the day, the day of the week and the month that the last job came in: the share of
all jobs to be generated that have come there, over the log's share. So an hour that lacks jobs holds the
next one.

Jobs: sizes are drawn as in the model of Lublin and Feitelson, with the log's shares. A job's work, in
operations, is drawn from those of the log, and its duration is the work over its processors and their
speed: so another machine can be asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Annotated, Final

import numpy as np
from msgspec import Meta

from batsched_py.workload.description.selection import requested
from batsched_py.workload.models.base import START, Columns, LearningModel, Parameters, Progress
from batsched_py.workload.models.lublin import job_sizes
from batsched_py.workload.swf.conventions import LOG_SPEED
from batsched_py.workload.swf.log import Floats, SwfLog
from batsched_py.workload.wall_clock import DAY, HOUR, local_time, start_of, wall_clock

SLOTS: Final = 48
_SLOT: Final = DAY / SLOTS
_QUANTILES: Final = 2001
_YEAR: Final = 12
_LARGE_FROM_TOP: Final = 2.5


class SlotsParameters(Parameters):
    """What the model learns of a log."""

    slots: list[float]
    """Share of the jobs in each half hour of the day."""
    hours: list[float]
    weekdays: list[float]
    months: list[float]
    """Shares of the jobs by month from January; none where the log does not cover all of them."""
    gaps: list[float]
    """Quantiles of the times between jobs, in days."""
    work: list[float]
    """Quantiles of the operations of a job."""
    serial: float
    power_of_two: float
    """Shares of the jobs that are serial, and that are parallel on a power of two of processors."""
    low: float
    middle: float
    high: float
    below: float
    """Of the logarithms of parallel sizes: bounds, and the share below the middle."""


@dataclass
class Slots(LearningModel):
    """AccaSim's generator: submissions by slots of the day, durations by the work of a job."""

    name = "slots"

    processors: Annotated[
        int | None, Meta(description="Size of the machine that is asked for; the log's by default.")
    ] = None
    speed: Annotated[float, Meta(gt=0, description="Speed of its processors, relative to the log's.")] = 1.0
    parameters: SlotsParameters | None = field(default=None, init=False)

    def machine(self, learned: SlotsParameters) -> int:
        """Processors of the machine that is asked for, else of the recorded one."""
        return self.processors or learned.machine

    def learn(self, jobs: SwfLog, source: str, machine: int, progress: Progress | None) -> SlotsParameters:
        """Learn shares and quantiles."""
        sizes = requested(jobs)
        clock = wall_clock(jobs, jobs.submit)
        logarithms = np.log2(sizes[sizes > 1]) if (sizes > 1).any() else np.zeros(1)
        high = float(logarithms.max())
        middle = max(high - _LARGE_FROM_TOP, float(logarithms.min()))
        parallel = sizes > 1
        ranks = np.linspace(0, 1, _QUANTILES)
        return SlotsParameters(
            source=source,
            machine=machine,
            slots=_shares(clock % DAY // _SLOT, SLOTS),
            hours=_shares(clock % DAY // HOUR, 24),
            weekdays=_shares(clock // DAY % 7, 7),
            months=_months(jobs),
            gaps=np.quantile(np.diff(jobs.submit) / DAY, ranks).tolist(),
            work=np.quantile(jobs.run_time * sizes * LOG_SPEED, ranks).tolist(),
            serial=float(np.mean(sizes == 1)),
            power_of_two=float(np.mean(parallel & (sizes & (sizes - 1) == 0))),
            low=float(logarithms.min()),
            middle=middle,
            high=high,
            below=float(np.mean(logarithms <= middle)),
        )

    def draw(self, learned: SlotsParameters, jobs: int, random: np.random.Generator) -> Columns:
        """Draw jobs for the machine that is asked for."""
        sizes = np.minimum(job_sizes(learned, jobs, random), self.machine(learned))
        work = np.interp(random.random(jobs), np.linspace(0, 1, _QUANTILES), learned.work)
        return {
            "submit": np.floor(_submissions(learned, jobs, random)),
            "run_time": np.maximum(np.rint(work / (sizes * self.speed * LOG_SPEED)), 1),
            "allocated_processors": sizes,
            "requested_processors": sizes,
        }


def _shares(places: Floats, count: int) -> list[float]:
    counts = np.bincount(places.astype(np.int64), minlength=count)
    return (counts / counts.sum()).tolist()


def _months(jobs: SwfLog) -> list[float]:
    """Shares by month, where the log says when it was and has jobs in all of them."""
    if start_of(jobs) is None:
        return []
    months = local_time(jobs, jobs.submit).astype("datetime64[M]").astype(np.int64) % _YEAR
    shares = _shares(months.astype(np.float64), _YEAR)
    return shares if all(shares) else []


def _submissions(learned: SlotsParameters, jobs: int, random: np.random.Generator) -> Floats:
    """When each job comes, one after another, as the limit of each depends on all before it.

    A time in days is consumed by the slots, each of which uses up its weight, so it is turned into a place
    in the day along the sums of the weights; a slot without jobs has no weight and is passed at once.
    """
    ends = np.cumsum(learned.slots).tolist()
    longest, slot = learned.gaps[-1], 1 / SLOTS
    chances = random.random(jobs).tolist()
    hours, weekdays, months = [0] * 24, [0] * 7, [0] * _YEAR
    month_of_day = _months_of_days(jobs, learned)
    spent, times, progress = 0.0, [], 1.0
    for chance in chances:
        limit = longest - (longest - slot) * (1 - progress)
        known = bisect_right(learned.gaps, limit) / _QUANTILES
        place = chance * known * (_QUANTILES - 1)
        low = int(place)
        high = min(low + 1, _QUANTILES - 1)
        spent += learned.gaps[low] + (place - low) * (learned.gaps[high] - learned.gaps[low])
        day, rest = int(spent), spent % 1
        number = min(bisect_right(ends, rest), SLOTS - 1)
        before = ends[number - 1] if number else 0.0
        inside = (rest - before) / learned.slots[number] if learned.slots[number] else 0.0
        times.append((day + (number + min(max(inside, 0.0), 1.0)) / SLOTS) * DAY)
        hour, weekday = number // 2, day % 7
        hours[hour] += 1
        weekdays[weekday] += 1
        progress = _ratio(hours[hour], jobs, learned.hours[hour])
        progress *= _ratio(weekdays[weekday], jobs, learned.weekdays[weekday])
        if learned.months:
            month = month_of_day[day % len(month_of_day)]
            months[month] += 1
            progress *= _ratio(months[month], jobs, learned.months[month])
    return np.array(times)


def _ratio(come: int, jobs: int, share: float) -> float:
    return come / (jobs * share) if share else 1.0


def _months_of_days(jobs: int, learned: SlotsParameters) -> list[int]:
    """The month of each day from the start of a generated log, for a cycle of 400 years, if months count."""
    days = np.arange(
        START // int(DAY), START // int(DAY) + 146_097 if learned.months else START // int(DAY) + 1
    )
    return (days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % _YEAR).tolist()
