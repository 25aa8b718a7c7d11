"""What the hosts draw, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from batsched_py.analysis.plots.kind import RunsKind
from batsched_py.analysis.plots.over_time import draw_means
from batsched_py.analysis.plots.runs import Run

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet


@dataclass(frozen=True)
class Power(RunsKind):
    """The power that all hosts draw, on average in each hour, day or week.

    It is known of simulations with --energy, from the PREFIX_consumed_energy.csv beside their jobs.
    """

    name = "power"
    use_of_log: ClassVar[str] = ""

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run."""
        draw_means(sheet, runs, None, lambda run, edges: run.mean_power(edges) / 1000, "power (kW)")
