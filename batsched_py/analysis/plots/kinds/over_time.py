"""Figures over the time of a simulation: hosts, queue, power, links, storages, jobs, and decisions.

Throughput and mean utilization are taken away from the beginning and the end of the simulation. At its
beginning the machine is still empty, and at its end users only finish what they had left; so both are taken
in windows of time that begin later and end earlier than the simulation does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.analysis.conditions import Shared
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

DAY: Final = 86400.0

#: Periods that are taken together; the first one of which a figure has no more than so many.
PERIODS: Final = ((3600.0, "hour"), (6 * 3600.0, "6 hours"), (86400.0, "day"), (7 * 86400.0, "week"))
#: Into at most so many periods of equal length the time is divided.
MOST_PERIODS: Final = 150

#: At how many times the curves of cumulative jobs are taken.
POINTS: Final = 1000

#: Where windows begin and how long they are, in days, where the runs are long enough.
USUAL_SKIP: Final = 14.0
USUAL_WINDOWS: Final = (120.0, 180.0, 240.0)

_MILLI: Final = 1e3
_MEBI: Final = 1 / 2**20

#: Longer queues are taken together, so many classes to each doubling.
_CLASSES: Final = 4


def period_for(end: float) -> tuple[float, str]:
    """The period that suits a time from 0 to ``end``: its seconds and its name.

    >>> period_for(60 * 86400)
    (86400.0, 'day')
    """
    for period, name in PERIODS:
        if end <= MOST_PERIODS * period:
            return period, name
    return PERIODS[-1]


@dataclass(frozen=True)
class MeansKind(RunsKind):
    """A figure of a quantity over time."""

    label: ClassVar[str]
    """What the quantity is called."""

    @abstractmethod
    def means(self, run: Run, edges: Floats) -> Floats:
        """The mean of the quantity between each two successive ``edges`` of time."""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run with the means of its periods, before what was recorded in grey."""
        recorded = recorded if self.use_of_log else None
        end = max(run.end for run in with_recorded(runs, recorded))
        period, name = period_for(end)
        edges = period * np.arange(1.0 + ceil(end / period))
        label = f"{self.label}, mean of each {name}"
        _draw_periods(sheet, runs, recorded, edges, end, lambda run: self.means(run, edges), label)


def _draw_periods(
    sheet: Sheet,
    runs: Sequence[Run],
    recorded: Run | None,
    edges: Floats,
    end: float,
    heights: Callable[[Run], Floats],
    label: str,
) -> None:
    """A panel for each run with a step for each period, before what was recorded in grey."""
    unit, unit_name = style.time_unit(end)
    axes = sheet.panels([run.label for run in runs], columns=2 if len(runs) > 3 else 1)
    for run, panel, colour in zip(runs, axes, sheet.colours(len(runs)), strict=True):
        if recorded:
            panel.stairs(heights(recorded), edges / unit, fill=True, color=style.LIGHT_GREY)
        panel.stairs(heights(run), edges / unit, color=colour, linewidth=1)
        panel.set_xlim(0, edges[-1] / unit)
        style.plain_numbers(panel.yaxis)
    axes[0].set_ylim(bottom=0)
    sheet.supxlabel(f"time ({unit_name})")
    sheet.supylabel(f"{label} (grey: recorded)" if recorded else label)


