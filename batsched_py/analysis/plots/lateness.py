"""How late each user is, on average and with each further job, against how many jobs the user has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pandas as pd

from batsched_py.analysis.lateness import additional_lateness, mean_lateness
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR


def user_lateness(run: Run) -> pd.DataFrame:
    """For each user the number of ``jobs``, and ``mean_lateness`` and ``additional_lateness`` in seconds.

    The additional lateness of a user with a single job is NaN.
    """
    rows = {
        user: (len(jobs), mean_lateness(jobs), additional_lateness(jobs))
        for user, jobs in run.replayed.groupby("user")
    }
    columns = ["jobs", "mean_lateness", "additional_lateness"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("user")


def draw(figure: Figure, runs: Sequence[Run]) -> None:
    """Mean lateness of each user."""
    _draw(figure, runs, "mean_lateness", DAY, "d")
    figure.supylabel("mean lateness of the user (days)")


def draw_additional(figure: Figure, runs: Sequence[Run]) -> None:
    """Additional lateness of each user who has more than one job."""
    _draw(figure, runs, "additional_lateness", HOUR, "h")
    figure.supylabel("additional lateness of the user (hours)")


def _draw(figure: Figure, runs: Sequence[Run], column: str, unit: float, unit_name: str) -> None:
    """A panel for each run, with a dot for each user, the median user, and a band that holds 80 % of them.

    The scale is logarithmic on both sides of 0, and linear up to a hundredth of ``unit``.
    """
    axes = style.panels(figure, [run.label for run in runs], columns=3, height=2.1)
    for run, panel, colour in zip(runs, axes, style.colours(len(runs)), strict=True):
        users = user_lateness(run).dropna(subset=column)
        late = users[column] / unit
        low, median, high = late.quantile([0.1, 0.5, 0.9])
        panel.axhspan(low, high, color=colour, alpha=0.13, linewidth=0)
        panel.axhline(median, color=colour, linewidth=1)
        panel.axhline(0, color=style.BLACK, linewidth=0.6)
        panel.scatter(users["jobs"], late, s=9, color=colour, alpha=0.6, linewidths=0)
        panel.set_title(f"{run.label}: median {style.number(median, '+.3g')} {unit_name}")
        panel.set_xscale("log")
        panel.set_yscale("symlog", linthresh=0.01, linscale=0.5)
        style.plain_numbers(panel.xaxis, panel.yaxis)
    figure.supxlabel("jobs of the user")
