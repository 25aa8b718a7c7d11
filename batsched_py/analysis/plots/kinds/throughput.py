"""Throughput and mean utilization, away from the beginning and the end of the simulation.

At its beginning the machine is still empty, and at its end users only finish what they had left; so both are
taken in windows of time that begin later and end earlier than the simulation does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from msgspec import Meta

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.errors import InputError

DAY: Final = 86400.0

#: Where windows begin and how long they are, in days, where the runs are long enough.
USUAL_SKIP: Final = 14.0
USUAL_WINDOWS: Final = (120.0, 180.0, 240.0)


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
            for number, (window, shade) in enumerate(
                zip(windows, style.shades(sheet.highlight, len(windows)), strict=True)
            ):
                place = np.arange(len(labels)) + (number - (len(windows) - 1) / 2) * width
                heights = scale * figures.loc[figures["window"] == window, column]
                panel.bar(place, heights, width=0.92 * width, color=shade, label=f"{window:g} days")
            panel.set_title(title)
            style.name_bars(panel, labels)
        axes[1].set_ylim(0, 100)
        sheet.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=len(windows),
            title=f"from day {skip:g}",
        )
