"""How many jobs wait, over time."""

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
class Queue(RunsKind):
    """How many jobs are submitted and not started, on average in each hour, day or week.

    Rejected jobs are left out: nothing tells how long they waited.
    """

    name = "queue"

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each run."""
        draw_means(sheet, runs, recorded, Run.waiting_jobs, "waiting jobs")
