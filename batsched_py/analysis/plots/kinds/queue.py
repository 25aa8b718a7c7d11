"""How many jobs wait, over time."""

from __future__ import annotations

from dataclasses import dataclass

from batsched_py.analysis.plots.over_time import Floats, MeansKind
from batsched_py.analysis.plots.runs import Run


@dataclass(frozen=True)
class Queue(MeansKind):
    """How many jobs are submitted and not started, on average in each hour, day or week.

    Rejected jobs are left out: nothing tells how long they waited.
    """

    name = "queue"
    shows = "How many jobs wait, over time."
    label = "waiting jobs"

    def means(self, run: Run, edges: Floats) -> Floats:
        """How many jobs wait."""
        return run.waiting_jobs(edges)
