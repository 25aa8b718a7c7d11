"""Which share of the hosts is busy, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batsched_py.analysis.plots.kind import RunsKind
from batsched_py.analysis.plots.over_time import draw_means
from batsched_py.analysis.plots.runs import Run

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet


@dataclass(frozen=True)
class Utilization(RunsKind):
    """The share of the hosts that run jobs, on average in each hour, day or week."""

    name = "utilization"

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run."""
        draw_means(
            sheet,
            runs,
            recorded,
            lambda run, edges: 100 * run.busy_hosts(edges) / run.hosts,
            "busy hosts (%)",
        )
