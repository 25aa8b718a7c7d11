"""Putting the page together: a table of results, the figures behind it, and the plan they come from."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import Any, Final, Generic
from urllib.parse import quote

from batsched_py.analysis.pages import fill, write_page
from batsched_py.analysis.plots.kinds.repetitions import Box
from batsched_py.analysis.report.drawing import drawing
from batsched_py.analysis.report.figures import descriptions
from batsched_py.analysis.report.links import section
from batsched_py.analysis.report.series import Subject
from batsched_py.analysis.runs.columns import ColumnFormat, Own, column_of
from batsched_py.analysis.runs.comparison import compare
from batsched_py.analysis.runs.measured import Group, R, known_metrics, repetitions

_ASSETS: Final = files("batsched_py.analysis.report") / "assets"

#: The scripts of the page, in the order in which they build on each other.
_SCRIPTS: Final = tuple(
    _ASSETS / f"{part}.js" for part in "state look table chart gantt multiples metric boxes page".split()
)

#: The most rectangles of jobs in all Gantt charts of a page together.
MOST_RECTANGLES: Final = 100_000


@dataclass(frozen=True)
class Report(Generic[R]):
    """All that a page shows."""

    title: str
    plan: str
    metrics: Sequence[str]
    runs: Sequence[R]
    """Those that are finished. A row of the table is about all that differ in part or seed only."""
    read: Callable[[R], Subject | None]
    """Reads a run that is drawn, unless there is nothing to draw; called once for the first of each row."""
    recorded: Mapping[str, Callable[[], Subject]]
    """Read the logs as they were recorded, by their names on the axis ``log``; called once."""
    failed: Sequence[R] = ()
    note: str = ""
    baseline: str = ""
    """What others are compared with, as a plan names it; without it all schedulers are compared."""
    own: Own = field(default_factory=dict)
    """What is known of metrics that are not ours."""


def write_report(
    path: str | Path, report: Report[R], on_row: Callable[[int, int], None] | None = None, workers: int = 1
) -> None:
    """Write the page; not all runs are read at once, so that memory does not grow with their number.

    They are read in so many processes. Before the first row and after each ``on_row`` is told how many are
    done, and of how many; the logs that they replay count as rows.
    """
    groups = repetitions(report.runs)
    metrics = known_metrics(report.metrics, report.runs)
    are_repeated = any(len(group.runs) > 1 for group in groups)
    rows: list[dict[str, Any]] = []
    recorded: list[dict[str, Any]] = []
    links: dict[str, list[dict[str, Any]]] = {}
    most = MOST_RECTANGLES // max(1, len(groups))
    reads = [partial(report.read, group.runs[0]) for group in groups]

    def tell() -> None:
        if on_row is not None:
            on_row(len(rows) + len(recorded), len(groups) + len(report.recorded))

    tell()
    with drawing(workers) as draw_all:
        for group, drawn in zip(groups, draw_all(reads, most), strict=True):
            links[group.runs[0].name] = drawn.pop("links")
            rows.append({**_row(group, metrics, are_repeated), **drawn})
            tell()
        for log, drawn in zip(report.recorded, draw_all([*report.recorded.values()], None), strict=True):
            recorded.append({"log": log, "curves": drawn["curves"]})
            tell()
    data = {
        "columns": [_column(metric, groups, report.own) for metric in metrics],
        "figures": descriptions(),
        "rows": rows,
        "recorded": recorded,
        "runs": [_listed(run, Path(path).parent) for run in (*report.runs, *report.failed)],
    }
    compared = compare(report.runs, report.metrics, report.baseline, report.own)
    parts = {
        "title": html.escape(report.title),
        "note": html.escape(report.note),
        "findings": _details([str(each) for each in compared]),
        "plan": html.escape(report.plan),
        "links": section(links),
    }
    write_page(path, report.title, fill(_ASSETS / "body.html", parts), data, _ASSETS / "report.css", _SCRIPTS)


def _column(metric: str, groups: Sequence[Group[R]], own: Own) -> dict[str, Any]:
    """A metric of the table, with whether its ``lowest`` or ``highest`` value is the best, if either is."""
    column = column_of(metric, own)
    form = ColumnFormat.of(column.unit, [group.estimate(metric) for group in groups])
    return {
        "name": metric,
        "unit": form.unit,
        "formula": column.formula,
        "best": {"lower": "lowest", "higher": "highest", "neither": None}[column.better],
        "scale": form.scale,
        "decimals": form.decimals,
        "log": metric.endswith(("slowdown", "stretch")),
    }


def _row(group: Group[R], metrics: Sequence[str], are_repeated: bool) -> dict[str, Any]:
    """A configuration: its place on each axis, its figures, and how they differ between repetitions.

    A cell has the mean over repetitions, and half of its confidence interval where there is one.
    """
    means = {metric: group.estimate(metric) for metric in metrics}
    boxes = {metric: Box.of(group.values(metric)) for metric in metrics if are_repeated}
    return {
        "name": group.runs[0].name,
        "axes": group.axes,
        "cells": {
            name: (None, None) if isnan(found.mean) else (found.mean, found.half_width)
            for name, found in means.items()
        },
        "spreads": {name: asdict(box) for name, box in boxes.items() if box.count},
    }


def _listed(run: R, folder: Path) -> dict[str, Any]:
    """A run with its files, as a page in this folder reaches them."""
    links = {
        name: quote(os.path.relpath(file, folder).replace(os.sep, "/")) for name, file in run.files.items()
    }
    return {"name": run.name, "links": links, "remark": run.remark}


def _details(sentences: Sequence[str]) -> str:
    """A list that a click unfolds; nothing if it is empty."""
    if not sentences:
        return ""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f"<details><summary>{len(sentences)} comparisons in pairs</summary><ul>{items}</ul></details>"
