"""Conservative backfilling.

A. Mu'alem and D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001.
"""

from __future__ import annotations

from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


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
        self.take_over(cluster)
        cluster.on_end(lambda ended: self._give_rest_back(cluster, ended))

    def take_over(self, cluster: Cluster) -> None:
        """Plan anew, from the jobs that run; those that wait get their reservations in the queue's order."""
        self._profile = cluster.profile()
        self._available = cluster.available
        self._reserved: dict[Job, float] = {}
        self._some_ended = False
        self._freed_until = 0.0

    def _give_rest_back(self, cluster: Cluster, ended: RunningJob) -> None:
        hosts = len(ended.hosts & self._available)
        self._profile.give(cluster.now, ended.expected_end, hosts)
        self._freed_until = max(self._freed_until, ended.expected_end)
        self._some_ended = True

    def schedule(self, cluster: Cluster) -> None:
        """Reserve for new jobs, let others move forward, and start those whose time has come."""
        self._profile.advance(cluster.now)
        if cluster.available != self._available:
            self._available = cluster.available
            self._profile = cluster.profile()
            self._reserved.clear()
        if self._some_ended:
            self._move_forward(cluster)
        for job in cluster.queue:
            if job not in self._reserved:
                self._reserve(cluster, job, self._profile.earliest(job.size, job.walltime))
        for job in [job for job, start in self._reserved.items() if start <= cluster.now]:
            if cluster.fits(job):
                self._give_up(job)
                del self._reserved[job]
                running = cluster.start(job)
                self._profile.take(running.start, running.expected_end, job.size)

    def _move_forward(self, cluster: Cluster) -> None:
        """Let each job in turn have the earliest reservation that all others leave.

        Only where hosts have become free can it be earlier than before. What a job leaves behind when it
        moves may serve those after it at once, and those before it the next time.
        """
        freed_until, self._freed_until, self._some_ended = self._freed_until, 0.0, False
        for job, start in self._reserved.items():
            earlier = self._profile.earlier(job.size, job.walltime, start, before=freed_until)
            if earlier < start:
                self._give_up(job)
                self._reserve(cluster, job, earlier)
                self._freed_until = max(self._freed_until, start + job.walltime)
                freed_until = max(freed_until, self._freed_until)

    def _reserve(self, cluster: Cluster, job: Job, start: float) -> None:
        self._profile.take(start, start + job.walltime, job.size)
        self._reserved[job] = start
        if cluster.heeded and start > cluster.now:
            cluster.remark(job, "has a reservation", start)

    def _give_up(self, job: Job) -> None:
        start = self._reserved[job]
        self._profile.give(start, start + job.walltime, job.size)
