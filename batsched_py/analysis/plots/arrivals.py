"""When each user submits for the first time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def user_arrivals(run: Run) -> pd.Series:
    """The first submission of each user, in the order of time."""
    return run.replayed.groupby("user")["submission_time"].min().sort_values(kind="stable")


def draw(figure: Figure, runs: Sequence[Run], recorded: Run | None = None) -> None:
    """A row of ticks for each run; lines where the recorded submissions begin and end."""
    everything = [recorded, *runs] if recorded else list(runs)
    end = max(run.jobs["submission_time"].max() for run in everything)
    unit, name = style.time_unit(end)
    figure.set_size_inches(style.WIDTH, 0.7 + 0.45 * len(everything))
    panel = figure.subplots()
    for row, run in enumerate(everything):
        panel.eventplot(
            user_arrivals(run) / unit, lineoffsets=row, linelengths=0.7, linewidths=0.6, color=style.BLUE
        )
    for border in runs[0].replayed["recorded"].agg(["min", "max"]):
        panel.axvline(border / unit, color=style.VERMILLION, linewidth=1.5)
    panel.set_yticks(range(len(everything)), [run.label for run in everything])
    panel.set_ylim(len(everything) - 0.5, -0.5)
    panel.grid(False)
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    panel.set_xlabel(f"first submission of each user ({name}); red: first and last submission of the log")
