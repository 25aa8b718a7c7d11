"""A metric of a campaign's runs against their load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import pandas as pd
from msgspec import Meta

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import Sheet, TableKind
from batsched_py.analysis.plots.runs import by_log, check_columns, configurations, in_unit
from batsched_py.analysis.statistics import CONFIDENCE, Estimate

#: From this ratio of the largest mean to the smallest one on, the scale is logarithmic.
WIDE: Final = 20.0

#: Up to so many loads have a tick each.
MOST_TICKS: Final = 8


def estimates_by_load(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """For each load the ``mean`` of a metric over parts and seeds, and ``half`` of its interval."""
    rows = {float(load): Estimate.of(part[metric].dropna().to_list()) for load, part in table.groupby("load")}
    estimates = {load: (each.mean, each.half_width or 0.0) for load, each in sorted(rows.items())}
    return pd.DataFrame.from_dict(estimates, orient="index", columns=["mean", "half"]).rename_axis("load")


@dataclass(frozen=True)
class Load(TableKind):
    """A metric against the load, with a panel for each log and a line for each scheduler.

    The runs are those of a plan with `loads`. Means are over parts and seeds; bars are intervals of 95 %
    confidence, by Student's t.
    """

    name = "load"
    shows = "A metric of a campaign's runs against their load."

    metric: Annotated[str, Meta(title="NAME", description="Which metric.")] = "mean_bounded_slowdown"

    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw it."""
        check_columns(table, "load", self.metric)
        unit, label = in_unit(table, self.metric)
        lines = {
            log: {
                name: estimates_by_load(rows, self.metric) / unit
                for name, rows in configurations(part, "load")
            }
            for log, part in by_log(table).items()
        }
        names = list(dict.fromkeys(name for each in lines.values() for name in each))
        looks = dict(zip(names, sheet.line_looks(len(names)), strict=True))
        axes = sheet.panels(list(lines), columns=2, height=2.4)
        for panel, each in zip(axes, lines.values(), strict=True):
            for name, line in each.items():
                look = looks[name] | {"label": name}
                panel.errorbar(line.index, line["mean"], line["half"], marker="o", ms=3.5, capsize=2, **look)
            panel.set_xlabel("load, as a multiple of the recorded one")
            loads = sorted({load for line in each.values() for load in line.index})
            if len(loads) <= MOST_TICKS:
                panel.set_xticks(loads)
            style.plain_numbers(panel.xaxis, panel.yaxis)
        means = pd.concat([line["mean"] for each in lines.values() for line in each.values()])
        if 0 < WIDE * means.min() < means.max():
            axes[0].set_yscale("log")
            style.plain_numbers(axes[0].yaxis)
        else:
            axes[0].set_ylim(bottom=0)
        sheet.supylabel(f"{label}, {CONFIDENCE:.0%} confidence")
        style.shared_legend(sheet, axes)
