"""The report: one HTML page that needs nothing else, neither the network nor a server."""

import html
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from importlib.resources import files
from math import isnan
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple
from urllib.parse import quote

import pandas as pd

from batsched_py.analysis.pages import fill, write_page
from batsched_py.analysis.plots.kinds.campaigns import Box
from batsched_py.analysis.plots.kinds.submitters import graph_statistics
from batsched_py.analysis.plots.runs import Run, recorded_run
from batsched_py.analysis.report.figures import Subject, curves, descriptions, gantt
from batsched_py.analysis.runs import aggregate
from batsched_py.analysis.runs.aggregate import Baseline, Group, MeasuredRun, R
from batsched_py.analysis.runs.columns import ColumnFormat, Own, column_of
from batsched_py.analysis.runs.comparisons import best_rows, comparable_rows, compare, findings
from batsched_py.analysis.runs.tables import tables_of
from batsched_py.workload.sessions import session_rule
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload


class LogFile(NamedTuple):
    """Where a recorded log is, and what must be in it."""

    path: Path
    sha256: str


@lru_cache(maxsize=2)
def _log(file: LogFile) -> SwfLog:
    """What was recorded; rows come log by log, so it is mostly the one that was asked for last."""
    return read_swf(file.path)


@lru_cache(maxsize=8)
def _session_graphs(file: LogFile, delimiter: str) -> pd.DataFrame:
    return graph_statistics(swf_to_workload(_log(file)), [session_rule(delimiter)])


def recorded_subject(file: LogFile) -> Subject:
    """What is drawn of a log as it was recorded."""
    return Subject(recorded_run(_log(file)))


def replaying_subject(run: Run, file: LogFile, delimiter: str | None) -> Subject:
    """What is drawn of a run that replays a log; the delimiter is that of its users' sessions, if any."""
    graphs = None if delimiter is None else _session_graphs(file, delimiter)
    return Subject(replace(run, log=_log(file)), graphs)


#: So many links of each run are listed.
MOST: Final = 5

_HEADINGS: Final = ("link", "mean load", "carried", "lost there by jobs")


def most_loaded(run: Run) -> list[dict[str, Any]]:
    """The most loaded links of a run; none if what they carried was not recorded."""
    if run.carried is None:
        return []
    table = run.carried.most_loaded("link", MOST)
    return table[["name", "load", "carried", "lost"]].to_dict("records")


def section(links: Mapping[str, list[dict[str, Any]]]) -> str:
    """The part of the page with these links by the names of runs; nothing if there are none."""
    tables = "".join(_table(name, rows) for name, rows in links.items() if rows)
    if not tables:
        return ""
    about = (
        "The load is the mean share of the bandwidth over the whole run. A job loses time on a link when it "
        "would run faster if it had the link for itself."
    )
    return (
        f'\n<section id="links">\n<h2>Most loaded links</h2>\n<p class="note">{about}</p>\n{tables}</section>'
    )


def _table(name: str, rows: list[dict[str, Any]]) -> str:
    lines = [("th", _HEADINGS)]
    for row in rows:
        carried, lost = f"{row['carried'] / 1e9:,.3g} GB", f"{row['lost']:,.0f} s"
        lines.append(("td", (row["name"], f"{row['load']:.1%}", carried, lost)))
    body = ""
    for tag, cells in lines:
        body += "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>\n"
    return f"<h3>{html.escape(name)}</h3>\n<table>\n{body}</table>\n"


#: Reads a run; None if there is nothing to draw.
Read = Callable[[], Subject | None]

#: Makes what the charts show of each run, in order, with at most so many rectangles in its Gantt chart.
DrawAll = Callable[[Sequence[Read], int | None], Iterable[dict[str, Any]]]

#: At most so many successive runs are read by one process, which keeps their log in memory.
NEIGHBOURS = 8


