"""What the hosts draw, over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from batsched_py.analysis.plots.over_time import Floats, MeansKind
from batsched_py.analysis.plots.runs import Run


@dataclass(frozen=True)
class Power(MeansKind):
    """The power that all hosts draw, on average in each hour, day or week.

    It is known of simulations with --energy, from the PREFIX_consumed_energy.csv beside their jobs.
    """

    name = "power"
    shows = "What the hosts draw, over time."
    label = "power (kW)"
    use_of_log: ClassVar[str] = ""

    def means(self, run: Run, edges: Floats) -> Floats:
        """The power in kilowatts."""
        return run.mean_power(edges) / 1000
