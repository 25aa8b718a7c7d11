"""Period, size and load of a log, as a whole and week by week."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.swf.log import DAY, HOUR, WEEK, Floats, Integers, SwfLog, start_of, wall_clock


class Week(Struct, frozen=True, kw_only=True):
    """Seven days of a log, counted from its first submission."""

    jobs: int
    users: int
    load: float | None
    """Work submitted in the week, over what the machine can do in a week."""
    utilization: float | None
    """Share of the machine that jobs were running on during the week."""


class Load(Struct, frozen=True, kw_only=True):
    """How much a machine had to do."""

    jobs: int
    users: int
    machine: int | None
    """Processors of the machine: what the header says, else the largest size of a job."""
    start: int | None
    """Unix time of the first submission, where the header says when the log began."""
    duration: float
    """Seconds from the first submission to the last."""
    work: float
    """Processor-seconds of all jobs: the sum of size times run time."""
    load: float | None
    """Work over what the machine can do between the first submission and the last."""
    utilization: float | None
    """Share of the machine that jobs were running on, from the first start to the last finish."""
    weeks: list[Week]


def load(log: SwfLog) -> Load:
    """Describe the load of a log; a wait that was not recorded counts as 0."""
    machine = machine_of(log)
    origin = start_of(log)
    first, last = float(log.submit.min()), float(log.submit.max())
    work = log.run_time * np.maximum(log.processors, 0)
    starts = log.submit + np.maximum(log.wait, 0)
    begin, end = float(starts.min()), float((starts + log.run_time).max())
    total = float(work.sum())
    return Load(
        jobs=len(log),
        users=len(np.unique(log.user)),
        machine=machine,
        start=None if origin is None else origin + int(first),
        duration=last - first,
        work=total,
        load=_share(total, machine, last - first),
        utilization=_share(total, machine, end - begin),
        weeks=_weeks(log, work, machine),
    )


def daily_work(submit: Floats, work: Floats | Integers) -> Floats:
    """The work that is submitted on each day, counted from the first submission."""
    totals: Floats = np.bincount(((submit - submit.min()) // DAY).astype(np.int64), work).astype(np.float64)
    return totals


def variation(values: Floats) -> float:
    """The coefficient of variation: the standard deviation over the mean."""
    return float(values.std() / values.mean())


def machine_of(log: SwfLog) -> int | None:
    """Processors of the machine: what the header says, else the largest size of a job."""
    largest = int(log.processors.max())
    return log.machine_size or (largest if largest > 0 else None)


def _share(work: float, machine: int | None, duration: float) -> float | None:
    return work / (machine * duration) if machine and duration > 0 else None


def _weeks(log: SwfLog, work: Floats, machine: int | None) -> list[Week]:
    week = ((log.submit - log.submit.min()) // WEEK).astype(np.int64)
    count = int(week.max()) + 1
    jobs = np.bincount(week, minlength=count)
    submitted = np.bincount(week, work, minlength=count)
    busy = np.diff(_work_done_by(log, log.submit.min() + WEEK * np.arange(count + 1)))
    active = np.unique(np.stack([week, log.user]), axis=1)[0]
    users = np.bincount(active, minlength=count)
    return [
        Week(
            jobs=int(jobs[i]),
            users=int(users[i]),
            load=_share(float(submitted[i]), machine, WEEK),
            utilization=_share(float(busy[i]), machine, WEEK),
        )
        for i in range(count)
    ]


def _work_done_by(log: SwfLog, moments: Floats) -> Floats:
    """Processor-seconds that jobs have run until each moment."""
    sizes = np.maximum(log.processors, 0)
    starts = log.submit + np.maximum(log.wait, 0)
    return _passed_since(starts, sizes, moments) - _passed_since(starts + log.run_time, sizes, moments)


def _passed_since(events: Floats, weights: Floats, moments: Floats) -> Floats:
    """At each moment, the weighted sum of how long ago the events before it were."""
    order = np.argsort(events, kind="stable")
    so_far = np.searchsorted(events[order], moments)
    weight = np.concatenate([[0.0], np.cumsum(weights[order])])
    moment = np.concatenate([[0.0], np.cumsum((weights * events)[order])])
    return weight[so_far] * moments - moment[so_far]


HOURS: Final = 7 * 24


class Cycles(Struct, frozen=True, kw_only=True):
    """Submissions by the hour of the week."""

    known: bool
    """Whether the log says when it began; otherwise it is taken to begin on a Monday at midnight."""
    by_hour_of_week: list[int]
    """Jobs submitted in each hour of the week, from Monday 0:00, all weeks taken together."""
    working_hours: float
    """Share of the jobs submitted from Monday to Friday, between 8:00 and 18:00; these are 30 % of a week."""
    weekend: float
    """Share of the jobs submitted on Saturdays and Sundays, 29 % of a week."""


def cycles(log: SwfLog) -> Cycles:
    """Describe when the jobs of a log are submitted."""
    hours = (wall_clock(log, log.submit) // HOUR).astype(np.int64) % HOURS
    counts = np.bincount(hours, minlength=HOURS)
    by_day = counts.reshape(7, 24)
    return Cycles(
        known=start_of(log) is not None,
        by_hour_of_week=counts.tolist(),
        working_hours=float(by_day[:5, 8:18].sum() / counts.sum()),
        weekend=float(by_day[5:].sum() / counts.sum()),
    )
