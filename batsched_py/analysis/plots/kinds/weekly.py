"""Submissions by the hour of the week: do users still come by day and leave for the weekend?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.errors import InputError
from batsched_py.workload.swf.log import HOUR, SwfLog, local_time, start_of, wall_clock

HOURS: Final = 7 * 24
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def hours_of_week(times: NDArray[np.float64], log: SwfLog) -> NDArray[np.int64]:
    """The hour of the week, from Monday 0:00, in which each time of a simulation of ``log`` lies.

    It is the time on the wall clock where the machine stood, summer time included.
    """
    return (wall_clock(log, _first_submission(log) + times) // HOUR).astype(np.int64) % HOURS


def local_submissions(run: Run) -> NDArray[np.datetime64]:
    """The date and the time of day at which each job of a run was submitted."""
    log = _log_of(run)
    return local_time(log, _first_submission(log) + run.jobs["submission_time"].to_numpy())


def _first_submission(log: SwfLog) -> float:
    """The time in a log that is 0 in simulations of it."""
    if start_of(log) is None:
        raise InputError(f"{log.path}: the header does not say when the log began (UnixStartTime)")
    return float(log.submit[log.processors > 0].min())


def _log_of(run: Run) -> SwfLog:
    if run.log is None:
        raise InputError(
            f"{run.label}: the schedule does not tell the time of the day; give --recorded LOG.swf"
        )
    return run.log


def submissions_by_hour_of_week(runs: Sequence[Run]) -> pd.DataFrame:
    """How many jobs are submitted in each hour of the week, all weeks taken together, a column a run."""
    counts = {}
    for run in runs:
        hours = hours_of_week(run.jobs["submission_time"].to_numpy(), _log_of(run))
        counts[run.label] = np.bincount(hours, minlength=HOURS)
    return pd.DataFrame(counts, index=pd.RangeIndex(HOURS, name="hour"))


@dataclass(frozen=True)
class Weekly(RunsKind):
    """How many jobs are submitted in each hour of the week, all weeks taken together.

    A panel for each run, or log; weekends are shaded.
    """

    name = "weekly"
    shows = "Submissions by the hour of the week: do users still come by day and leave for the weekend?"
    use_of_log: ClassVar[str] = "It is shown, too, and tells the time of the day."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        everything = with_recorded(runs, recorded)
        colours = sheet.colours_with_recorded(runs, recorded)
        counts = submissions_by_hour_of_week(everything)
        axes = sheet.panels([run.label for run in everything], height=1.0)
        for run, panel, colour in zip(everything, axes, colours, strict=True):
            panel.axvspan(5 * 24, HOURS, color="#F2F2F2", zorder=0)
            panel.bar(np.arange(HOURS) + 0.5, counts[run.label], width=0.85, color=colour)
            panel.set_xlim(0, HOURS)
            panel.grid(False, axis="x")
            panel.tick_params(axis="x", which="minor", length=0)
            style.plain_numbers(panel.yaxis)
        axes[-1].set_xticks(np.arange(0, HOURS, 24), labels=[])
        axes[-1].set_xticks(np.arange(12, HOURS, 24), DAYS, minor=True)
        sheet.supylabel("submissions in the hour")
