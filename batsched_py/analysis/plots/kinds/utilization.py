"""Which share of the hosts is busy, over time."""

from __future__ import annotations

from dataclasses import dataclass

from batsched_py.analysis.plots.over_time import Floats, MeansKind
from batsched_py.analysis.plots.runs import Run


@dataclass(frozen=True)
class Utilization(MeansKind):
    """The share of the hosts that run jobs, on average in each hour, day or week."""

    name = "utilization"
    shows = "Which share of the hosts is busy, over time."
    label = "busy hosts (%)"

    def means(self, run: Run, edges: Floats) -> Floats:
        """The busy hosts, in percent."""
        return 100 * run.busy_hosts(edges) / run.hosts
