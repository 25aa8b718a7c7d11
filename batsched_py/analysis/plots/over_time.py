"""Quantities over time, as means of periods that are wide enough to see."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.kind import RunsKind
from batsched_py.analysis.plots.runs import Run

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet

Floats = NDArray[np.float64]

#: Periods that are taken together; the first one of which a figure has no more than so many.
PERIODS: Final = ((3600.0, "hour"), (6 * 3600.0, "6 hours"), (86400.0, "day"), (7 * 86400.0, "week"))
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