@dataclass(frozen=True)
class FlowsKind(RunsKind):
    """A figure of the most loaded links or storages."""

    use_of_log: ClassVar[str] = ""
    of: ClassVar[Shared]
    """What is shown."""
    label: ClassVar[str]
    """What of it."""

    most: Annotated[int, Meta(ge=1, title="N", description="How many have a line.")] = 5

    @abstractmethod
    def shown(self, flow: Floats, capacity: float) -> Floats:
        """What a line shows, given the bytes in a second and how many there may be."""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run with its most loaded ones; one that is in several has the same look in all."""
        tables = {run.label: self._lines(run) for run in runs}
        names = list(dict.fromkeys(name for table in tables.values() for name in table))
        looks = dict(zip(names, sheet.line_looks(len(names)), strict=True))
        unit, unit_name = style.time_unit(max(float(table.index[-1]) for table in tables.values()))
        axes = sheet.panels(list(tables), height=2.0)
        for panel, table in zip(axes, tables.values(), strict=True):
            edges = np.concatenate([[0.0], table.index])
            for name in table:
                panel.stairs(table[name], edges / unit, baseline=None, label=name, **looks[name])
            panel.set_xlim(left=0)
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        axes[-1].set_xlabel(f"time ({unit_name})")
        sheet.supylabel(self.label)
        style.shared_legend(sheet, axes)

    def _lines(self, run: Run) -> pd.DataFrame:
        """A column for each line, a row for each period with its end."""
        flows = run.carried
        if flows is None:
            raise InputError(f"{run.label}: nothing tells what its links carried; simulate it with --links")
        most = flows.most_loaded(self.of, self.most)
        if most.empty:
            raise InputError(f"{run.label}: no {self.of} carried anything, so there is nothing to show")
        edges = np.linspace(0.0, run.end, MOST_PERIODS + 1)
        return pd.DataFrame(
            {
                name: self.shown(flows.mean_flow(self.of, name, edges), capacity)
                for name, capacity in zip(most["name"], most["capacity"], strict=True)
            },
            index=edges[1:],
        )


@dataclass(frozen=True)
class Utilization(MeansKind):
    """The share of the hosts that run jobs, on average in each hour, day or week."""

    name = "utilization"
    shows = "Which share of the hosts is busy, over time."
    label = "busy hosts (%)"

    def means(self, run: Run, edges: Floats) -> Floats:
        """The busy hosts, in percent."""
        return 100 * run.busy_hosts(edges) / run.hosts


@dataclass(frozen=True)
class Queue(MeansKind):
    """How many jobs are submitted and not started, on average in each hour, day or week.

    Rejected jobs are left out: nothing tells how long they waited.
    """

    name = "queue"
    shows = "How many jobs wait, over time."
    label = "waiting jobs"

    def means(self, run: Run, edges: Floats) -> Floats:
        """How many jobs wait."""
        return run.waiting_jobs(edges)


@dataclass(frozen=True)
class Power(MeansKind):
    """The power that all hosts draw, on average in each hour, day or week.

    It is known of simulations with --energy, from the PREFIX_consumed_energy.csv beside their jobs.
    """

    name = "power"
    shows = "What the hosts draw, over time."
    label = "power (kW)"
    use_of_log: ClassVar[str] = ""

    def means(self, run: Run, edges: Floats) -> Floats:
        """The power in kilowatts."""
        return run.mean_power(edges) / 1000


@dataclass(frozen=True)
class Links(FlowsKind):
    """The share of their bandwidth that the most loaded links carry.

    It is known of simulations with --links, from the files PREFIX_uses.csv and PREFIX_rates.csv. Each step is
    the mean of a 150th of the time. Many tasks can use a fat pipe at once, more than its bandwidth together.
    """

    name = "links"
    shows = "How busy the most loaded links are, over time."
    of = "link"
    label = "load of the link (%)"

    def shown(self, flow: Floats, capacity: float) -> Floats:
        """The load in percent."""
        return 100 * flow / capacity


@dataclass(frozen=True)
class Storages(FlowsKind):
    """What storage hosts send and receive in a second, those first that moved most.

    It is known of simulations with --links, from the files PREFIX_uses.csv and PREFIX_rates.csv. Each step is
    the mean of a 150th of the time.
    """

    name = "storages"
    shows = "How many bytes storages read and write, over time."
    of = "storage"
    label = "read and written (MB/s)"

    def shown(self, flow: Floats, capacity: float) -> Floats:
        """Megabytes in a second."""
        return flow / 1e6


def submissions_per_period(runs: Sequence[Run], period: float) -> pd.DataFrame:
    """How many jobs are submitted in each period: a column a run, indexed by when the period begins."""
    periods = {run.label: (run.jobs["submission_time"].to_numpy() // period).astype(np.int64) for run in runs}
    count = 1 + max(int(numbers.max()) for numbers in periods.values())
    counts = {label: np.bincount(numbers, minlength=count) for label, numbers in periods.items()}
    return pd.DataFrame(counts, index=pd.Index(period * np.arange(count), name="time"))


def busiest_user(run: Run) -> str:
    """The user who submits most jobs; of several, the one who came first."""
    return str(run.replayed.groupby("user", sort=False).size().idxmax())


def share_of_user(run: Run, user: str, edges: Floats) -> tuple[Floats, float]:
    """How many jobs a user submits between each two successive ``edges``, and the share of all jobs."""
    own = run.replayed["user"].astype(str) == user
    if not own.any():
        raise InputError(f"{run.label}: nobody called {user!r} submits a job")
    counts = np.histogram(run.jobs.loc[own, "submission_time"], edges)[0].astype(float)
    return counts, float(own.mean())


@dataclass(frozen=True)
class Submissions(RunsKind):
    """How many jobs are submitted in each hour, day or week.

    With a user, that user's jobs are filled, and their share of all is beside the name of the run: flurries
    and users who dominate a log are seen so.
    """

    name = "submissions"
    shows = "When jobs are submitted: their number in each hour, day or week of the simulation."

    user: Annotated[
        str, Meta(title="USER", description="Whose jobs are filled; `busiest` is who submits most.")
    ] = ""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run, before what was recorded in grey."""
        everything = with_recorded(runs, recorded)
        end = max(run.jobs["submission_time"].max() for run in everything)
        period, name = period_for(end)
        counts = submissions_per_period(everything, period)
        edges = period * np.arange(1.0 + len(counts))
        label = f"submissions per {name}"
        _draw_periods(sheet, runs, recorded, edges, end, lambda run: counts[run.label].to_numpy(), label)
        if self.user:
            self._fill(sheet, runs, edges, style.time_unit(end)[0])

    def _fill(self, sheet: Sheet, runs: Sequence[Run], edges: Floats, unit: float) -> None:
        """The jobs of the user."""
        for run, panel, colour in zip(runs, sheet.axes, sheet.colours(len(runs)), strict=True):
            user = busiest_user(run) if self.user == "busiest" else self.user
            heights, share = share_of_user(run, user, edges)
            panel.stairs(heights, edges / unit, fill=True, color=colour, alpha=0.5)
            panel.set_title(f"{run.label} (filled: user {user}, {share:.0%} of the jobs)")


