"""A metric against the load, over parts of logs and seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import pandas as pd
from msgspec import Meta

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.kind import TableKind
from batsched_py.analysis.statistics import CONFIDENCE, Estimate
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet

#: What tells lines apart, as far as runs differ in it.
LINES: Final = ("platform", "scheduler", "users")

#: From this ratio of the largest mean to the smallest one on, the scale is logarithmic.
WIDE: Final = 20.0


def means_by_load(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The ``mean`` of a metric by ``log``, ``line`` and ``load``, and the ``half_width`` of its interval."""
    if "load" not in table:
        raise InputError("no run of the campaign has a load; a plan has some by `loads`")
    if metric not in table:
        raise InputError(f"no run has the metric {metric!r}")
    told = [axis for axis in LINES if axis in table and table[axis].nunique() > 1] or ["scheduler"]
    rows = []
    for place, runs in table.groupby(["log", *told, "load"], sort=False):
        estimate = Estimate.of(runs[metric].dropna().tolist())
        log, *names, load = map(str, place)
        rows.append((log, ", ".join(names), float(load), estimate.mean, estimate.half_width))
    means = pd.DataFrame(rows, columns=["log", "line", "load", "mean", "half_width"])
    return means.astype({"half_width": float})


@dataclass(frozen=True)
class Load(TableKind):
    """A metric against the load, over parts of logs and seeds.

    A panel for each log and a line for each scheduler, platform and kind of users, through the means over all
    parts and seeds; bars are 95 % confidence intervals.
    """

    name = "load"

    metric: Annotated[str, Meta(title="NAME", description="Which one.")] = "mean_bounded_slowdown"

    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw the table."""
        means = means_by_load(table, self.metric)
        logs, lines = (list(dict.fromkeys(means[column])) for column in ("log", "line"))
        panels = sheet.panels(logs, columns=2, height=2.4)
        loads = sorted(set(means["load"]))
        apart = 0.01 * (loads[-1] - loads[0])
        for log, panel in zip(logs, panels, strict=True):
            for number, (line, look) in enumerate(zip(lines, sheet.line_looks(len(lines)), strict=True)):
                points = means[(means["log"] == log) & (means["line"] == line)].sort_values("load")
                panel.errorbar(
                    points["load"] + (number - (len(lines) - 1) / 2) * apart,
                    points["mean"],
                    points["half_width"].fillna(0.0),
                    **look,
                    marker="o",
                    ms=3.5,
                    capsize=2,
                    elinewidth=0.8,
                    label=line if log == logs[0] else None,
                )
            panel.set_xticks(loads)
            style.plain_numbers(panel.xaxis)
        if means["mean"].min() > 0 and means["mean"].max() / means["mean"].min() > WIDE:
            panels[0].set_yscale("log")
        for panel in panels:
            style.plain_numbers(panel.yaxis)
        unit = next((f" ({each.unit})" for each in METRICS if each.name == self.metric and each.unit), "")
        sheet.supxlabel("load, relative to the recorded one")
        sheet.supylabel(f"{self.metric.replace('_', ' ')}{unit}, {CONFIDENCE:.0%} confidence")
        sheet.legend(loc="outside right upper")
