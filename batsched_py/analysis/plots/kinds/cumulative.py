"""How many jobs have been submitted, and how many have finished, by any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded

#: At how many times the curves are taken.
POINTS: Final = 1000


def cumulative_jobs(runs: Sequence[Run], column: str, times: NDArray[np.float64]) -> pd.DataFrame:
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
        looks = [style.RECORDED] * bool(recorded) + [
            line | {"linewidth": 1.1} for line in sheet.line_looks(len(runs))
        ]
        end = max(run.end for run in everything)
        unit, name = style.time_unit(end)
        times = np.linspace(0, end, POINTS)
        sheet.resize(4.6)
        axes = sheet.subplots(2, 1, sharex=True, sharey=True)
        for panel, column, label in zip(
            axes, ("submission_time", "finish_time"), ("jobs submitted", "jobs finished"), strict=True
        ):
            counts = cumulative_jobs(everything, column, times)
            for run, look in zip(everything, looks, strict=True):
                panel.plot(times / unit, counts[run.label], **look, label=run.label)
            panel.set_ylabel(label)
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        axes[0].legend(loc="lower right")
        axes[-1].set_xlabel(f"time ({name})")
        axes[-1].set_xlim(0, end / unit)
