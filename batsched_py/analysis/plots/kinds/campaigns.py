"""Figures of a campaign's table: a metric against the load, and how much it differs between repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import ArrayLike

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import Sheet, TableKind
from batsched_py.analysis.plots.runs import by_log, check_columns, configurations, in_unit
from batsched_py.analysis.runs import CONFIDENCE, Estimate, kept_of
from batsched_py.analysis.runs.aggregate import REPETITIONS
from batsched_py.analysis.runs.columns import NOTHING, column_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: From this ratio of the largest mean to the smallest one on, the scale is logarithmic.
WIDE: Final = 20.0

#: Up to so many loads have a tick each.
MOST_TICKS: Final = 8

#: So many letters of a label stand beside a panel; longer ones go on in another line.
LONGEST_LABEL: Final = 44


def estimates_by_load(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """For each load the ``mean`` of a metric, how far its interval reaches, and whether a run is unstable.

    Means are over parts, within which seeds are averaged, or over seeds where there are no parts.
    """
    estimates = {}
    known = table.dropna(subset=[metric])
    unit = next((axis for axis in REPETITIONS if axis in known and known[axis].nunique() > 1), None)
    found = {load: _values(rows, metric, unit) for load, rows in known.groupby("load")}
    kept = kept_of([*found.values()]) if unit == "part" else 0.0
    for load, rows in table.groupby("load"):
        each = Estimate.of(found.get(load, []), column_of(metric, NOTHING).possible, kept)
        ends = (
            each.mean - (each.mean if each.low is None else each.low),
            (each.mean if each.high is None else each.high) - each.mean,
        )
        estimates[float(load)] = (each.mean, *ends, bool(rows.get("unstable", pd.Series([False])).any()))
    columns = ["mean", "below", "above", "unstable"]
    frame = pd.DataFrame.from_dict(estimates, orient="index", columns=columns)
    return frame.sort_index().rename_axis("load")


def _values(rows: pd.DataFrame, metric: str, unit: str | None) -> list[float]:
    """The mean of a metric in each unit; those of parts in the order of time."""
    if unit is None:
        return list(rows[metric])
    means = rows.groupby(rows[unit].astype(str))[metric].mean().to_dict()
    return [means[name] for name in sorted(means, key=lambda name: (len(name), name))]


@dataclass(frozen=True)
class Load(TableKind):
    """A metric against the load, with a panel for each log and a line for each scheduler.

    The runs are those of a plan with `loads`. Means are over parts, or over seeds where there are no parts;
    bars are intervals of 95 % confidence, by Student's t. A cross marks a run that has no steady state.
    """

    name = "load"
    shows = "A metric of a campaign's runs against their load."

    metric: Annotated[str, Meta(title="NAME", description="Which metric.")] = "mean_bounded_slowdown"

    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw it."""
        check_columns(table, "load", self.metric)
        unit, label = in_unit(table, self.metric)
        lines: dict[str, dict[str, pd.DataFrame]] = {}
        for log, part in by_log(table).items():
            rows = dict(configurations(part, "load"))
            lines[log] = {name: estimates_by_load(each, self.metric) for name, each in rows.items()}
        names = list(dict.fromkeys(name for each in lines.values() for name in each))
        looks = dict(zip(names, sheet.line_looks(len(names)), strict=True))
        axes = sheet.panels(list(lines), columns=2, height=2.4)
        for panel, each in zip(axes, lines.values(), strict=True):
            for name, line in each.items():
                look = looks[name] | {"label": name}
                means, ends = line["mean"] / unit, line[["below", "above"]].T.to_numpy() / unit
                panel.errorbar(line.index, means, ends, marker="o", ms=3.5, capsize=2, **look)
                unstable = means[line["unstable"].astype(bool)]
                if len(unstable):
                    (cross,) = panel.plot(unstable.index, unstable, "x", color=style.BLACK, ms=7, zorder=5)
                    cross.set_label("no steady state")
            panel.set_xlabel("load, as a multiple of the recorded one")
            loads = sorted({load for line in each.values() for load in line.index})
            if len(loads) <= MOST_TICKS:
                panel.set_xticks(loads)
            style.plain_numbers(panel.xaxis, panel.yaxis)
        shown = [line for each in lines.values() for line in each.values()]
        means = pd.concat([line["mean"] / unit for line in shown])
        if 0 < WIDE * means.min() < means.max():
            axes[0].set_yscale("log")
            style.plain_numbers(axes[0].yaxis)
        else:
            axes[0].set_ylim(bottom=0)
        sheet.supylabel(fill(f"{label}, {CONFIDENCE:.0%} confidence", LONGEST_LABEL))
        style.shared_legend(sheet, axes)


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
        beyond = known[~within].tolist()
        return cls(len(known), min(low, lower), lower, median, upper, max(high, upper), beyond)

    def for_matplotlib(self) -> dict[str, Any]:
        """The same in the words of matplotlib."""
        ends = {"whislo": self.low, "whishi": self.high, "fliers": self.beyond}
        return {"q1": self.lower, "med": self.median, "q3": self.upper, **ends}


def draw_boxes(panel: Axes, boxes: dict[str, dict[str, Any]], colours: Sequence[str], **look: Any) -> None:
    """Boxes side by side in the words of matplotlib, above their names."""
    places = range(len(boxes))
    look |= {"patch_artist": True, "medianprops": {"color": style.BLACK}}
    drawn = panel.bxp(list(boxes.values()), positions=places, widths=0.6, **look)
    for box, colour in zip(drawn["boxes"], colours, strict=True):
        box.set(facecolor=colour, alpha=0.75)
    style.name_bars(panel, list(boxes))


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
            values = {name: rows[self.metric].dropna() / unit for name, rows in configurations(part)}
            boxes = {name: Box.of(each).for_matplotlib() for name, each in values.items()}
            draw_boxes(panel, boxes, sheet.colours(len(boxes)), flierprops={"markersize": 3})
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        sheet.supylabel(label)
