"""Picking the next job to start."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from batsched_py.gym.observations import QUEUE, Observation
from batsched_py.gym.seen import Seen
from batsched_py.gym.tasks import Questions, Task, waiting_at
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.easy import backfill


@dataclass
class PickJob(Task):
    """The agent picks which of the first waiting jobs is next, until one does not fit; all wait for that one.

    An agent that picks the first is FCFS, or EASY with backfilling; one that picks the shortest is SJF. An
    action that stands for no job picks the first. D. Zhang et al., "RLScheduler", SC 2020.
    """

    slots: int = 128
    """How many waiting jobs the agent sees."""
    backfilling: bool = False
    """Whether others may start that do not delay the picked job, as in EASY."""
    committed: bool = False
    """Whether a job that was picked stays so until it starts, as in the paper; else the agent may think again
    whenever something happens."""
    observation: Observation = QUEUE

    @property
    def nb_actions(self) -> int:
        """One for each job that it sees."""
        return self.slots

    def begin(self, cluster: Cluster) -> None:
        """Nobody is picked yet."""
        self._picked: Job | None = None

    def turn(self, cluster: Cluster) -> Questions:
        """Start what is picked while it fits."""
        queue = cluster.queue
        if self._picked is not None and self._picked not in queue:
            self._picked = None  # its user took it back
        while queue:
            job = self._picked or (yield from self._ask(cluster))
            if not cluster.fits(job):
                self._picked = job if self.committed else None
                if self.backfilling and len(queue) > 1 and cluster.nb_free:
                    backfill(cluster, job)
                return
            self._picked = None
            cluster.start(job)

    def _ask(self, cluster: Cluster) -> Generator[Any, int, Job]:
        waiting = Seen(cluster, self.slots)
        mask = np.zeros(self.slots, np.int8)
        mask[: len(waiting)] = 1
        action = yield self.show(cluster, waiting, mask)
        return waiting_at(cluster, action if action < len(waiting) else 0)
