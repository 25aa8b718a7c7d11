"""The figures of the page: both Gantt charts on one scale of time, and how much later jobs start."""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np
import pandas as pd

from batsched_py.analysis.executions.differences import SAME, Executions, names_of_jobs
from batsched_py.analysis.pages.figure import Axis, Bar, Figure, Layer, Point
from batsched_py.analysis.pages.parts import time_text
from batsched_py.analysis.plots.kinds.gantt import rectangles
from batsched_py.analysis.plots.runs import Run

#: The most rectangles in a chart. Where there are more, it begins where the executions first differ.
MOST_RECTANGLES: Final = 10_000
#: The most dots in the figure of differences; the largest differences are kept.
MOST_DOTS: Final = 5_000

#: What a colour of a chart says about a job, compared with the other execution.
KINDS: Final = ("as in the other", "earlier", "later", "on other hosts", "only here")

#: Shades that go round in the order of starts, so that neighbouring jobs can be told apart.
SHADES: Final = (1.0, 0.7, 0.85, 0.55)


def all_figures(found: Executions) -> tuple[dict[str, Figure | None], float]:
    """The figures by their names, and from when on the charts show jobs."""
    charts = [_rectangles(run) for run in found.runs]
    window = _window(found, [chart for chart in charts if chart is not None])
    drawn: dict[str, Figure | None] = {
        name: None if chart is None else _gantt(found, run, chart, window)
        for name, run, chart in zip(("first", "second"), found.runs, charts, strict=True)
    }
    return drawn | {"differences": _differences(found)}, window[0]


def _rectangles(run: Run) -> pd.DataFrame | None:
    """What the jobs of a run take of time and hosts, in the order of their starts; unknown of a log."""
    return None if run.intervals is None else rectangles(run).dropna().sort_values("begin", kind="stable")


def _window(found: Executions, charts: list[pd.DataFrame]) -> tuple[float, float]:
    """The part of time that the charts show: all of it, or what can be drawn from the first difference on."""
    end = max(run.end for run in found.runs)
    if all(len(chart) <= MOST_RECTANGLES for chart in charts):
        return 0.0, end
    start = found.first_difference or 0.0
    last = end
    for chart in charts:
        begins = chart.loc[chart["end"] > start, "begin"].to_numpy()
        if len(begins) > MOST_RECTANGLES:
            last = min(last, float(begins[MOST_RECTANGLES]))
    return start, max(last, start + 1.0)


def _gantt(found: Executions, run: Run, chart: pd.DataFrame, window: tuple[float, float]) -> Figure:
    sign = 1 if run is found.second else -1
    names = names_of_jobs(run, found.tells_workloads)
    later = sign * found.jobs["later"]
    elsewhere = found.has_other_hosts
    layers: dict[str, list[Bar]] = {kind: [] for kind in KINDS}
    shown = chart[(chart["end"] > window[0]) & (chart["begin"] < window[1])].iloc[:MOST_RECTANGLES]
    shades = (pd.factorize(shown["job"])[0] % len(SHADES)).tolist()
    for area, shade in zip(shown.itertuples(), shades, strict=True):
        name = names[area.job]
        kind, words = _compared(later.get(name, inf), bool(elsewhere.get(name, False)))
        hosts = f"hosts {area.low:.0f}-{area.high - 1:.0f}"
        text = f"{time_text(area.begin)} to {time_text(area.end)}, {hosts}; {words}"
        layers[kind].append(
            Bar(area.begin, area.end, area.low, area.high, f"job {name}", text, SHADES[shade])
        )
    return Figure(
        Axis("time", "s", ends=window),
        Axis("host", ends=(0, run.hosts)),
        [
            Layer("bars", bars, place - 1 if place else None, kind)
            for place, (kind, bars) in enumerate(layers.items())
            if bars
        ],
    )


def _compared(later: float, elsewhere: bool) -> tuple[str, str]:
    """How a job differs from the same one in the other execution: in a word, and in words."""
    if later == inf:
        return "only here", "it did not run in the other"
    if later > SAME:
        return "later", f"{time_text(later)} later than in the other"
    if later < -SAME:
        return "earlier", f"{time_text(-later)} earlier than in the other"
    if elsewhere:
        return "on other hosts", "at the same time on other hosts"
    return "as in the other", "as in the other"


def _differences(found: Executions) -> Figure:
    """How much later each job starts in the second execution, by its submission in the first."""
    jobs = found.jobs.iloc[:MOST_DOTS]
    points = [
        Point(job.first_submission, job.later, f"job {job.Index}", _sentence(found, job.later))
        for job in jobs.itertuples()
    ]
    farthest = float(np.abs(found.jobs["later"]).max()) or 1.0
    latest = max(1.0, float(found.jobs["first_submission"].max()))
    rule = Layer("rule", [Point(0.0, 0.0)], None, "the same start")
    return Figure(
        Axis("submission", "s", ends=(0, latest)),
        Axis(f"later in {found.second.label}", "s", "symlog", ends=(-farthest, farthest)),
        [rule, Layer("dots", points, 0)],
    )


def _sentence(found: Executions, later: float) -> str:
    kind, _ = _compared(later, False)
    if kind == "as in the other":
        return "starts at the same time in both"
    return f"starts {time_text(abs(later))} {kind} in {found.second.label}"
