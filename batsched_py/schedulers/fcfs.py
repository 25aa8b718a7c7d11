"""First come, first served."""

from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class Fcfs(Scheduler):
    """First come, first served: jobs start in submission order, none overtakes another."""

    name = "fcfs"
    only_starts_jobs = True
    uses_estimates = False

    def schedule(self, cluster: Cluster) -> None:
        """Start jobs from the head of the queue while they fit."""
        cluster.start_from_head()
