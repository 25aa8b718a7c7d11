"""How much a metric differs between repetitions of a campaign's runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import pandas as pd
from msgspec import Meta

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.kind import TableKind
from batsched_py.analysis.plots.results import by_log, check_columns, configurations, in_unit

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet


@dataclass(frozen=True)
class Repetitions(TableKind):
    """Box plots of a metric over parts and seeds, with a panel for each log.

    A box reaches from one quartile to the other with a line at the median, whiskers to the furthest value
    within one and a half times the length of the box, and circles are beyond that.
    """

    name = "repetitions"

    metric: Annotated[str, Meta(title="NAME", description="Which metric.")] = "mean_bounded_slowdown"

    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw it."""
        check_columns(table, self.metric)
        logs = by_log(table)
        unit, label = in_unit(table, self.metric)
        axes = sheet.panels(list(logs), columns=2, height=2.4)
        for panel, part in zip(axes, logs.values(), strict=True):
            boxes = {name: rows[self.metric].dropna() / unit for name, rows in configurations(part)}
            drawn = panel.boxplot(
                list(boxes.values()),
                positions=range(len(boxes)),
                widths=0.6,
                patch_artist=True,
                medianprops={"color": style.BLACK},
                flierprops={"markersize": 3},
            )
            for box, colour in zip(drawn["boxes"], sheet.colours(len(boxes)), strict=True):
                box.set(facecolor=colour, alpha=0.75)
            style.name_bars(panel, list(boxes))
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        sheet.supylabel(label)
