"""How many bytes storages read and write, over time."""

from __future__ import annotations

from dataclasses import dataclass

from batsched_py.analysis.plots.over_time import Floats, FlowsKind


@dataclass(frozen=True)
class Storages(FlowsKind):
    """What storage hosts send and receive in a second, those first that moved most.

    It is known of simulations with --links, from the files PREFIX_uses.csv and PREFIX_rates.csv. Each step is
    the mean of a 150th of the time.
    """

    name = "storages"
    shows = "How many bytes storages read and write, over time."
    of = "storage"
    label = "read and written (MB/s)"

    def shown(self, flow: Floats, capacity: float) -> Floats:
        """Megabytes in a second."""
        return flow / 1e6
