"""When jobs are submitted: their number in each hour, day or week of the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.over_time import period_for
from batsched_py.analysis.plots.runs import Run


def submissions_per_period(runs: Sequence[Run], period: float) -> pd.DataFrame:
    """How many jobs are submitted in each period: a column a run, indexed by when the period begins."""
    periods = {run.label: (run.jobs["submission_time"].to_numpy() // period).astype(np.int64) for run in runs}
    count = 1 + max(int(numbers.max()) for numbers in periods.values())
    counts = {label: np.bincount(numbers, minlength=count) for label, numbers in periods.items()}
    return pd.DataFrame(counts, index=pd.Index(period * np.arange(count), name="time"))


@dataclass(frozen=True)
class Submissions(RunsKind):
    """How many jobs are submitted in each hour, day or week."""

    name = "submissions"
    shows = "When jobs are submitted: their number in each hour, day or week of the simulation."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run, before what was recorded in grey."""
        everything = [*runs, recorded] if recorded else list(runs)
        end = max(run.jobs["submission_time"].max() for run in everything)
        period, period_name = period_for(end)
        counts = submissions_per_period(everything, period)
        unit, unit_name = style.time_unit(end)
        edges = np.append(counts.index, counts.index[-1] + period) / unit
        axes = sheet.panels([run.label for run in runs], columns=2 if len(runs) > 3 else 1)
        for run, panel, colour in zip(runs, axes, sheet.colours(len(runs)), strict=True):
            if recorded:
                panel.stairs(counts[recorded.label], edges, fill=True, color=style.LIGHT_GREY)
            panel.stairs(counts[run.label], edges, color=colour, linewidth=1)
            panel.set_xlim(0, edges[-1])
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        sheet.supxlabel(f"time ({unit_name})")
        sheet.supylabel(f"submissions per {period_name}" + (" (grey: recorded)" if recorded else ""))
