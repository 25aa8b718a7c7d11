"""Conservative backfilling.

A. Mu'alem and D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001.
"""

from __future__ import annotations

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster, RunningJob


class Conservative(Scheduler):
    """Conservative backfilling: every job gets a reservation, and no later job may delay any.

    A job gets the earliest reservation that those of all jobs before it leave when it is submitted. When
    jobs have ended, each waiting job in turn gives its reservation up for the earliest one that all others
    leave, so that it can only move forward. When hosts have been taken away or have come back, all
    reservations are made anew.
    """

    name = "conservative"

    def begin(self, cluster: Cluster) -> None:
        """Nothing is planned yet."""
        self._cluster = cluster
        self._profile = cluster.profile()
        self._available = cluster.available
        self._reserved: dict[Job, float] = {}
        self._some_ended = False
        cluster.on_end(self._give_rest_back)

    def _give_rest_back(self, ended: RunningJob) -> None:
        self._some_ended = True
        hosts = len(ended.hosts & self._available)
        self._profile.give(self._cluster.now, ended.expected_end, hosts)

    def schedule(self, cluster: Cluster) -> None:
        """Reserve for new jobs, let others move forward, and start those whose time has come."""
        if cluster.available != self._available:
            self._available = cluster.available
            self._profile = cluster.profile()
            self._reserved.clear()
        self._profile.advance(cluster.now)
        for job in cluster.queue:
            if job not in self._reserved:
                self._reserve(job)
            elif self._some_ended:
                self._give_up(job)
                self._reserve(job)
        self._some_ended = False
        for job in [job for job, start in self._reserved.items() if start <= cluster.now]:
            if cluster.fits(job):
                self._give_up(job)
                running = cluster.start(job)
                self._profile.take(running.start, running.expected_end, job.size)
                del self._reserved[job]

    def _reserve(self, job: Job) -> None:
        start = self._profile.earliest(job.size, job.walltime)
        self._profile.take(start, start + job.walltime, job.size)
        self._reserved[job] = start

    def _give_up(self, job: Job) -> None:
        start = self._reserved[job]
        self._profile.give(start, start + job.walltime, job.size)
