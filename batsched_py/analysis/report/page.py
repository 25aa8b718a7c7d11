"""Putting the page together: a table of results, the figures behind it, and the plan they come from."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.report.series import FIGURES, curves, gantt


@dataclass(frozen=True)
class Column:
    """A metric of the table."""

    name: str
    unit: str
    formula: str
    best: str | None = None
    """Whether the ``lowest`` or the ``highest`` value is the best, if either is."""


@dataclass(frozen=True)
class Row:
    """A configuration: its place on each axis, its figures, and the run that stands for it in the charts."""

    name: str
    axes: dict[str, str]
    cells: dict[str, tuple[float | None, float | None]]
    """For each metric the mean over repetitions, and half of its confidence interval where there is one."""
    read: Callable[[], Run]
    """Reads the run that is drawn; called once, and not kept."""
    links: dict[str, str] = field(default_factory=dict)
    """Files of the run, relative to the page."""


@dataclass(frozen=True)
class Report:
    """All that a page shows."""

    title: str
    plan: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""


def write_report(path: str | Path, report: Report, on_row: Callable[[], None] | None = None) -> None:
    """Write the page; runs are read one after another, so that memory does not grow with their number."""
    end = 0.0
    for row in report.rows:
        end = max(end, row.read().end)
    drawn = []
    for row in report.rows:
        run = row.read()
        drawn.append(
            {
                "name": row.name,
                "axes": row.axes,
                "cells": row.cells,
                "links": row.links,
                "curves": curves(run, end),
                "gantt": gantt(run),
            }
        )
        if on_row is not None:
            on_row()
    data = {
        "columns": [asdict(column) for column in report.columns],
        "figures": [{"title": f.title, "about": f.about, "x": f.x, "y": f.y} for f in FIGURES],
        "rows": drawn,
    }
    Path(path).write_text(_fill(report, data), encoding="utf-8")


def _fill(report: Report, data: dict[str, Any]) -> str:
    assets = files("batsched_py.analysis.report") / "assets"
    parts = {
        "title": html.escape(report.title),
        "note": html.escape(report.note),
        "plan": html.escape(report.plan),
        "style": (assets / "page.css").read_text(encoding="utf-8"),
        "script": (assets / "page.js").read_text(encoding="utf-8"),
        "data": json.dumps(data, separators=(",", ":")).replace("</", "<\\/"),
    }
    template = (assets / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
