"""The curves of a run in the figures of a report, thinned out to what a screen can show.

The data come from the modules of :mod:`batsched_py.analysis.plots`, which draw the same figures for paper.
Times are in seconds everywhere; the page chooses units that read well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.job_groups import CLASSES
from batsched_py.analysis.outcome import queue_length
from batsched_py.analysis.plots.kinds.arrivals import user_arrivals
from batsched_py.analysis.plots.kinds.cumulative import cumulative_jobs
from batsched_py.analysis.plots.kinds.ecdf import Measure, job_classes, measured
from batsched_py.analysis.plots.kinds.lateness import user_lateness
from batsched_py.analysis.plots.kinds.scalability import additional_lateness_by_size
from batsched_py.analysis.plots.kinds.submissions import submissions_per_period
from batsched_py.analysis.plots.kinds.weekly import submissions_by_hour_of_week
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.schedule import INSTANT
from batsched_py.errors import InputError

Floats = NDArray[np.float64]

#: Points of a curve over time.
POINTS: Final = 240
#: The most periods of a curve that counts what happens in each of them.
PERIODS: Final = 500
DAY: Final = 86400.0


@dataclass(frozen=True, eq=False)
class Subject:
    """What figures show: a run, and the sessions of the log that it replays."""

    run: Run
    graphs: pd.DataFrame | None = None
    """The users' session graphs, as ``graph_statistics`` has them."""

    @cached_property
    def users(self) -> pd.DataFrame | None:
        """How late each user is; None if no user is late or if that is unknown."""
        return user_lateness(self.run) if _is_late(self.run) else None

    @cached_property
    def measured(self) -> dict[Measure, Floats]:
        """For each measure that figures show, its value for each executed job."""
        return {measure: measured(self.run, measure).to_numpy() for measure in ("wait", "slowdown")}

    @cached_property
    def of_class(self) -> dict[str, NDArray[np.bool_]]:
        """Which of the executed jobs are of each class."""
        classes = job_classes(self.run)
        return {name: (classes == name).to_numpy() for name in CLASSES}


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of a subject in a figure."""

    x: Floats
    """Of each point; or only of the first and the last one, when all are at equal distances."""
    y: Floats


def end_of(run: Run) -> float:
    """When the last job has been submitted and the last one has finished, after a second at least."""
    return max(1.0, run.end, float(run.jobs["submission_time"].max()))


def cumulative(column: str, subject: Subject) -> Curve:
    """How many jobs have been submitted or have finished, as the column says, by each time."""
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    counts = cumulative_jobs([subject.run], column, times)[subject.run.label]
    return Curve(times[[0, -1]], counts.to_numpy(float))


def _periods(run: Run) -> Floats:
    """The edges of periods of equal length that cover a run.

    A period is a day, halved or doubled as often as it takes. So those of different runs fit into each
    other, and the page can join them until they are wide enough to see.
    """
    period = DAY * 2.0 ** ceil(log2(end_of(run) / PERIODS / DAY))
    return period * np.arange(1.0 + ceil(end_of(run) / period))


def _means(edges: Floats, means: Floats) -> Curve:
    """A curve through the middles of the periods between these edges."""
    return Curve((edges[:-1] + edges[1:])[[0, -1]] / 2, means)


def submissions(subject: Subject) -> Curve:
    """Submissions per second, in each period."""
    period = float(_periods(subject.run)[1])
    counts = submissions_per_period([subject.run], period)[subject.run.label].to_numpy(float)
    return _means(period * np.arange(1.0 + len(counts)), counts / period)


def throughput(subject: Subject) -> Curve:
    """Jobs that finish per second, in each period."""
    edges = _periods(subject.run)
    finished = cumulative_jobs([subject.run], "finish_time", edges)[subject.run.label]
    return _means(edges, np.diff(finished) / edges[1])


def utilization(subject: Subject) -> Curve:
    """The busy hosts in each period, in percent."""
    edges = _periods(subject.run)
    return _means(edges, 100 * subject.run.busy_hosts(edges) / subject.run.hosts)


def queue(subject: Subject) -> Curve:
    """The length of the queue."""
    queue = queue_length(subject.run.jobs)
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    place = np.searchsorted(queue.index, times, side="right") - 1
    return Curve(times[[0, -1]], np.where(place >= 0, queue.to_numpy()[place], 0).astype(float))


def arrivals(subject: Subject) -> Curve | None:
    """How many users have submitted a job by each time."""
    if "user" not in subject.run.jobs:
        return None
    times = user_arrivals(subject.run).to_numpy(float)
    return Curve(times, np.arange(1.0, len(times) + 1))


def _quantiles(values: Floats) -> Curve:
    return Curve(np.array([0.0, 100.0]), np.percentile(values, np.arange(101)))


def quantiles(measure: Measure, subject: Subject) -> Curve:
    """The quantiles of a measure over the jobs."""
    return _quantiles(subject.measured[measure])


def power(subject: Subject) -> Curve | None:
    """The power that all hosts draw, in each period."""
    if subject.run.energy is None:
        return None
    edges = _periods(subject.run)
    return _means(edges, subject.run.mean_power(edges))


def link_load(subject: Subject) -> Curve | None:
    """The load of the most loaded link in each period, in percent."""
    carried = subject.run.carried
    most = None if carried is None else carried.most_loaded("link", 1)
    if carried is None or most is None or most.empty:
        return None
    edges = _periods(subject.run)
    flow = carried.mean_flow("link", most["name"].iloc[0], edges)
    return _means(edges, 100 * flow / most["capacity"].iloc[0])


def outside(name: str, subject: Subject) -> Curve | None:
    """A price, a carbon intensity or a temperature."""
    known = subject.run.outside.get(name)
    if known is None:
        return None
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    place = np.maximum(np.searchsorted(known.index, times, side="right") - 1, 0)
    return Curve(times[[0, -1]], known.to_numpy(float)[place])


def _is_late(run: Run) -> bool:
    """Whether some job is not submitted when it was recorded, by more than the digits of a schedule tell."""
    return "lateness" in run.jobs and bool((run.jobs["lateness"].abs() > INSTANT).any())


def differences(subject: Subject) -> Curve | None:
    """The quantiles of how much later than recorded jobs are submitted."""
    return _quantiles(subject.run.jobs["lateness"].to_numpy()) if _is_late(subject.run) else None


def hours_of_week(subject: Subject) -> Curve | None:
    """Submissions in each hour of the week."""
    if subject.run.log is None:
        return None
    try:
        counts = submissions_by_hour_of_week([subject.run])[subject.run.label]
    except InputError:  # the log does not say on which day it began
        return None
    return Curve(np.array([0.5, len(counts) - 0.5]), counts.to_numpy(float))


def lateness_of_users(column: str, subject: Subject) -> Curve | None:
    """A kind of lateness of each user, by how many jobs the user has."""
    if subject.users is None:
        return None
    users = subject.users.dropna(subset=column)
    return Curve(users["jobs"].to_numpy(float), users[column].to_numpy())


def lateness_by_size(subject: Subject) -> Curve | None:
    """The additional lateness of the run, by its number of jobs."""
    if not _is_late(subject.run):
        return None
    table = additional_lateness_by_size([subject.run])
    return Curve(table["jobs"].to_numpy(float), table["additional_lateness"].to_numpy())


def share_of_users(column: str, subject: Subject) -> Curve | None:
    """How a figure of session graphs is distributed over the users."""
    return None if subject.graphs is None else _shares(subject.graphs[column].to_numpy(float))


def share_of_class(job_class: str, measure: Measure, subject: Subject) -> Curve | None:
    """How a measure is distributed over the jobs of a class."""
    return _shares(subject.measured[measure][subject.of_class[job_class]])


def _shares(values: Floats) -> Curve | None:
    """At each value, the share of those that are not larger; a percent further at each point, or more."""
    if not len(values):
        return None
    distinct, counts = np.unique(values, return_counts=True)
    share = 100 * counts.cumsum() / len(values)
    shown = np.unique(np.searchsorted(share, np.arange(101.0)))
    return Curve(distinct[shown], share[shown])