@contextmanager
def drawing(workers: int) -> Iterator[DrawAll]:
    """A function that makes what the charts show, in so many processes."""
    if workers < 2:
        yield lambda reads, most: map(partial(_drawn, most), reads)
        return
    pool = ProcessPoolExecutor(workers, get_context("forkserver"), _leave_interrupts_to_the_parent)
    try:
        yield lambda reads, most: pool.map(
            partial(_drawn, most), reads, chunksize=together(len(reads), workers)
        )
    finally:
        pool.shutdown(cancel_futures=True)


def together(runs: int, workers: int) -> int:
    """How many successive runs one process reads, so that all have some, and some are ready soon.

    >>> together(4, 2), together(24, 2), together(1000, 2)
    (1, 3, 8)
    """
    return min(NEIGHBOURS, max(1, runs // (4 * workers)))


def _drawn(most_rectangles: int | None, read: Read) -> dict[str, Any]:
    """What the charts show of a run."""
    subject = read()
    if subject is None:
        return {"curves": {}, "gantt": None, "links": []}
    chart = None if most_rectangles is None else gantt(subject.run, most_rectangles)
    return {"curves": curves(subject), "gantt": chart, "links": most_loaded(subject.run)}


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
    """What is measured of those that are finished. A row is about all that differ in part or seed only."""
    read: Callable[[R], Subject | None]
    """Reads a run that is drawn, unless there is nothing to draw; called once for the first of each row."""
    recorded: Mapping[str, Callable[[], Subject]]
    """Read the logs as they were recorded, by their names on the axis ``log``; called once."""
    listed: Sequence[Any] | None = None
    """The runs that are finished, for the list with their files, where windows of them are measured."""
    failed: Sequence[Any] = ()
    note: str = ""
    baseline: str = ""
    """What others are compared with, as a plan names it; without it all schedulers are compared."""
    own: Own = field(default_factory=dict)
    """What is known of metrics that are not ours."""
    unit: str = ""
    """The axis whose values are independent of each other, if the plan names it."""
    window: str = ""
    """What is measured of each run, in words."""
    review: Sequence[str] = ()
    """What a review of the study says, a line each."""
    figures: Mapping[str, str] = field(default_factory=dict)
    """Further figures, which the plan names, as elements of a page, with what each shows as its key."""

    @property
    def results(self) -> aggregate.Aggregate:
        """The table, with a row for each configuration; without a baseline, so that none is tested in it."""
        axes = dict.fromkeys(axis for run in self.runs for axis in run.axes)
        by = [axis for axis in axes if axis not in aggregate.REPETITIONS]
        return aggregate.aggregate(
            self.runs, self.metrics, by, None, self.own, window=self.window, unit=self.unit
        )


def write_report(
    path: str | Path, report: Report[R], on_row: Callable[[int, int], None] | None = None, workers: int = 1
) -> None:
    """Write the page; not all runs are read at once, so that memory does not grow with their number.

    They are read in so many processes. Before the first row and after each ``on_row`` is told how many are
    done, and of how many; the logs that they replay count as rows.
    """
    results = report.results
    groups, metrics = [group for group, _ in results.rows], results.metrics
    best = {metric: best_rows(metric, results) for metric in metrics}
    are_repeated = any(len(group.runs) > 1 for group in groups)
    rows: list[dict[str, Any]] = []
    recorded: list[dict[str, Any]] = []
    links: dict[str, list[dict[str, Any]]] = {}
    most = MOST_RECTANGLES // max(1, len(groups))
    comparable = comparable_rows([group.axes for group in groups])
    baseline = Baseline.parse(report.baseline)
    first = {run.name: run for run in report.runs}
    reads = [partial(report.read, first[group.runs[0].name]) for group in groups]

    def tell() -> None:
        if on_row is not None:
            on_row(len(rows) + len(recorded), len(groups) + len(report.recorded))

    tell()
    with drawing(workers) as draw_all:
        for number, drawn in enumerate(draw_all(reads, most)):
            links[groups[number].runs[0].name] = drawn.pop("links")
            bold = [metric for metric in metrics if number in best[metric]]
            row = _row(*results.rows[number], are_repeated)
            rows.append({**row, "group": comparable[number], "best": bold, **drawn})
            tell()
        for log, drawn in zip(report.recorded, draw_all([*report.recorded.values()], None), strict=True):
            recorded.append({"log": log, "curves": drawn["curves"]})
            tell()
    data = {
        "columns": [_column(metric, results) for metric in metrics],
        "baseline": None if baseline is None else {"axis": baseline.axis, "name": baseline.name},
        "figures": descriptions(),
        "rows": rows,
        "recorded": recorded,
        "runs": [
            _listed(run, Path(path).parent) for run in (*(report.listed or report.runs), *report.failed)
        ],
    }
    compared = compare(report.runs, report.metrics, report.baseline, report.own, report.unit)
    parts = {
        "title": html.escape(report.title),
        "note": html.escape(report.note),
        "findings": _list("found", "What it found", [*findings(compared, report.metrics)])
        + _details([str(each) for each in compared])
        + _list("review", "Review", report.review),
        "table": html.escape(tables_of(results)[0].note) if groups else "",
        "plan": html.escape(report.plan),
        "links": section(links) + _further(report.figures),
    }
    write_page(path, report.title, fill(_ASSETS / "body.html", parts), data, _ASSETS / "report.css", _SCRIPTS)


def _further(figures: Mapping[str, str]) -> str:
    """The section of the figures that the plan names; nothing if there are none."""
    drawn = "".join(
        f"\n<figure><figcaption>{html.escape(shown)}</figcaption>{element}</figure>"
        for shown, element in figures.items()
    )
    return f"\n<section>\n<h2>Figures of the plan</h2>{drawn}\n</section>" if drawn else ""


def _column(metric: str, results: aggregate.Aggregate) -> dict[str, Any]:
    """A metric of the table, and how its figures are written."""
    column = column_of(metric, results.own)
    form = ColumnFormat.of(column.unit, [measured[metric].estimate for _, measured in results.rows])
    return {
        "name": metric,
        "unit": form.unit,
        "formula": column.formula,
        "scale": form.scale,
        "decimals": form.decimals,
        "log": metric.endswith(("slowdown", "stretch")),
    }


def _row(
    group: Group[MeasuredRun], measured: Mapping[str, aggregate.Measured], are_repeated: bool
) -> dict[str, Any]:
    """A configuration: its place on each axis, its figures, and how they differ between repetitions.

    A cell has the mean over repetitions, and both ends of its confidence interval where there is one.
    """
    means = {metric: found.estimate for metric, found in measured.items()}
    boxes = {metric: Box.of(group.values(metric)) for metric in measured if are_repeated}
    return {
        "name": group.runs[0].name.partition("/")[0],
        "axes": {axis: name for axis, name in group.axes.items() if name},
        "unstable": group.unstable,
        "cells": {
            name: (None, None, None) if isnan(found.mean) else (found.mean, found.low, found.high)
            for name, found in means.items()
        },
        "spreads": {name: asdict(box) for name, box in boxes.items() if box.count},
    }


def _list(name: str, title: str, lines: Sequence[str]) -> str:
    """Sentences as a list under a title; nothing if there are none."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<section id="{name}"><h2>{title}</h2><ul>{items}</ul></section>' if items else ""


def _listed(run: MeasuredRun, folder: Path) -> dict[str, Any]:
    """A run with its files, as a page in this folder reaches them."""
    links = {
        name: quote(os.path.relpath(file, folder).replace(os.sep, "/")) for name, file in run.files.items()
    }
    return {"name": run.name, "links": links, "remark": run.remark}


def _details(sentences: Sequence[str]) -> str:
    """A list that a click unfolds; nothing if it is empty."""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    title = f"{len(sentences)} comparisons in pairs"
    return f"<details><summary>{title}</summary><ul>{items}</ul></details>" if items else ""
