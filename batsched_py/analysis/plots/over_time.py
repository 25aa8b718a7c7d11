"""Quantities over time: means of periods wide enough to see, flows on links, and painted rectangles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, ClassVar, Final

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.analysis.conditions import Carried, Shared
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

Floats = NDArray[np.float64]

#: Periods that are taken together; the first one of which a figure has no more than so many.
PERIODS: Final = ((3600.0, "hour"), (6 * 3600.0, "6 hours"), (86400.0, "day"), (7 * 86400.0, "week"))
#: Into at most so many periods of equal length the time is divided.
MOST_PERIODS: Final = 150


def period_for(end: float) -> tuple[float, str]:
    """The period that suits a time from 0 to ``end``: its seconds and its name.

    >>> period_for(60 * 86400)
    (86400.0, 'day')
    """
    for period, name in PERIODS:
        if end <= MOST_PERIODS * period:
            return period, name
    return PERIODS[-1]


@dataclass(frozen=True)
class MeansKind(RunsKind):
    """A figure of a quantity over time."""

    label: ClassVar[str]
    """What the quantity is called."""

    @abstractmethod
    def means(self, run: Run, edges: Floats) -> Floats:
        """The mean of the quantity between each two successive ``edges`` of time."""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run with the means of its periods, before what was recorded in grey."""
        recorded = recorded if self.use_of_log else None
        end = max(run.end for run in (*runs, *([recorded] if recorded else [])))
        period, period_name = period_for(end)
        unit, unit_name = style.time_unit(end)
        edges = period * np.arange(1.0 + ceil(end / period))
        axes = sheet.panels([run.label for run in runs], columns=2 if len(runs) > 3 else 1)
        for run, panel, colour in zip(runs, axes, sheet.colours(len(runs)), strict=True):
            if recorded:
                panel.stairs(self.means(recorded, edges), edges / unit, fill=True, color=style.LIGHT_GREY)
            panel.stairs(self.means(run, edges), edges / unit, color=colour, linewidth=1)
            panel.set_xlim(0, edges[-1] / unit)
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        sheet.supxlabel(f"time ({unit_name})")
        sheet.supylabel(
            f"{self.label}, mean of each {period_name}" + (" (grey: recorded)" if recorded else "")
        )


def recorded_flows(run: Run) -> Carried:
    """What was recorded of a run."""
    if run.carried is None:
        raise InputError(f"{run.label}: nothing tells what its links carried; simulate it with --links")
    return run.carried


@dataclass(frozen=True)
class FlowsKind(RunsKind):
    """A figure of the most loaded links or storages."""

    use_of_log: ClassVar[str] = ""
    of: ClassVar[Shared]
    """What is shown."""
    label: ClassVar[str]
    """What of it."""

    most: Annotated[int, Meta(ge=1, title="N", description="How many have a line.")] = 5

    @abstractmethod
    def shown(self, flow: Floats, capacity: float) -> Floats:
        """What a line shows, given the bytes in a second and how many there may be."""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run with its most loaded ones; one that is in several has the same look in all."""
        tables = {run.label: self._lines(run) for run in runs}
        names = list(dict.fromkeys(name for table in tables.values() for name in table))
        looks = dict(zip(names, sheet.line_looks(len(names)), strict=True))
        unit, unit_name = style.time_unit(max(float(table.index[-1]) for table in tables.values()))
        axes = sheet.panels(list(tables), height=2.0)
        for panel, table in zip(axes, tables.values(), strict=True):
            edges = np.concatenate([[0.0], table.index])
            for name in table:
                panel.stairs(table[name], edges / unit, baseline=None, label=name, **looks[name])
            panel.set_xlim(left=0)
            style.plain_numbers(panel.yaxis)
        axes[0].set_ylim(bottom=0)
        axes[-1].set_xlabel(f"time ({unit_name})")
        sheet.supylabel(self.label)
        style.shared_legend(sheet, axes)

    def _lines(self, run: Run) -> pd.DataFrame:
        """A column for each line, a row for each period with its end."""
        flows = recorded_flows(run)
        most = flows.most_loaded(self.of, self.most)
        if most.empty:
            raise InputError(f"{run.label}: no {self.of} carried anything, so there is nothing to show")
        edges = np.linspace(0.0, run.end, MOST_PERIODS + 1)
        return pd.DataFrame(
            {
                name: self.shown(flows.mean_flow(self.of, name, edges), capacity)
                for name, capacity in zip(most["name"], most["capacity"], strict=True)
            },
            index=edges[1:],
        )