def cumulative_jobs(runs: Sequence[Run], column: str, times: Floats) -> pd.DataFrame:
    """The number of jobs whose ``column`` is no later than each of ``times``, a column a run.

    Rejected jobs are submitted like all others, but never finish.
    """
    counts = {
        run.label: np.searchsorted(np.sort(run.jobs[column].dropna().to_numpy()), times, side="right")
        for run in runs
    }
    return pd.DataFrame(counts, index=pd.Index(times, name="time"))


@dataclass(frozen=True)
class Cumulative(RunsKind):
    """How many jobs have been submitted, and how many have finished, by any time."""

    name = "cumulative"
    shows = "How many jobs have been submitted, and how many have finished, by any time."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Submissions above, terminations below; the recorded ones in grey."""
        everything = with_recorded(runs, recorded)
        looks = [line | {"linewidth": 1.1} for line in sheet.line_looks(len(runs))]
        looks = [style.RECORDED, *looks] if recorded else looks
        end = max(run.end for run in everything)
        unit, name = style.time_unit(end)
        times = np.linspace(0, end, POINTS)
        sheet.resize(4.6)
        axes = sheet.subplots(2, 1, sharex=True, sharey=True)
        labels = {"submission_time": "jobs submitted", "finish_time": "jobs finished"}
        for panel, (column, label) in zip(axes, labels.items(), strict=True):
            counts = cumulative_jobs(everything, column, times)
            for run, look in zip(everything, looks, strict=True):
                panel.plot(times / unit, counts[run.label], **look, label=run.label)
            panel.set_ylabel(label)
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        axes[0].legend(loc="lower right")
        axes[-1].set_xlabel(f"time ({name})")
        axes[-1].set_xlim(0, end / unit)


def windows_for(end: float) -> tuple[float, tuple[float, ...]]:
    """Where windows begin and how long they are, in days, for runs that last so many seconds.

    They are the usual ones where there is room for some of them, else the middle four fifths of the time.

    >>> windows_for(200 * DAY), windows_for(60 * DAY)
    ((14.0, (120.0, 180.0)), (6.0, (48.0,)))
    """
    days = end / DAY
    usual = tuple(window for window in USUAL_WINDOWS if USUAL_SKIP + window <= days)
    return (USUAL_SKIP, usual) if usual else (float(f"{days / 10:.3g}"), (float(f"{days * 0.8:.3g}"),))


def throughput_and_utilization(runs: Sequence[Run], skipped: float, windows: Sequence[float]) -> pd.DataFrame:
    """For each run and window (in days, beginning after ``skipped`` days): both figures.

    ``throughput`` is the number of executed jobs that finish in the window, per day. ``utilization`` is the
    share of the machine's hosts and time in the window in which jobs run.
    """
    windows = sorted(set(windows))
    rows = []
    for run in runs:
        if run.end < (skipped + windows[-1]) * DAY:
            raise InputError(
                f"{run.label} ends after {run.end / DAY:.1f} days, before a window of {windows[-1]:g} days "
                f"from day {skipped:g} does; choose --skip and --window"
            )
        finishes = np.sort(run.executed["finish_time"].to_numpy())
        for window in windows:
            borders = np.array([skipped, skipped + window]) * DAY
            finished = np.diff(np.searchsorted(finishes, borders)).item()
            utilization = run.busy_hosts(borders).item() / run.hosts
            rows.append((run.label, window, finished / window, utilization))
    return pd.DataFrame(rows, columns=["run", "window", "throughput", "utilization"])


@dataclass(frozen=True)
class Throughput(RunsKind):
    """Jobs finished per day and the share of busy hosts, in windows of time within the simulation.

    The windows leave out the beginning, when the machine is still empty, and should leave out the end. Where
    none are given, they are such that the shortest run covers them.
    """

    name = "throughput"
    shows = "Throughput and mean utilization, away from the beginning and the end of the simulation."

    skip: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(title="DAYS", description="How long after the beginning the windows begin."),
    ] = None
    window: Annotated[
        tuple[Annotated[float, Meta(gt=0)], ...], Meta(title="DAYS", description="How long a window is.")
    ] = ()

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Bars for each run, the longer the window the darker."""
        everything = with_recorded(runs, recorded)
        usual_skip, usual_windows = windows_for(min(run.end for run in everything))
        skip = usual_skip if self.skip is None else self.skip
        figures = throughput_and_utilization(everything, skip, self.window or usual_windows)
        labels, windows = figures["run"].unique().tolist(), figures["window"].unique().tolist()
        width = 0.8 / len(windows)
        sheet.resize(3.0)
        axes = sheet.subplots(1, 2)
        for panel, column, scale, title in (
            (axes[0], "throughput", 1, "throughput (jobs finished per day)"),
            (axes[1], "utilization", 100, "utilization (% of the hosts)"),
        ):
            shades = style.shades(sheet.highlight, len(windows))
            for number, (window, shade) in enumerate(zip(windows, shades, strict=True)):
                place = np.arange(len(labels)) + (number - (len(windows) - 1) / 2) * width
                heights = scale * figures.loc[figures["window"] == window, column]
                panel.bar(place, heights, width=0.92 * width, color=shade, label=f"{window:g} days")
            panel.set_title(title)
            style.name_bars(panel, labels)
        axes[1].set_ylim(0, 100)
        handles, title = axes[0].get_legend_handles_labels(), f"from day {skip:g}"
        sheet.legend(*handles, loc="outside lower center", ncols=len(windows), title=title)


