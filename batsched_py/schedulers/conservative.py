"""Conservative backfilling.

A. Mu'alem and D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in
Scheduling the IBM SP2 with Backfilling", IEEE TPDS 12(6), 2001.
"""

from batsched_py.ledger.profile import Plan
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler, in_library
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
        cluster.on_end(lambda ended: self.plan.job_ended(ended))

    @in_library("conservative")
    def take_over(self, cluster: Cluster) -> None:
        """Plan anew, from the jobs that run; those that wait get their reservations in the queue's order."""
        self.plan = cluster.plan()
        self._available = cluster.available
        self._remarked: dict[Job, float] = {}

    @in_library("conservative")
    def schedule(self, cluster: Cluster) -> None:
        """Let jobs move forward, reserve for new ones, and start those whose time has come."""
        if cluster.available != self._available:
            self.take_over(cluster)
        plan = self.plan
        plan.advance()
        plan.move_forward()
        plan.reserve_new()
        if cluster.heeded:
            self._remark_on(cluster, plan)
        for job in plan.due():
            if cluster.fits(job):
                plan.job_started(cluster.start(job))

    def _remark_on(self, cluster: Cluster, plan: Plan) -> None:
        """Say which reservations are new."""
        reservations = dict(plan.reservations())
        for job, start in reservations.items():
            if start > cluster.now and self._remarked.get(job) != start:
                cluster.remark(job, "has a reservation", start)
        self._remarked = reservations
