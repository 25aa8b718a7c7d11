"""Random scheduling, as a baseline."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta
from numpy.random import default_rng

from batsched_py.ledger.queue import Floats, Waiting
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


@dataclass
class RandomChoice(Scheduler):
    """Random: any of the jobs that fit goes next, all being equally likely."""

    name = "random"
    only_starts_jobs = True
    uses_estimates = False

    seed: Annotated[int, Meta(description="Where random choices begin.")] = 0

    def begin(self, cluster: Cluster) -> None:
        """Choices begin anew with each simulation."""
        self._random = default_rng(self.seed)

    def schedule(self, cluster: Cluster) -> None:
        """Start what fits in random order; as long as nothing ends, only new jobs can."""
        for job in cluster.fitting(order=self._shuffle, only_new=cluster.quiet):
            cluster.start(job)

    def _shuffle(self, waiting: Waiting, now: float) -> Floats:
        return self._random.random(len(waiting))
