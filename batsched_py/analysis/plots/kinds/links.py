"""How busy the most loaded links are, over time."""

from __future__ import annotations

from dataclasses import dataclass

from batsched_py.analysis.plots.over_time import Floats, FlowsKind


@dataclass(frozen=True)
class Links(FlowsKind):
    """The share of their bandwidth that the most loaded links carry.

    It is known of simulations with --links, from the files PREFIX_uses.csv and PREFIX_rates.csv. Each step is
    the mean of a 150th of the time. Many tasks can use a fat pipe at once, more than its bandwidth together.
    """

    name = "links"
    shows = "How busy the most loaded links are, over time."
    of = "link"
    label = "load of the link (%)"

    def shown(self, flow: Floats, capacity: float) -> Floats:
        """The load in percent."""
        return 100 * flow / capacity
