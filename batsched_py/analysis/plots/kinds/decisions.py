"""What decisions take: processor time and memory over simulated time, and against the length of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.over_time import period_for
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MILLI: Final = 1e3
_MEBI: Final = 1 / 2**20

#: Longer queues are taken together, so many classes to each doubling.
_CLASSES: Final = 4


def measured(run: Run) -> pd.DataFrame:
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


def over_time(decisions: pd.DataFrame, column: str, period: float) -> pd.Series:
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
        tables = [measured(run) for run in runs]
        looks = sheet.line_looks(len(runs))
        sheet.resize(5.0)
        (bars, lengths), (seconds, memory) = sheet.subplots(2, 2)
        _draw_bars(bars, runs, sheet.highlight)
        for run, decisions, look in zip(runs, tables, looks, strict=True):
            curve = by_queue_length(decisions) * _MILLI
            lengths.plot(curve.index, curve, **look, label=run.label)
        lengths.set_xscale("symlog", linthresh=1)
        lengths.set_title("a decision by jobs that wait (ms)")
        end = max(float(decisions["time"].max()) for decisions in tables)
        period, period_name = period_for(end)
        unit, unit_name = style.time_unit(end)
        for panel, column, scale, title in (
            (seconds, "decision_seconds", _MILLI, "a decision (ms)"),
            (memory, "memory_bytes", _MEBI, "memory of the process (MB)"),
        ):
            for decisions, look in zip(tables, looks, strict=True):
                means = over_time(decisions, column, period) * scale
                panel.plot((means.index + period / 2) / unit, means, **look)
            panel.set_title(title)
            panel.set_xlim(0, period * max(1, ceil(end / period)) / unit)
            panel.set_xlabel(f"time ({unit_name}), means of each {period_name}")
        for panel in (bars, lengths, seconds, memory):
            panel.set_ylim(bottom=0)
            style.plain_numbers(panel.yaxis)
        style.plain_numbers(lengths.xaxis)
        style.shared_legend(sheet, [lengths])


def _draw_bars(panel: Axes, runs: Sequence[Run], colour: str) -> None:
    """The mean time of a decision, and above it that of all else between two decisions."""
    means = [measured(run)[["decision_seconds", "other_seconds"]].mean() * _MILLI for run in runs]
    decisions, others = ([each[column] for each in means] for column in ("decision_seconds", "other_seconds"))
    places = range(len(runs))
    panel.bar(places, decisions, width=0.6, color=colour)
    panel.bar(places, others, width=0.6, bottom=decisions, color=style.LIGHT_GREY)
    style.name_bars(panel, [run.label for run in runs])
    panel.set_title("each time it is asked (ms; grey: all else)")
