"""What links or storages carry over time, a line for each of the most loaded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import numpy as np
import pandas as pd
from msgspec import Meta

from batsched_py.analysis import carried
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.kind import RunsKind
from batsched_py.analysis.plots.over_time import Floats
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet

#: Into so many periods of equal length the time is divided.
PERIODS: Final = 150


def recorded_flows(run: Run) -> carried.Carried:
    """What was recorded of a run."""
    if run.carried is None:
        raise InputError(f"{run.label}: nothing tells what its links carried; simulate it with --links")
    return run.carried


@dataclass(frozen=True)
class FlowsKind(RunsKind):
    """A figure of the most loaded links or storages."""

    use_of_log: ClassVar[str] = ""
    of: ClassVar[carried.Kind]
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
        edges = np.linspace(0.0, run.end, PERIODS + 1)
        return pd.DataFrame(
            {
                name: self.shown(flows.mean_flow(self.of, name, edges), capacity)
                for name, capacity in zip(most["name"], most["capacity"], strict=True)
            },
            index=edges[1:],
        )
