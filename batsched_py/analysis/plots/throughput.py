"""Throughput and mean utilization, away from the beginning and the end of the simulation.

At its beginning the machine is still empty, and at its end users only finish what they had left; so both are
taken in windows of time that begin later and end earlier than the simulation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DAY: Final = 86400.0


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


def draw(figure: Figure, figures: pd.DataFrame) -> None:
    """Bars for each run, the longer the window the darker."""
    runs, windows = figures["run"].unique().tolist(), figures["window"].unique().tolist()
    width = 0.8 / len(windows)
    figure.set_size_inches(style.WIDTH, 3.0)
    axes = figure.subplots(1, 2)
    for panel, column, scale, title in (
        (axes[0], "throughput", 1, "throughput (jobs finished per day)"),
        (axes[1], "utilization", 100, "utilization (% of the hosts)"),
    ):
        for number, (window, shade) in enumerate(
            zip(windows, style.shades(style.BLUE, len(windows)), strict=True)
        ):
            place = np.arange(len(runs)) + (number - (len(windows) - 1) / 2) * width
            heights = scale * figures.loc[figures["window"] == window, column]
            panel.bar(place, heights, width=0.92 * width, color=shade, label=f"{window:g} days")
        panel.set_title(title)
        style.name_bars(panel, runs)
    axes[1].set_ylim(0, 100)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(windows))
