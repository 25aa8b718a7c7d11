"""Backfilling."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from batsched_py.gym.observations import QUEUE, Observation
from batsched_py.gym.seen import Seen
from batsched_py.gym.tasks import Questions, Task, waiting_at
from batsched_py.ledger.reservation import Reservation
from batsched_py.schedulers.cluster import Cluster


@dataclass
class Backfill(Task):
    """Jobs start first come, first served; the agent says who is backfilled while the first one waits.

    It is offered the jobs that would not delay the first, one after another. The last action is to stop, as
    is any that is not offered. An agent that always takes the first is EASY.
    """

    slots: int = 128
    """How many waiting jobs the agent sees."""
    observation: Observation = QUEUE

    @property
    def nb_actions(self) -> int:
        """One for each job that it sees, and to stop."""
        return self.slots + 1

    def turn(self, cluster: Cluster) -> Questions:
        """Start from the head while it fits, reserve for the head, then backfill."""
        queue = cluster.queue
        while queue and cluster.fits(queue.head):
            cluster.start(queue.head)
        if len(queue) < 2 or not cluster.nb_free:
            return
        reservation = cluster.reservation(queue.head)
        if cluster.resources:
            yield from self._on_nodes(cluster, reservation)
            return
        shadow_time, extra = reservation

        def harmless(size: Any, estimate: Any) -> Any:
            return (cluster.now + estimate <= shadow_time) | (size <= extra)

        while next(cluster.fitting(harmless), None) is not None:
            waiting = Seen(cluster, self.slots)
            size, mask = waiting.size, np.zeros(self.nb_actions, np.int8)
            mask[: len(waiting)] = harmless(size, waiting.estimate) & (size <= cluster.nb_free)
            if len(queue) > self.slots and not mask.any():
                return  # the jobs that could be backfilled are too far behind to be seen
            mask[-1] = 1
            action = yield self.show(cluster, waiting, mask)
            if action == self.slots or not mask[action]:
                return
            started = cluster.start(waiting_at(cluster, action))
            if started.expected_end > shadow_time:
                extra -= started.nb_hosts

    def _on_nodes(self, cluster: Cluster, reservation: Reservation) -> Questions:
        """Offer the jobs that have a place beside the reservation; each goes there if it is taken."""
        while offered := {job.id for job in cluster.fitting(_any, beside=reservation)}:
            mask = np.zeros(self.nb_actions, np.int8)
            for place, job in enumerate(islice(cluster.queue, self.slots)):
                mask[place] = job.id in offered
            if not mask.any():
                return
            mask[-1] = 1
            action = yield self.show(cluster, Seen(cluster, self.slots), mask)
            if action == self.slots or not mask[action]:
                return
            chosen = waiting_at(cluster, action)
            for job in cluster.fitting(_any, beside=reservation):
                if job is chosen:
                    reservation.admit(cluster.start(job))
                    break


def _any(size: int, estimate: float) -> bool:
    return True
