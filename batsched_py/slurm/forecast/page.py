"""The page that shows a forecast."""

from __future__ import annotations

import html
from math import inf
from pathlib import Path

from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.figure import Axis, Figure, Layer, Point
from batsched_py.analysis.pages.parts import figure, section, table, tiles, time_text
from batsched_py.slurm.forecast.forecast import Expected, Forecast


def write_forecast_page(path: str | Path, found: Forecast) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"When jobs will start, as of {found.now} UTC"
    note = "Nobody submits further jobs in a forecast."
    if found.repetitions:
        note += (
            f" Run times were drawn from a log {found.repetitions} times; intervals hold 80 % of the starts."
        )
    if found.misplaced:
        note += f" {found.misplaced} running jobs do not fit on their nodes, as it seems."
    shown = tiles(
        [
            ("waiting", f"{len(found.jobs):,}", ""),
            ("running", f"{found.running:,}", ""),
            ("held", f"{found.held:,}", "they have no forecast"),
        ]
    )
    header = f'<h1>{html.escape(title)}</h1>\n<p class="note">{note}</p>\n<div id="tiles">{shown}</div>'
    heads = forecast_heads(found)
    sections = []
    if found.instead is not None:
        before = next(job for job in found.jobs if job.id == found.instead.id)
        rows = [["as it is", *_escaped(before, found)], ["instead", *_escaped(found.instead, found)]]
        sections.append(
            section(f"Job {html.escape(found.instead.id)}", "", table("", heads, rows), layout="wide")
        )
    rows = [[html.escape(job.id), *_escaped(job, found)] for job in found.jobs]
    sections += [
        section("Starts", "", figure("Waiting jobs that have started", "starts"), layout="wide"),
        section("Jobs", "Those that start first come first.", table("", heads, rows), layout="wide"),
    ]
    write_figures_page(path, title, header, "".join(sections), {"starts": _starts(found)})


def forecast_heads(found: Forecast) -> list[str]:
    """The heads of the columns; the last ones are known with a log only."""
    heads = ["job", "user", "partition", "nodes", "cpus", "limit", "priority", "starts in, by limits"]
    return heads + (["starts in, likely", "80 % of the times"] if found.repetitions else [])


def forecast_cells(job: Expected, found: Forecast) -> list[str]:
    """The cells of a row behind the job's number."""
    start = job.start
    likely = [] if not found.repetitions else [_in(start.median), f"{_in(start.early)} to {_in(start.late)}"]
    return [
        job.user,
        job.partition,
        f"{job.nodes}",
        f"{job.cpus}",
        "none" if job.time_limit == inf else time_text(job.time_limit),
        f"{job.priority}",
        _in(start.by_limits),
        *likely,
    ]


def _escaped(job: Expected, found: Forecast) -> list[str]:
    return [html.escape(cell) for cell in forecast_cells(job, found)]


def _in(seconds: float | None) -> str:
    return "?" if seconds is None else time_text(seconds)


def _starts(found: Forecast) -> Figure | None:
    layers = []
    for place, (name, field) in enumerate((("by limits", "by_limits"), ("likely", "median"))):
        times = sorted(time for job in found.jobs if (time := getattr(job.start, field)) is not None)
        points = [
            Point(time, number, time_text(time), f"{name}: {number} jobs have started")
            for number, time in enumerate(times, start=1)
        ]
        if points:
            layers.append(Layer("steps", points, place, name))
    if not layers:
        return None
    last = max(mark.x for layer in layers for mark in layer.marks if isinstance(mark, Point))
    return Figure(
        Axis("time from now", "s", ends=(0, max(last, 60.0))),
        Axis("jobs", ends=(0, max(len(found.jobs), 1))),
        layers,
    )