def decisions_of(run: Run) -> pd.DataFrame:
    """What each decision of a run took."""
    if run.decisions is None or run.decisions.empty:
        raise InputError(f"{run.label}: nothing tells what decisions took; simulate it with --decisions")
    return run.decisions


def by_queue_length(decisions: pd.DataFrame) -> pd.Series:
    """The mean seconds of a decision by how many jobs waited; long queues are taken together.

    The index has the mean length of the queues of each class.
    """
    queue = decisions["queue"].to_numpy()
    classes = np.where(queue < 2**_CLASSES, queue, np.rint(_CLASSES * np.log2(np.maximum(queue, 1))) + 1e6)
    means = decisions.groupby(classes)[["queue", "decision_seconds"]].mean()
    return means.set_index("queue")["decision_seconds"]


def means_over_time(decisions: pd.DataFrame, column: str, period: float) -> pd.Series:
    """The mean of a column in each period of simulated time in which something was decided."""
    return decisions.groupby(decisions["time"] // period * period)[column].mean()


@dataclass(frozen=True)
class Decisions(RunsKind):
    """The processor time and the memory of decisions, of runs that were simulated with --decisions.

    Above is the mean processor time each time that the scheduler is asked, for its decision and for all
    else, and that of a decision by how many jobs wait. Below are the time of a decision and the memory of the
    process over simulated time, as means of each hour, day or week.
    """

    name = "decisions"
    shows = (
        "What decisions take: processor time and memory over simulated time, and against "
        "the length of the queue."
    )
    use_of_log: ClassVar[str] = ""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Four panels, with a bar or a line for each run."""
        tables = [decisions_of(run) for run in runs]
        looks = sheet.line_looks(len(runs))
        sheet.resize(5.0)
        (bars, lengths), (seconds, memory) = sheet.subplots(2, 2)
        _draw_bars(bars, runs, sheet.highlight)
        for run, decisions, look in zip(runs, tables, looks, strict=True):
            curve = by_queue_length(decisions) * _MILLI
            lengths.plot(curve.index, curve, **look, label=run.label)
        lengths.set_xscale("symlog", linthresh=1)
        lengths.set_title("a decision by the length of the queue (ms)")
        lengths.set_xlabel("jobs that wait")
        end = max(float(decisions["time"].max()) for decisions in tables)
        period, period_name = period_for(end)
        unit, unit_name = style.time_unit(end)
        for panel, column, scale, title in (
            (seconds, "decision_seconds", _MILLI, "a decision (ms)"),
            (memory, "memory_bytes", _MEBI, "memory of the process (MB)"),
        ):
            for decisions, look in zip(tables, looks, strict=True):
                means = means_over_time(decisions, column, period) * scale
                panel.plot((means.index + period / 2) / unit, means, **look)
            panel.set_title(title)
            panel.set_xlim(0, period * max(1, ceil(end / period)) / unit)
            panel.set_xlabel(f"time ({unit_name}), means of each {period_name}")
        for panel in (bars, lengths, seconds, memory):
            panel.update_datalim([(panel.dataLim.x0, 0)])
            panel.autoscale_view(scalex=False)
            panel.set_ylim(bottom=0)
            style.plain_numbers(panel.yaxis)
        style.plain_numbers(lengths.xaxis)
        style.shared_legend(sheet, [lengths])


def _draw_bars(panel: Axes, runs: Sequence[Run], colour: str) -> None:
    """The mean time of a decision, and above it that of all else between two decisions."""
    means = [decisions_of(run)[["decision_seconds", "other_seconds"]].mean() * _MILLI for run in runs]
    decisions, others = ([each[column] for each in means] for column in ("decision_seconds", "other_seconds"))
    places = range(len(runs))
    panel.bar(places, decisions, width=0.6, color=colour)
    panel.bar(places, others, width=0.6, bottom=decisions, color=style.LIGHT_GREY)
    style.name_bars(panel, [run.label for run in runs])
    panel.set_title("each time it is asked (ms; grey: all else)")
