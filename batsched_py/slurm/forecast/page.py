"""Forecasts as a page, and the cells of their tables."""

import html
from math import inf
from pathlib import Path

from batsched_py.analysis import pages
from batsched_py.slurm.forecast.forecast import Advice, Expected, Forecast


def write_forecast_page(path: str | Path, found: Forecast) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"When jobs will start, as of {found.now} UTC"
    note = html.escape(what_is_left_out(found))
    if found.repetitions:
        note = f"Run times were drawn from a log {found.repetitions} times. {note}"
    if found.misplaced:
        note += f" {found.misplaced} running jobs do not fit on their nodes, as it seems."
    shown = pages.tiles(
        [
            ("waiting", f"{len(found.jobs):,}", ""),
            ("running", f"{found.running:,}", ""),
            ("held", f"{found.held:,}", "they have no forecast"),
        ]
    )
    header = f'<h1>{html.escape(title)}</h1>\n<p class="note">{note}</p>\n<div id="tiles">{shown}</div>'

    def section(title: str, note: str, jobs: dict[str, Expected]) -> str:
        rows = [[*map(html.escape, (name, *forecast_cells(job, found)))] for name, job in jobs.items()]
        return pages.section(title, note, pages.table("", forecast_heads(found), rows), layout="wide")

    sections = []
    if found.advice:
        rows = [list(map(html.escape, (each.option, *advice_cells(each, found)))) for each in found.advice]
        table = pages.table("", advice_heads(found), rows)
        sections.append(pages.section(html.escape(advice_title(found)), ADVICE_NOTE, table, layout="wide"))
    if found.instead is not None:
        sections.append(section(f"Job {html.escape(found.instead.id)}", "", as_it_is_and_instead(found)))
    figure = pages.figure("Waiting jobs that have started", "starts")
    sections += [
        pages.section("Starts", "", figure, layout="wide"),
        section("Jobs", "Those that start first come first.", {job.id: job for job in found.jobs}),
    ]
    pages.write_figures_page(path, title, header, "".join(sections), {"starts": _starts(found)})


def what_is_left_out(found: Forecast) -> str:
    """What starts and intervals are worth."""
    proof = found.proof
    if proof is None:
        return "Nobody submits further jobs in a forecast, and all jobs run as long as they may."
    known = f"{proof.forecasts:,} starts are known of forecasts for {proof.moments} earlier moments"
    if not proof.is_enough or proof.covered_as_drawn is None:
        return f"{known}. That is too little to stretch intervals by, so they hold 80 % of the draws only."
    return (
        f"{known}. As they were drawn, intervals held {proof.covered_as_drawn:.0%} of them. So those of now "
        "are moved and stretched by what these would have needed to hold 80 %."
    )


def as_it_is_and_instead(found: Forecast) -> dict[str, Expected]:
    """The job that was asked about; nothing if none was."""
    if found.instead is None:
        return {}
    as_it_is = next(job for job in found.jobs if job.id == found.instead.id)
    return {"as it is": as_it_is, "instead": found.instead}


def forecast_heads(found: Forecast, interval: str | None = None) -> list[str]:
    """The heads of the columns; the last ones are known with a log only."""
    is_proven = found.proof is not None and found.proof.is_enough
    interval = interval or ("80 % interval" if is_proven else "80 % of the draws")
    heads = ["job", "user", "partition", "nodes", "cpus", "limit", "priority", "starts in, by limits"]
    return [*heads, *(["starts in, likely", interval] if found.repetitions else []), "waits for"]


def forecast_cells(job: Expected, found: Forecast) -> list[str]:
    """The cells of a row behind the job's number."""
    start = job.start
    likely = [] if not found.repetitions else [_in(start.median), f"{_in(start.early)} to {_in(start.late)}"]
    return [
        job.user,
        job.partition,
        f"{job.nodes}",
        f"{job.cpus}",
        "none" if job.time_limit == inf else pages.time_text(job.time_limit),
        f"{job.priority}",
        _in(start.by_limits),
        *likely,
        job.waits_for,
    ]


ADVICE_NOTE = (
    "A gain is how much earlier the job starts. What gains most comes first. A job is taken to run for the "
    "same share of any time limit."
)


def advice_title(found: Forecast) -> str:
    """What the table of advice is about."""
    return f"What job {found.about} might ask for instead"


def advice_heads(found: Forecast) -> list[str]:
    """The heads of the columns; the last ones are known with a log only."""
    drawn = ["starts in, likely", "gain", "80 % of the draws", "jobs that ran longer"]
    return ["option", "starts in, by limits", "gain by limits", *(drawn if found.repetitions else [])]


def advice_cells(each: Advice, found: Forecast) -> list[str]:
    """The cells of a row behind the option."""
    start = each.expected.start
    cells = [_in(start.by_limits), _gain(each.gain_by_limits)]
    if found.repetitions:
        span = f"{_gain(each.least_gain)} to {_gain(each.most_gain)}"
        too_short = "" if each.too_short is None else f"{each.too_short:.0%}"
        cells += [_in(start.median), _gain(each.gain), span, too_short]
    return cells


def _gain(seconds: float | None) -> str:
    return "?" if seconds is None else f"{'-' if seconds <= -1 else ''}{pages.time_text(abs(seconds))}"


def _in(seconds: float | None) -> str:
    return "?" if seconds is None else pages.time_text(seconds)


def _starts(found: Forecast) -> pages.Figure | None:
    layers = []
    for place, (name, field) in enumerate((("by limits", "by_limits"), ("likely", "median"))):
        times = sorted(time for job in found.jobs if (time := getattr(job.start, field)) is not None)
        points = [
            pages.Point(time, number, pages.time_text(time), f"{name}: {number} jobs have started")
            for number, time in enumerate(times, start=1)
        ]
        if points:
            layers.append(pages.Layer("steps", points, place, name))
    if not layers:
        return None
    last = max(mark.x for layer in layers for mark in layer.marks if isinstance(mark, pages.Point))
    return pages.Figure(
        pages.Axis("time from now", "s", ends=(0, max(last, 60.0))),
        pages.Axis("jobs", ends=(0, max(len(found.jobs), 1))),
        layers,
    )
