"""Rejecting everything, to measure what a simulation costs without any scheduling."""

from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class RejectAll(Scheduler):
    """Reject all: no job ever runs."""

    name = "reject-all"
    uses_estimates = False

    def schedule(self, cluster: Cluster) -> None:
        """Reject all that waits."""
        for job in cluster.queue:
            cluster.reject(job)
