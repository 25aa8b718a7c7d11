"""Submissions by the hour of the week: do users still come by day and leave for the weekend?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.runs import Run, recorded_run
from batsched_py.errors import InputError
from batsched_py.workload.swf import SwfLog
from batsched_py.workload.wall_clock import HOUR, start_of, wall_clock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOURS: Final = 7 * 24
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def hours_of_week(times: NDArray[np.float64], log: SwfLog) -> NDArray[np.int64]:
    """The hour of the week, from Monday 0:00, in which each time of a simulation of ``log`` lies.

    It is the time on the wall clock where the machine stood, summer time included.
    """
    if start_of(log) is None:
        raise InputError(f"{log.path}: the header does not say when the log began (UnixStartTime)")
    first = log.submit[log.processors > 0].min()
    return (wall_clock(log, first + times) // HOUR).astype(np.int64) % HOURS


def submissions_by_hour_of_week(runs: Sequence[Run], log: SwfLog) -> pd.DataFrame:
    """How many jobs are submitted in each hour of the week, all weeks taken together, a column a run."""
    counts = {
        run.label: np.bincount(hours_of_week(run.jobs["submission_time"].to_numpy(), log), minlength=HOURS)
        for run in runs
    }
    return pd.DataFrame(counts, index=pd.RangeIndex(HOURS, name="hour"))


def draw(figure: Figure, runs: Sequence[Run], log: SwfLog) -> None:
    """A panel for each run below that of the log; weekends are shaded."""
    everything = [recorded_run(log), *runs]
    counts = submissions_by_hour_of_week(everything, log)
    axes = style.panels(figure, [run.label for run in everything], height=1.0)
    for run, panel, colour in zip(everything, axes, [style.GREY, *style.colours(len(runs))], strict=True):
        panel.axvspan(5 * 24, HOURS, color="#F2F2F2", zorder=0)
        panel.bar(np.arange(HOURS) + 0.5, counts[run.label], width=0.85, color=colour)
        panel.set_xlim(0, HOURS)
        panel.grid(False, axis="x")
        panel.tick_params(axis="x", which="minor", length=0)
        style.plain_numbers(panel.yaxis)
    axes[-1].set_xticks(np.arange(0, HOURS, 24), labels=[])
    axes[-1].set_xticks(np.arange(12, HOURS, 24), DAYS, minor=True)
    figure.supylabel("submissions in the hour")
