"""Policies to test, and one that gets into their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler

#: A name as on the command line, or whatever makes a fresh policy, such as its class.
Policy: TypeAlias = str | Callable[[], Scheduler]


def new(policy: Policy) -> Scheduler:
    """A fresh policy, which has seen nothing yet."""
    return SCHEDULERS.create(policy, {}) if isinstance(policy, str) else policy()


class Meddler(Scheduler):
    """Lets another policy decide, but rejects every so-manieth job and kills every so-manieth that runs.

    So a policy is tested that has no such decisions itself: it must not lose its head when jobs vanish.
    """

    name = "meddler"

    def __init__(self, policy: Scheduler, rejects: int = 4, kills: int = 3) -> None:
        self.policy = policy
        self.rejects, self.kills = rejects, kills
        self.selection, self.selection_seed = policy.selection, policy.selection_seed
        self._met: dict[str, int] = {}
        self._killed: set[str] = set()

    def begin(self, cluster: Cluster) -> None:
        """The other policy's beginning."""
        self.policy.begin(cluster)

    def estimate(self, job: Job) -> float:
        """The other policy's estimate."""
        return self.policy.estimate(job)

    def schedule(self, cluster: Cluster) -> None:
        """Meddle, then let the other policy decide."""
        for job in cluster.queue:
            if self._met.setdefault(job.id, len(self._met)) % self.rejects == self.rejects - 1:
                cluster.reject(job)
        for running in list(cluster.running):
            job = running.job
            if (
                self._met[job.id] % self.kills == self.kills - 1
                and running.start < cluster.now < running.start + job.walltime
                and job.id not in self._killed
            ):
                self._killed.add(job.id)
                cluster.kill(job)
        self.policy.schedule(cluster)
