"""Two executions of one workload, compared job by job."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from batsched_py.analysis import pages
from batsched_py.analysis.plots.kinds.gantt import rectangles
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError
from batsched_py.output_files import writing

#: Batsim writes times with six decimals; a difference in the last one is none.
SAME: Final = 2e-6

#: In the bounded slowdown, shorter jobs count as if they ran for so many seconds.
BOUND: Final = 10.0

#: What is known of a job in each execution, and the column of a schedule that tells it.
_KNOWN: Final = {
    "submission": "submission_time",
    "start": "starting_time",
    "finish": "finish_time",
    "size": "held",
    "hosts": "allocated_resources",
}


@dataclass(frozen=True, eq=False)
class Executions:
    """Two executions, and the jobs that ran in both."""

    first: Run
    second: Run
    jobs: pd.DataFrame
    """A row for each job that ran in both, those first whose starts differ most.

    ``later`` is how much later it starts in the second execution, ``longer_wait`` and ``longer_run`` how much
    longer it waits and runs there, in seconds. ``first_submission``, ``first_start``, ``first_finish``,
    ``first_size`` and ``first_hosts`` are what they were in the first one, and so on; a log does not tell
    hosts.
    """
    only_first: list[str]
    """The jobs that ran in the first one only."""
    only_second: list[str]

    def __repr__(self) -> str:
        return f"<Executions {self.first.label} and {self.second.label}: {len(self.jobs):,} jobs in both>"

    @property
    def runs(self) -> tuple[Run, Run]:
        """Both."""
        return self.first, self.second

    @property
    def tells_workloads(self) -> bool:
        """Whether the names of jobs have their workloads in front; a log has none."""
        return all("workload_name" in run.jobs for run in self.runs)

    @cached_property
    def is_moved(self) -> pd.Series[bool]:
        """Whether the start of each job differs."""
        return self.jobs["later"].abs() > SAME

    @cached_property
    def has_other_hosts(self) -> pd.Series[bool]:
        """Whether each job ran on other hosts, where that is known."""
        known = (self.jobs["first_hosts"] != "") & (self.jobs["second_hosts"] != "")
        return known & (self.jobs["first_hosts"] != self.jobs["second_hosts"])

    @cached_property
    def has_other_size(self) -> pd.Series[bool]:
        """Whether each job held another number of hosts; if many did, these are two workloads."""
        return self.jobs["first_size"] != self.jobs["second_size"]

    @cached_property
    def differs(self) -> pd.Series[bool]:
        """Whether anything of each job differs."""
        return self.is_moved | self.has_other_hosts | (self.jobs["longer_run"].abs() > SAME)

    @cached_property
    def first_difference(self) -> float | None:
        """The earliest start, in either execution, of a job that differs; none if no job does."""
        starts = self.jobs.loc[self.differs, ["first_start", "second_start"]]
        return None if starts.empty else float(starts.to_numpy().min())

    def measured(self) -> dict[str, tuple[float, float]]:
        """Makespan of both, and means over the jobs that ran in both: times in seconds."""
        columns: list[tuple[float, ...]] = []
        for which, run in (("first", self.first), ("second", self.second)):
            submission, start, finish = (self.jobs[f"{which}_{name}"] for name in list(_KNOWN)[:3])
            turnaround = finish - submission
            slowdown = (turnaround / (finish - start).clip(lower=BOUND)).clip(lower=1.0)
            means = (float(each.mean()) for each in (start - submission, turnaround, slowdown))
            columns.append((run.end - float(run.jobs["submission_time"].min()), *means))
        names = ("makespan", "mean wait", "mean turnaround", "mean bounded slowdown")
        return {name: (one, two) for name, one, two in zip(names, *columns, strict=True)}

    def save(self, path: str | Path) -> None:
        """Write a page, or the table of jobs as CSV or Parquet; the name tells which by its ending."""
        path = Path(path)
        if path.suffix == ".html":
            write_executions_page(path, self)
            return
        if path.suffix not in (".csv", ".parquet"):
            raise InputError(f"{path}: give a name that ends in .html, .csv or .parquet")
        try:
            with writing(path) as file:
                if path.suffix == ".csv":
                    self.jobs.to_csv(file, float_format="%.6f")
                else:
                    self.jobs.to_parquet(file)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def compare_executions(first: Run, second: Run) -> Executions:
    """Compare two executions; jobs are known by their names, and by their workloads if both tell these."""
    with_workload = all("workload_name" in run.jobs for run in (first, second))
    before, after = (_executed(run, with_workload) for run in (first, second))
    names = before.index.intersection(after.index, sort=False)
    if names.empty:
        raise InputError(f"no job ran both in {first.label} and in {second.label}")
    one, two = before.loc[names], after.loc[names]
    differences = {
        "later": two["start"] - one["start"],
        "longer_wait": (two["start"] - two["submission"]) - (one["start"] - one["submission"]),
        "longer_run": (two["finish"] - two["start"]) - (one["finish"] - one["start"]),
    }
    rounded = pd.DataFrame(differences).round(6) + 0.0
    jobs = pd.concat([rounded, one.add_prefix("first_"), two.add_prefix("second_")], axis=1)
    order = jobs["later"].abs().sort_values(ascending=False, kind="stable").index
    return Executions(
        first,
        second,
        jobs.loc[order].rename_axis("job"),
        before.index.difference(names, sort=False).to_list(),
        after.index.difference(names, sort=False).to_list(),
    )


def names_of_jobs(run: Run, with_workload: bool) -> pd.Series[str]:
    """The names of the jobs of a run, by the labels of their rows."""
    return run.jobs["workload_name"] + "!" + run.jobs["job_id"] if with_workload else run.jobs["job_id"]


def _executed(run: Run, with_workload: bool) -> pd.DataFrame:
    """What is compared of the jobs that ran, by their names."""
    jobs = run.executed
    if "allocated_resources" not in jobs:
        jobs = jobs.assign(allocated_resources="")
    known = jobs[list(_KNOWN.values())].set_axis(list(_KNOWN), axis=1)
    known.index = pd.Index(names_of_jobs(run, with_workload).loc[jobs.index])
    if (again := known.index.duplicated()).any():
        raise InputError(f"{run.label}: job {known.index[again][0]} is there twice")
    return known


#: The most rectangles in a chart. Where there are more, it begins where the executions first differ.
MOST_RECTANGLES: Final = 10_000
#: The most dots in the figure of differences; the largest differences are kept.
MOST_DOTS: Final = 5_000

#: What a colour of a chart says about a job, compared with the other execution.
KINDS: Final = ("as in the other", "earlier", "later", "on other hosts", "only here")

#: Shades that go round in the order of starts, so that neighbouring jobs can be told apart.
SHADES: Final = (1.0, 0.7, 0.85, 0.55)


def all_figures(found: Executions) -> tuple[dict[str, pages.Figure | None], float]:
    """The figures by their names, and from when on the charts show jobs; a log does not tell of hosts."""
    charts = [
        None if run.intervals is None else rectangles(run).dropna().sort_values("begin", kind="stable")
        for run in found.runs
    ]
    window = _window(found, [chart for chart in charts if chart is not None])
    drawn: dict[str, pages.Figure | None] = {
        name: None if chart is None else _gantt(found, run, chart, window)
        for name, run, chart in zip(("first", "second"), found.runs, charts, strict=True)
    }
    return drawn | {"differences": _differences(found)}, window[0]


def _window(found: Executions, charts: list[pd.DataFrame]) -> tuple[float, float]:
    """The part of time that the charts show: all of it, or what can be drawn from the first difference on."""
    end = max(run.end for run in found.runs)
    if all(len(chart) <= MOST_RECTANGLES for chart in charts):
        return 0.0, end
    start, last = found.first_difference or 0.0, end
    for chart in charts:
        begins = chart.loc[chart["end"] > start, "begin"].to_numpy()
        if len(begins) > MOST_RECTANGLES:
            last = min(last, float(begins[MOST_RECTANGLES]))
    return start, max(last, start + 1.0)


def _gantt(found: Executions, run: Run, chart: pd.DataFrame, window: tuple[float, float]) -> pages.Figure:
    names = names_of_jobs(run, found.tells_workloads)
    later = found.jobs["later"] if run is found.second else -found.jobs["later"]
    layers: dict[str, list[pages.Bar]] = {kind: [] for kind in KINDS}
    shown = chart[(chart["end"] > window[0]) & (chart["begin"] < window[1])].iloc[:MOST_RECTANGLES]
    shades = (pd.factorize(shown["job"])[0] % len(SHADES)).tolist()
    for area, shade in zip(shown.itertuples(), shades, strict=True):
        name = names[area.job]
        kind, words = _compared(later.get(name, inf), bool(found.has_other_hosts.get(name, False)))
        hosts = f"hosts {area.low:.0f}-{area.high - 1:.0f}"
        text = f"{pages.time_text(area.begin)} to {pages.time_text(area.end)}, {hosts}; {words}"
        sides = (area.begin, area.end, area.low, area.high)
        layers[kind].append(pages.Bar(*sides, f"job {name}", text, SHADES[shade]))
    return pages.Figure(
        pages.Axis("time", "s", ends=window),
        pages.Axis("host", ends=(0, run.hosts)),
        [
            pages.Layer("bars", bars, place - 1 if place else None, kind)
            for place, (kind, bars) in enumerate(layers.items())
            if bars
        ],
    )


def _compared(later: float, elsewhere: bool) -> tuple[str, str]:
    """How a job differs from the same one in the other execution: in a word, and in words."""
    if later == inf:
        return "only here", "it did not run in the other"
    if later > SAME:
        return "later", f"{pages.time_text(later)} later than in the other"
    if later < -SAME:
        return "earlier", f"{pages.time_text(-later)} earlier than in the other"
    if elsewhere:
        return "on other hosts", "at the same time on other hosts"
    return "as in the other", "as in the other"


def _differences(found: Executions) -> pages.Figure:
    """How much later each job starts in the second execution, by its submission in the first."""
    points = []
    for job in found.jobs.iloc[:MOST_DOTS].itertuples():
        kind, _ = _compared(job.later, False)
        text = f"starts {pages.time_text(abs(job.later))} {kind} in {found.second.label}"
        if kind == "as in the other":
            text = "starts at the same time in both"
        points.append(pages.Point(job.first_submission, job.later, f"job {job.Index}", text))
    farthest = float(np.abs(found.jobs["later"]).max()) or 1.0
    latest = max(1.0, float(found.jobs["first_submission"].max()))
    rule = pages.Layer("rule", [pages.Point(0.0, 0.0)], None, "the same start")
    return pages.Figure(
        pages.Axis("submission", "s", ends=(0, latest)),
        pages.Axis(f"later in {found.second.label}", "s", "symlog", ends=(-farthest, farthest)),
        [rule, pages.Layer("dots", points, 0)],
    )


#: So many jobs are in the table, those whose starts differ most.
MOST_ROWS: Final = 50


def write_executions_page(path: str | Path, found: Executions) -> None:
    """Write the page: one file that needs no other and no network."""
    first, second = (run.label for run in found.runs)
    drawn, since = all_figures(found)
    title = f"{first} and {second}"
    header = f'<h1>{html.escape(title)}</h1>\n<div id="tiles">{_tiles(found)}</div>'
    charts = pages.section(
        "Gantt charts", _note(found, since), pages.figure(first, "first"), pages.figure(second, "second")
    )
    starts = pages.section(
        "Starts",
        f"How much later each job starts in {second}, by its submission in {first}.",
        pages.figure("", "differences"),
        layout="wide",
    )
    times = (f"start, {first}", f"start, {second}", "later", "longer wait", "longer run")
    heads = ("job", *times, f"hosts, {first}", f"hosts, {second}")
    rows = [
        [
            html.escape(str(job.Index)),
            *map(pages.time_text, (job.first_start, job.second_start)),
            *map(signed, (job.later, job.longer_wait, job.longer_run)),
            *map(html.escape, (job.first_hosts, job.second_hosts)),
        ]
        for job in found.jobs[found.differs].iloc[:MOST_ROWS].itertuples()
    ]
    jobs = pages.section(
        "Jobs",
        "Those whose starts differ most. The command batsched-py diff --output TABLE.csv writes all.",
        pages.table("", heads, rows),
        layout="wide",
    )
    pages.write_figures_page(path, title, header, "\n".join([charts, starts, jobs]), drawn)


def _tiles(found: Executions) -> str:
    alone = len(found.only_first) + len(found.only_second)
    shown = [("jobs in both", f"{len(found.jobs):,}", f"{alone:,} in one only")]
    for label, which in (("start differently", found.is_moved), ("on other hosts", found.has_other_hosts)):
        shown.append((label, f"{int(which.sum()):,}", f"{which.mean():.0%} of them"))
    for name, (one, two) in found.measured().items():
        texts = [f"{each:.2f}" if "slowdown" in name else pages.time_text(each) for each in (one, two)]
        shown.append((name, texts[1], f"{texts[0]} in {html.escape(found.first.label)}"))
    return pages.tiles(shown)


def _note(found: Executions, since: float) -> str:
    parts = ["Drag across a chart to zoom in both, double-click to see all of it again, hover for values."]
    if any(run.intervals is None for run in found.runs):
        parts.append("A log does not tell on which hosts its jobs ran.")
    if found.first_difference is None:
        parts.append("Both executions are the same.")
    else:
        parts.append(f"They first differ at {pages.time_text(found.first_difference)}.")
    if since:
        parts.append(f"Charts show about {MOST_RECTANGLES:,} jobs, from there on.")
    return " ".join(parts)


def signed(seconds: float) -> str:
    """A difference in the unit that suits it.

    >>> signed(-90.0), signed(5400), signed(0)
    ('-1.5 min', '+1.5 h', '0 s')
    """
    sign = "+" if seconds > 0 else "-" if seconds < 0 else ""
    return sign + pages.time_text(abs(seconds))
