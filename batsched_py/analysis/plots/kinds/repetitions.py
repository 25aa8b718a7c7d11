"""How much a metric differs between repetitions of a campaign's runs."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import ArrayLike

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import Sheet, TableKind
from batsched_py.analysis.plots.runs import by_log, check_columns, configurations, in_unit

#: How far a whisker reaches from its box, in lengths of the box.
REACH: Final = 1.5


@dataclass(frozen=True)
class Box:
    """What a box plot shows of some values; all but their number is nan where there are none."""

    count: int
    """How many there are."""
    low: float
    """The smallest value that a whisker reaches."""
    lower: float
    """The first quartile; as the others, between the two nearest values if none is in its place."""
    median: float
    upper: float
    """The third quartile."""
    high: float
    """The largest value that a whisker reaches."""
    beyond: list[float]
    """The values out of the reach of both whiskers."""

    @classmethod
    def of(cls, values: ArrayLike) -> Box:
        """The box plot of some values.

        >>> Box.of([1, 2, 3, 4, 12])
        Box(count=5, low=1.0, lower=2.0, median=3.0, upper=4.0, high=4.0, beyond=[12.0])
        """
        known = np.sort(np.asarray(values, dtype=float))
        if not len(known):
            return cls(0, nan, nan, nan, nan, nan, [])
        lower, median, upper = np.percentile(known, [25, 50, 75]).tolist()
        reach = REACH * (upper - lower)
        within = (known >= lower - reach) & (known <= upper + reach)
        low, high = known[within][[0, -1]].tolist()
        return cls(
            len(known), min(low, lower), lower, median, upper, max(high, upper), known[~within].tolist()
        )

    def for_matplotlib(self) -> dict[str, Any]:
        """The same in the words of matplotlib."""
        return {
            "whislo": self.low,
            "q1": self.lower,
            "med": self.median,
            "q3": self.upper,
            "whishi": self.high,
            "fliers": self.beyond,
        }


@dataclass(frozen=True)
class Repetitions(TableKind):
    """Box plots of a metric over parts and seeds, with a panel for each log.

    A box reaches from one quartile to the other with a line at the median, whiskers to the furthest value
    within one and a half times the length of the box, and circles are beyond that.
    """

    name = "repetitions"
    shows = "How much a metric differs between repetitions of a campaign's runs."

    metric: Annotated[str, Meta(title="NAME", description="Which metric.")] = "mean_bounded_slowdown"

    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw it."""
        check_columns(table, self.metric)
        logs = by_log(table)
        unit, label = in_unit(table, self.metric)
        axes = sheet.panels(list(logs), columns=2, height=2.4)
        for panel, part in zip(axes, logs.values(), strict=True):
            boxes = {name: Box.of(rows[self.metric].dropna() / unit) for name, rows in configurations(part)}
            drawn = panel.bxp(
                [box.for_matplotlib() for box in boxes.values()],
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
