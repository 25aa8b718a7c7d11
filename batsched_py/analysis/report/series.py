"""The curves that a report draws of each run, thinned out to what a screen can show."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.outcome import queue_length
from batsched_py.analysis.plots.gantt import rectangles
from batsched_py.analysis.plots.lateness import user_lateness
from batsched_py.analysis.plots.raster import paint
from batsched_py.analysis.plots.runs import Run

Floats = NDArray[np.float64]

POINTS: Final = 240
GANTT_ROWS: Final = 80
GANTT_COLUMNS: Final = 360
DAY: Final = 86400.0
HOUR: Final = 3600.0


@dataclass(frozen=True)
class Figure:
    """A chart of the report: what it shows, and how a run's curve is computed."""

    title: str
    about: str
    x: str
    y: str
    curve: Callable[[Run, float], tuple[Floats, Floats]]
    """Both coordinates for a run, given the time at which the last of all runs ends."""
    needs_recorded: bool = False
    """Whether it compares with the recorded log."""


def _edges(end: float) -> Floats:
    return np.linspace(0.0, end, POINTS + 1)


def _counted(column: str) -> Callable[[Run, float], tuple[Floats, Floats]]:
    def curve(run: Run, end: float) -> tuple[Floats, Floats]:
        times = _edges(end)
        happened = np.sort(run.executed[column].to_numpy())
        return times / DAY, np.searchsorted(happened, times, side="right").astype(float)

    return curve


def _utilization(run: Run, end: float) -> tuple[Floats, Floats]:
    edges = _edges(end)
    return (edges[:-1] + edges[1:]) / 2 / DAY, 100 * run.busy_hosts(edges) / run.hosts


def _queue(run: Run, end: float) -> tuple[Floats, Floats]:
    queue = queue_length(run.jobs)
    times = _edges(end)
    place = np.searchsorted(queue.index.to_numpy(), times, side="right") - 1
    return times / DAY, np.where(place >= 0, queue.to_numpy()[place], 0)


def _throughput(run: Run, end: float) -> tuple[Floats, Floats]:
    edges = np.linspace(0.0, end, 61)
    counts, _ = np.histogram(run.executed["finish_time"], edges)
    return (edges[:-1] + edges[1:]) / 2 / DAY, counts / (np.diff(edges) / DAY)


def _quantiles(values: Floats) -> tuple[Floats, Floats]:
    shares = np.linspace(0.0, 100.0, 101)
    return shares, np.percentile(values, shares)


def _waits(run: Run, end: float) -> tuple[Floats, Floats]:
    shares, waits = _quantiles(run.executed["waiting_time"].to_numpy())
    return shares, waits / HOUR


def _differences(run: Run, end: float) -> tuple[Floats, Floats]:
    shares, differences = _quantiles(run.jobs["lateness"].to_numpy())
    return shares, differences / DAY


def _user_lateness(run: Run, end: float) -> tuple[Floats, Floats]:
    lateness = np.sort(user_lateness(run)["mean_lateness"].to_numpy())
    return np.arange(1.0, len(lateness) + 1), lateness / DAY


def _hour_of_week(run: Run, end: float) -> tuple[Floats, Floats]:
    hours = (run.jobs["submission_time"].to_numpy() // HOUR).astype(int) % 168
    return np.arange(168) / 24, np.bincount(hours, minlength=168).astype(float)


FIGURES: Final = (
    Figure("Submissions", "jobs submitted up to a time", "days", "jobs", _counted("submission_time")),
    Figure("Terminations", "jobs finished up to a time", "days", "jobs", _counted("finish_time")),
    Figure("Utilization", "share of the hosts that are busy", "days", "% of hosts", _utilization),
    Figure("Queue", "jobs that wait", "days", "jobs", _queue),
    Figure("Throughput", "jobs finished a day", "days", "jobs a day", _throughput),
    Figure("Waiting times", "this share of the jobs waits at most so long", "% of jobs", "hours", _waits),
    Figure(
        "Week",
        "jobs submitted in each hour of the week, from the log's first hour on",
        "days",
        "jobs",
        _hour_of_week,
    ),
    Figure(
        "Lateness of users",
        "mean of submission minus recorded submission, users in order",
        "users",
        "days",
        _user_lateness,
        needs_recorded=True,
    ),
    Figure(
        "Differences of submission",
        "this share of the jobs is at most so late",
        "% of jobs",
        "days",
        _differences,
        needs_recorded=True,
    ),
)


def curves(run: Run, end: float) -> dict[str, Any]:
    """For each figure that can be drawn of a run, its points, as short as JSON allows."""
    drawn = [figure for figure in FIGURES if not figure.needs_recorded or "lateness" in run.jobs]
    return {figure.title: [_short(values) for values in figure.curve(run, end)] for figure in drawn}


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]


def gantt(run: Run) -> dict[str, Any]:
    """How busy each host, or group of neighbouring hosts, is over time: 0 to 255, row by row."""
    areas: pd.DataFrame = rectangles(run.jobs)
    rows = min(run.hosts, GANTT_ROWS)
    x = areas[["begin", "end"]].to_numpy() * (GANTT_COLUMNS / run.end)
    y = areas[["low", "high"]].to_numpy() * (rows / run.hosts)
    ink = np.zeros((len(areas), 3))
    image = paint(x[:, 0], x[:, 1], y[:, 0], y[:, 1], ink, GANTT_COLUMNS, rows)
    busy = np.round(255 * (1 - image[:, :, 0])).astype(np.uint8)
    return {
        "rows": rows,
        "columns": GANTT_COLUMNS,
        "hosts": run.hosts,
        "days": float(f"{run.end / DAY:.5g}"),
        "busy": base64.b64encode(busy.tobytes()).decode(),
    }
