"""Putting the page together: a table of results, the figures behind it, and the plan they come from."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from batsched_py.analysis.pages import fill, write_page
from batsched_py.analysis.plots.kinds.repetitions import Box
from batsched_py.analysis.report.drawing import drawing
from batsched_py.analysis.report.figures import descriptions
from batsched_py.analysis.report.series import Subject

_ASSETS: Final = files("batsched_py.analysis.report") / "assets"

#: The scripts of the page, in the order in which they build on each other.
_SCRIPTS: Final = tuple(
    _ASSETS / f"{part}.js" for part in "state table chart gantt multiples metric boxes page".split()
)

#: The most rectangles of jobs in all Gantt charts of a page together.
MOST_RECTANGLES: Final = 100_000


@dataclass(frozen=True)
class Column:
    """A metric of the table."""

    name: str
    unit: str
    formula: str
    best: str | None = None
    """Whether the ``lowest`` or the ``highest`` value is the best, if either is."""
    scale: float = 1.0
    """What values are divided by to be in this unit."""
    decimals: int = 3


@dataclass(frozen=True)
class Row:
    """A configuration: its place on each axis, its figures, and the run that the charts show for it."""

    name: str
    axes: Mapping[str, str]
    cells: Mapping[str, tuple[float | None, float | None]]
    """For each metric the mean over repetitions, and half of its confidence interval where there is one."""
    read: Callable[[], Subject | None]
    """Reads the run that is drawn, unless there is nothing to draw; called once, and not kept."""
    spreads: Mapping[str, Box] = field(default_factory=dict)
    """How each metric differs between repetitions; empty where nothing is repeated."""


@dataclass(frozen=True)
class RecordedLog:
    """What was recorded, to be drawn beside the runs that replay it."""

    log: str
    """Its name, which the rows have on the axis ``log``."""
    read: Callable[[], Subject]
    """Reads what is drawn, as in a row."""


@dataclass(frozen=True)
class ListedRun:
    """A run of the campaign, finished or not."""

    name: str
    links: Mapping[str, str]
    """Its files, relative to the page."""
    remark: str
    """How to make it again, or why it failed."""


@dataclass(frozen=True)
class Report:
    """All that a page shows."""

    title: str
    plan: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    recorded: Sequence[RecordedLog] = ()
    runs: Sequence[ListedRun] = ()
    note: str = ""
    findings: Sequence[str] = ()
    """What the results say, a sentence each."""


def write_report(
    path: str | Path, report: Report, on_row: Callable[[int, int], None] | None = None, workers: int = 1
) -> None:
    """Write the page; not all runs are read at once, so that memory does not grow with their number.

    They are read in so many processes. After each row ``on_row`` is told how many are done, and of how many.
    """
    rows: list[dict[str, Any]] = []
    most = MOST_RECTANGLES // max(1, len(report.rows))
    with drawing(workers) as draw_all:
        for row, drawn in zip(report.rows, draw_all([row.read for row in report.rows], most), strict=True):
            spreads = {name: asdict(box) for name, box in row.spreads.items()}
            rows.append({"name": row.name, "axes": row.axes, "cells": row.cells, "spreads": spreads, **drawn})
            if on_row is not None:
                on_row(len(rows), len(report.rows))
        recorded = [
            {"log": each.log, "curves": drawn["curves"]}
            for each, drawn in zip(
                report.recorded, draw_all([each.read for each in report.recorded], None), strict=True
            )
        ]
    data = {
        "columns": [asdict(column) for column in report.columns],
        "figures": descriptions(),
        "rows": rows,
        "recorded": recorded,
        "runs": [asdict(run) for run in report.runs],
    }
    parts = {
        "title": html.escape(report.title),
        "note": html.escape(report.note),
        "findings": _details(report.findings),
        "plan": html.escape(report.plan),
    }
    write_page(path, report.title, fill(_ASSETS / "body.html", parts), data, _ASSETS / "report.css", _SCRIPTS)


def _details(sentences: Sequence[str]) -> str:
    """A list that a click unfolds; nothing if it is empty."""
    if not sentences:
        return ""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f"<details><summary>{len(sentences)} comparisons in pairs</summary><ul>{items}</ul></details>"
