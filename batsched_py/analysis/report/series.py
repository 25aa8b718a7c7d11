"""The figures of a report: what each shows, and its curve for a run, thinned out to what a screen can show.

The data come from the modules of :mod:`batsched_py.analysis.plots`, which draw the same figures for paper.
Times are in seconds everywhere; the page chooses units that read well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from math import ceil, log2
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.outcome import queue_length
from batsched_py.analysis.plots.kinds.arrivals import user_arrivals
from batsched_py.analysis.plots.kinds.cumulative import cumulative_jobs
from batsched_py.analysis.plots.kinds.ecdf import CLASSES, NARROW, SHORT, Measure, job_classes, measured
from batsched_py.analysis.plots.kinds.lateness import user_lateness
from batsched_py.analysis.plots.kinds.scalability import additional_lateness_by_size
from batsched_py.analysis.plots.kinds.submissions import submissions_per_period
from batsched_py.analysis.plots.kinds.weekly import submissions_by_hour_of_week
from batsched_py.analysis.plots.runs import Run
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
        """How late each user is; none where nobody is, or nobody knows."""
        return user_lateness(self.run) if _is_late(self.run) else None

    @cached_property
    def measured(self) -> dict[Measure, Floats]:
        """What is measured of each executed job, as far as figures show it."""
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


@dataclass(frozen=True)
class Axis:
    """What lies along a side of a figure."""

    label: str
    unit: str = ""
    """``s`` and ``/s`` are shown in the unit of time that fits, ``week`` as its days, others as they are."""
    scale: Literal["linear", "log", "symlog"] = "linear"


@dataclass(frozen=True)
class Figure:
    """A chart of the report."""

    title: str
    about: str
    x: Axis
    y: Axis
    curve: Callable[[Subject], Curve | None]
    """None where the subject does not have what it takes."""
    style: Literal["line", "means", "steps", "dots"] = "line"
    """``means`` are of periods of equal length, and may be averaged further; ``steps`` rise from 0."""
    section: Literal["figures", "classes"] = "figures"
    """Where on the page it is."""


def end_of(run: Run) -> float:
    """When the last job has been submitted and the last one has finished, after a second at least."""
    return max(1.0, run.end, float(run.jobs["submission_time"].max()))


def _cumulative(column: str) -> Callable[[Subject], Curve]:
    def curve(subject: Subject) -> Curve:
        times = np.linspace(0.0, end_of(subject.run), POINTS)
        counts = cumulative_jobs([subject.run], column, times)[subject.run.label]
        return Curve(times[[0, -1]], counts.to_numpy(float))

    return curve


def _periods(run: Run) -> Floats:
    """The edges of periods of equal length that cover a run.

    A period is a day, halved or doubled as often as it takes. So those of different runs fit into each
    other, and the page can join them until they are long enough to be told apart.
    """
    period = DAY * 2.0 ** ceil(log2(end_of(run) / PERIODS / DAY))
    return period * np.arange(1.0 + ceil(end_of(run) / period))


def _means(edges: Floats, means: Floats) -> Curve:
    """Values that hold for the periods between these edges stand in their middles."""
    return Curve((edges[:-1] + edges[1:])[[0, -1]] / 2, means)


def _submissions(subject: Subject) -> Curve:
    period = float(_periods(subject.run)[1])
    counts = submissions_per_period([subject.run], period)[subject.run.label].to_numpy(float)
    return _means(period * np.arange(1.0 + len(counts)), counts / period)


def _throughput(subject: Subject) -> Curve:
    edges = _periods(subject.run)
    finished = cumulative_jobs([subject.run], "finish_time", edges)[subject.run.label]
    return _means(edges, np.diff(finished) / edges[1])


def _utilization(subject: Subject) -> Curve:
    edges = _periods(subject.run)
    return _means(edges, 100 * subject.run.busy_hosts(edges) / subject.run.hosts)


def _queue(subject: Subject) -> Curve:
    queue = queue_length(subject.run.jobs)
    times = np.linspace(0.0, end_of(subject.run), POINTS)
    place = np.searchsorted(queue.index, times, side="right") - 1
    return Curve(times[[0, -1]], np.where(place >= 0, queue.to_numpy()[place], 0).astype(float))


def _arrivals(subject: Subject) -> Curve | None:
    if "user" not in subject.run.jobs:
        return None
    times = user_arrivals(subject.run).to_numpy(float)
    return Curve(times, np.arange(1.0, len(times) + 1))


def _quantiles(values: Floats) -> Curve:
    return Curve(np.array([0.0, 100.0]), np.percentile(values, np.arange(101)))


def _waits(subject: Subject) -> Curve:
    return _quantiles(subject.measured["wait"])


def _slowdowns(subject: Subject) -> Curve:
    return _quantiles(subject.measured["slowdown"])


def _power(subject: Subject) -> Curve | None:
    if subject.run.energy is None:
        return None
    edges = _periods(subject.run)
    return _means(edges, subject.run.mean_power(edges))


def _is_late(run: Run) -> bool:
    return "lateness" in run.jobs and bool(run.jobs["lateness"].any())


def _differences(subject: Subject) -> Curve | None:
    return _quantiles(subject.run.jobs["lateness"].to_numpy()) if _is_late(subject.run) else None


def _hours_of_week(subject: Subject) -> Curve | None:
    if subject.run.log is None:
        return None
    try:
        counts = submissions_by_hour_of_week([subject.run])[subject.run.label]
    except InputError:  # the log does not say on which day it began
        return None
    return Curve(np.array([0.5, len(counts) - 0.5]), counts.to_numpy(float))


def _lateness_of_users(column: str) -> Callable[[Subject], Curve | None]:
    def curve(subject: Subject) -> Curve | None:
        if subject.users is None:
            return None
        users = subject.users.dropna(subset=column)
        return Curve(users["jobs"].to_numpy(float), users[column].to_numpy())

    return curve


def _lateness_by_size(subject: Subject) -> Curve | None:
    if not _is_late(subject.run):
        return None
    table = additional_lateness_by_size([subject.run])
    return Curve(table["jobs"].to_numpy(float), table["additional_lateness"].to_numpy())


def _share_of_users(column: str) -> Callable[[Subject], Curve | None]:
    def curve(subject: Subject) -> Curve | None:
        return None if subject.graphs is None else _shares(subject.graphs[column].to_numpy(float))

    return curve


def _share_of_class(job_class: str, measure: Measure) -> Callable[[Subject], Curve | None]:
    def curve(subject: Subject) -> Curve | None:
        return _shares(subject.measured[measure][subject.of_class[job_class]])

    return curve


def _shares(values: Floats) -> Curve | None:
    """At each value, the share of those that are not larger; a percent further at each point, or more."""
    if not len(values):
        return None
    distinct, counts = np.unique(values, return_counts=True)
    share = 100 * counts.cumsum() / len(values)
    shown = np.unique(np.searchsorted(share, np.arange(101.0)))
    return Curve(distinct[shown], share[shown])


_TIME: Final = Axis("time", "s")
_JOBS: Final = Axis("share of the jobs", "%")
_USERS: Final = Axis("share of the users", "%")
_WAIT: Final = Axis("wait", "s", "symlog")
_SLOWDOWN: Final = Axis("bounded slowdown", scale="log")
_OF_USER: Final = Axis("jobs of the user", scale="log")

_OF_RUNS: Final = (
    Figure("Submissions", "when jobs are submitted", _TIME, Axis("jobs", "/s"), _submissions, "means"),
    Figure(
        "Cumulative submissions",
        "jobs submitted up to a time",
        _TIME,
        Axis("jobs"),
        _cumulative("submission_time"),
    ),
    Figure(
        "Cumulative terminations",
        "jobs finished up to a time",
        _TIME,
        Axis("jobs"),
        _cumulative("finish_time"),
    ),
    Figure("Throughput", "when jobs finish", _TIME, Axis("jobs", "/s"), _throughput, "means"),
    Figure(
        "Utilization", "share of the hosts that are busy", _TIME, Axis("hosts", "%"), _utilization, "means"
    ),
    Figure("Queue", "jobs that are submitted and not started", _TIME, Axis("jobs"), _queue),
    Figure(
        "Waiting times",
        "a share of the jobs waits at most so long",
        _JOBS,
        _WAIT,
        _waits,
    ),
    Figure(
        "Bounded slowdowns",
        "a share of the jobs is slowed down at most so much",
        _JOBS,
        _SLOWDOWN,
        _slowdowns,
    ),
    Figure("Power", "what all hosts draw", _TIME, Axis("power", "W"), _power, "means"),
    Figure(
        "Submissions by week and hour",
        "jobs in each hour, all weeks taken together",
        Axis("hour of the week", "week"),
        Axis("jobs"),
        _hours_of_week,
    ),
    Figure(
        "User arrivals",
        "users who have submitted up to a time",
        _TIME,
        Axis("users"),
        _arrivals,
        "steps",
    ),
    Figure(
        "Differences of submission times",
        "a share of the jobs is submitted at most so late",
        _JOBS,
        Axis("later than recorded", "s", "symlog"),
        _differences,
    ),
    Figure(
        "Mean lateness of users",
        "a dot for each user",
        _OF_USER,
        Axis("mean lateness", "s", "symlog"),
        _lateness_of_users("mean_lateness"),
        "dots",
    ),
    Figure(
        "Additional lateness of users",
        "a dot for each user",
        _OF_USER,
        Axis("additional lateness", "s", "symlog"),
        _lateness_of_users("additional_lateness"),
        "dots",
    ),
    Figure(
        "Additional lateness by size",
        "a dot for each run",
        Axis("jobs of the run"),
        Axis("additional lateness", "s"),
        _lateness_by_size,
        "dots",
    ),
    Figure(
        "Longest paths",
        "users whose session graph has no longer path",
        Axis("sessions on the longest path", scale="log"),
        _USERS,
        _share_of_users("longest_path"),
        "steps",
    ),
    Figure(
        "Arities",
        "users whose session graph has no larger arity",
        Axis("arity"),
        _USERS,
        _share_of_users("arity"),
        "steps",
    ),
)

_LIMITS: Final = {
    "short": f"run time up to {SHORT / 3600:g} h",
    "long": f"run time above {SHORT / 3600:g} h",
    "narrow": f"up to {NARROW} hosts",
    "wide": f"more than {NARROW} hosts",
}


def _by_class(title: str, x: Axis, measure: Measure) -> Iterator[Figure]:
    """How something is distributed over the jobs of each class."""
    for name in CLASSES:
        about = ", ".join(_LIMITS[word] for word in name.split(", "))
        curve = _share_of_class(name, measure)
        yield Figure(f"{title}: {name}", about, x, _JOBS, curve, "steps", "classes")


FIGURES: Final = (
    *_OF_RUNS,
    *_by_class("Waiting times", _WAIT, "wait"),
    *_by_class("Bounded slowdowns", _SLOWDOWN, "slowdown"),
)


def descriptions() -> list[dict[str, Any]]:
    """All that the page needs to know of the figures, besides their curves."""
    return [
        {
            "title": figure.title,
            "about": figure.about,
            "x": asdict(figure.x),
            "y": asdict(figure.y),
            "style": figure.style,
            "section": figure.section,
        }
        for figure in FIGURES
    ]


def curves(subject: Subject) -> dict[str, list[list[float]]]:
    """The points of a subject, by the title of each figure that it can be in, as short as JSON allows."""
    drawn = ((figure.title, figure.curve(subject)) for figure in FIGURES)
    return {title: [_short(curve.x), _short(curve.y)] for title, curve in drawn if curve is not None}


def _short(values: Floats) -> list[float]:
    """The values to six digits, whole ones without a point."""
    rounded = (float(f"{value:.6g}") for value in values.tolist())
    return [int(value) if value.is_integer() else value for value in rounded]
