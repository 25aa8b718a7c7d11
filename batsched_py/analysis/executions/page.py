"""The page that shows two executions side by side."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

from batsched_py.analysis.executions.differences import Executions
from batsched_py.analysis.executions.figures import MOST_RECTANGLES, all_figures
from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.parts import figure, section, table, tiles, time_text

#: So many jobs are in the table, those whose starts differ most.
MOST_ROWS: Final = 50


def write_executions_page(path: str | Path, found: Executions) -> None:
    """Write the page: one file that needs no other and no network."""
    first, second = (run.label for run in found.runs)
    drawn, since = all_figures(found)
    title = f"{first} and {second}"
    header = f'<h1>{html.escape(title)}</h1>\n<div id="tiles">{_tiles(found)}</div>'
    charts = section(
        "Gantt charts",
        _note(found, since),
        figure(first, "first"),
        figure(second, "second"),
    )
    starts = section(
        "Starts",
        f"How much later each job starts in {second}, by its submission in {first}.",
        figure("", "differences"),
        layout="wide",
    )
    times = (f"start, {first}", f"start, {second}", "later", "longer wait", "longer run")
    heads = ("job", *times, f"hosts, {first}", f"hosts, {second}")
    jobs = section(
        "Jobs",
        "Those whose starts differ most. The command batsched-py diff -o TABLE.csv writes all.",
        table("", heads, _rows(found)),
        layout="wide",
    )
    write_figures_page(path, title, header, "\n".join([charts, starts, jobs]), drawn)


def _tiles(found: Executions) -> str:
    shown = [
        (
            "jobs in both",
            f"{len(found.jobs):,}",
            f"{len(found.only_first) + len(found.only_second):,} in one only",
        ),
        ("start differently", f"{int(found.is_moved.sum()):,}", f"{found.is_moved.mean():.0%} of them"),
        (
            "on other hosts",
            f"{int(found.has_other_hosts.sum()):,}",
            f"{found.has_other_hosts.mean():.0%} of them",
        ),
    ]
    for name, (one, two) in found.measured().items():
        texts = [f"{each:.2f}" if "slowdown" in name else time_text(each) for each in (one, two)]
        shown.append((name, texts[1], f"{texts[0]} in {html.escape(found.first.label)}"))
    return tiles(shown)


def _note(found: Executions, since: float) -> str:
    parts = ["Drag across a chart to zoom in both, double-click to see all of it again, hover for values."]
    if any(run.intervals is None for run in found.runs):
        parts.append("A log does not tell on which hosts its jobs ran.")
    if found.first_difference is None:
        parts.append("Both executions are the same.")
    else:
        parts.append(f"They first differ at {time_text(found.first_difference)}.")
    if since:
        parts.append(f"Charts show about {MOST_RECTANGLES:,} jobs, from there on.")
    return " ".join(parts)


def _rows(found: Executions) -> list[list[str]]:
    return [
        [
            html.escape(str(job.Index)),
            time_text(job.first_start),
            time_text(job.second_start),
            signed(job.later),
            signed(job.longer_wait),
            signed(job.longer_run),
            html.escape(job.first_hosts),
            html.escape(job.second_hosts),
        ]
        for job in found.jobs[found.differs].iloc[:MOST_ROWS].itertuples()
    ]


def signed(seconds: float) -> str:
    """A difference in the unit that suits it.

    >>> signed(-90.0), signed(5400), signed(0)
    ('-1.5 min', '+1.5 h', '0 s')
    """
    sign = "+" if seconds > 0 else "-" if seconds < 0 else ""
    return sign + time_text(abs(seconds))
