"""When each user submits for the first time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import SHOWN_TOO, TELLS_USERS, RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded


def user_arrivals(run: Run) -> pd.Series:
    """The first submission of each user, in the order of time."""
    return run.replayed.groupby("user")["submission_time"].min().sort_values(kind="stable")


@dataclass(frozen=True)
class Arrivals(RunsKind):
    """When each user submits for the first time: a row of ticks for each run, or log.

    Lines show when the recorded submissions begin and end.
    """

    name = "arrivals"
    shows = "When each user submits for the first time."
    use_of_log: ClassVar[str] = f"{SHOWN_TOO} {TELLS_USERS}"

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        everything = with_recorded(runs, recorded)
        end = max(run.jobs["submission_time"].max() for run in everything)
        unit, name = style.time_unit(end)
        sheet.resize(0.7 + 0.45 * len(everything))
        panel = sheet.subplots()
        for row, run in enumerate(everything):
            times = user_arrivals(run) / unit
            panel.eventplot(times, lineoffsets=row, linelengths=0.7, linewidths=0.6, color=sheet.highlight)
        for border in runs[0].replayed["recorded"].agg(["min", "max"]):
            panel.axvline(border / unit, color=sheet.colours(4)[3], linewidth=1.5)
        panel.set_yticks(range(len(everything)), [run.label for run in everything])
        panel.set_ylim(len(everything) - 0.5, -0.5)
        panel.grid(False)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.set_xlabel(f"first submission of each user ({name}); lines: first and last one in the log")
