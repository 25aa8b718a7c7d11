"""Reservations on a machine of nodes: they hold in every resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import force_setattr

from batsched_py.ledger import reservation
from batsched_py.ledger.nodes.demand import Demand
from batsched_py.ledger.nodes.machine import Integers
from batsched_py.ledger.nodes.placement import Placement
from batsched_py.ledger.running import RunningJob

if TYPE_CHECKING:
    from batsched_py.ledger.nodes.account import NodeAccount


class Reservation(reservation.Reservation, frozen=True, eq=False):
    """The promise to a job that at the shadow time there is a place for it.

    A job that starts now does not delay it if it ends by then, or if the place that it takes leaves another
    one for the job with the reservation.
    """

    account: NodeAccount
    demand: Demand
    """Of the job with the reservation."""
    future: Integers
    """What will be free on each node at the shadow time, before that job starts."""
    licences: dict[str, int]
    """Those that will be free then."""

    def __repr__(self) -> str:
        return repr(self._plain())

    def __reduce__(self) -> Any:
        return self._plain().__reduce__()

    def _plain(self) -> reservation.Reservation:
        return reservation.Reservation(self.job, self.now, self.shadow_time, self.extra)

    def allows_at(self, demand: Demand, placement: Placement, estimate: float) -> bool:
        """Whether a job that starts now in a place and runs for so long would not delay it."""
        if self.now + estimate <= self.shadow_time:
            return True
        future = self.future.copy()
        future[placement.nodes] -= placement.taken
        licences = _less(self.licences, demand)
        return self.demand.nodes(future) is not None and _has(licences, self.demand)

    def left(self, free: Integers) -> Integers | None:
        """What is free now and stays free when the job with the reservation starts where it would now go."""
        placement = self.account.place(self.demand, self.future)
        if placement is None:
            return None
        future = self.future.copy()
        future[placement.nodes] -= placement.taken
        left: Integers = np.minimum(free, future)
        return left

    def admit(self, running: RunningJob) -> None:
        """A job was started beside it: one that does not end by the shadow time has taken something."""
        super().admit(running)
        placement = self.account.placements.get(running.job.id)
        if running.expected_end > self.shadow_time and placement is not None:
            self.future[placement.nodes] -= placement.taken
            force_setattr(self, "licences", _less(self.licences, self.account.asked[running.job.id]))


def _less(licences: dict[str, int], demand: Demand) -> dict[str, int]:
    less = dict(licences)
    for name, count in demand.request.licences:
        less[name] -= count
    return less


def _has(licences: dict[str, int], demand: Demand) -> bool:
    return all(licences[name] >= count for name, count in demand.request.licences)
