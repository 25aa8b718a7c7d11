"""Figures of lateness: how much later than recorded users submit, against the number of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import TELLS_LATENESS, RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.user_metrics import additional_lateness

HOUR: Final = 3600.0
DAY: Final = 86400.0


def user_lateness(run: Run) -> pd.DataFrame:
    """For each user the number of ``jobs``, and ``mean_lateness`` and ``additional_lateness`` in seconds.

    The additional lateness of a user with a single job is NaN.
    """
    users = run.replayed.groupby("user")["lateness"].agg(jobs="size", mean_lateness="mean")
    further = (users["jobs"] - 1).where(users["jobs"] > 1)
    return users.assign(additional_lateness=2 * users["mean_lateness"] / further)


@dataclass(frozen=True)
class Lateness(RunsKind):
    """How much later than recorded each user submits on average, against the number of the user's jobs.

    A line shows the median user, a band the users from the 10th to the 90th percentile.
    """

    name = "lateness"
    shows = "How late each user is on average, against how many jobs the user has."
    use_of_log: ClassVar[str] = TELLS_LATENESS

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        draw_users(sheet, runs, "mean_lateness", DAY, "d")
        sheet.supylabel("mean lateness of the user (days)")


def draw_users(sheet: Sheet, runs: Sequence[Run], column: str, unit: float, unit_name: str) -> None:
    """A panel for each run, with a dot for each user, the median user, and a band that holds 80 % of them.

    The scale is logarithmic on both sides of 0, and linear up to a hundredth of ``unit``.
    """
    axes = sheet.panels([run.label for run in runs], columns=3, height=2.1)
    for run, panel, colour in zip(runs, axes, sheet.colours(len(runs)), strict=True):
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
    sheet.supxlabel("jobs of the user")


@dataclass(frozen=True)
class AdditionalLateness(RunsKind):
    """By how much each job adds to its user's lateness, against the number of the user's jobs.

    Users with a single job are left out. A line shows the median user, a band the users from the 10th to the
    90th percentile.
    """

    name = "additional-lateness"
    shows = "By how much each further job adds to the lateness of its user."
    use_of_log: ClassVar[str] = TELLS_LATENESS

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        draw_users(sheet, runs, "additional_lateness", HOUR, "h")
        sheet.supylabel("additional lateness of the user (hours)")


def additional_lateness_by_size(runs: Sequence[Run]) -> pd.DataFrame:
    """The label of each ``run``, its number of ``jobs``, and its ``additional_lateness`` in seconds."""
    rows = [(run.label, len(run.jobs), additional_lateness(run.replayed)) for run in runs]
    table = pd.DataFrame(rows, columns=["run", "jobs", "additional_lateness"])
    return table.sort_values("jobs", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class Scalability(RunsKind):
    """Whether additional lateness depends on how much of the log is replayed.

    Give a run for each number of jobs; those with the same LABEL become one line.
    """

    name = "scalability"
    shows = "Whether additional lateness depends on how much of a log is replayed."
    use_of_log: ClassVar[str] = TELLS_LATENESS
    labels_are_distinct: ClassVar[bool] = False

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A line for each label, through the runs that have it: simulations of the first jobs of a log."""
        table = additional_lateness_by_size(runs)
        labels = list(dict.fromkeys(run.label for run in runs))
        sheet.resize(3.0)
        panel = sheet.subplots()
        panel.axhline(0, color=style.BLACK, linewidth=0.6)
        for label, look in zip(labels, sheet.line_looks(len(labels)), strict=True):
            line = table[table["run"] == label]
            panel.plot(line["jobs"], line["additional_lateness"], **look, marker="o", ms=3.5, label=label)
        panel.set_xlim(left=0)
        style.plain_numbers(panel.xaxis, panel.yaxis)
        panel.set_xlabel("jobs replayed, the first ones of the log")
        panel.set_ylabel("additional lateness (seconds)")
        sheet.legend(loc="outside right upper")
