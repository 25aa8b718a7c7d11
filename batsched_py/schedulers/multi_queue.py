"""Several queues with priorities.

Production machines offer a queue for short jobs that is served before those for longer ones; compare
B. Lawson and E. Smirni, "Multiple-Queue Backfilling Scheduling with Priorities and Reservations for Parallel
Systems", JSSPP 2002.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.ledger.queue import Floats, Waiting
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling
from batsched_py.schedulers.orders import fixed


@dataclass
class MultiQueue(EasyBackfilling):
    """Several queues: a job joins the first one whose walltime limit it keeps, and that is its priority.

    Jobs of a queue go after all jobs of the queues before it, in submission order. The first job of all has
    a reservation, around which the others are backfilled, as in EASY. The last queue has no limit.
    """

    name = "multi-queue"

    limits: Annotated[
        str, Meta(description="The walltime limits of the queues but the last, in seconds.")
    ] = "3600,14400"

    def __post_init__(self) -> None:
        """Read the limits."""
        limits = [float(limit) for limit in self.limits.split(",")]
        if limits != sorted(limits):
            raise ValueError(f"the limits must ascend, not {self.limits!r}")
        self._limits = np.array(limits)

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """The first queue first, in the queue and for backfilling."""
        return self._queue_number, None

    @fixed
    def _queue_number(self, waiting: Waiting, now: float) -> Floats:
        return self._limits.searchsorted(waiting.estimate).astype(np.float64)
