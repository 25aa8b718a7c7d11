"""First fit without reservations."""

from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class Filler(Scheduler):
    """First fit: every job starts as soon as enough hosts are free, even if others wait before it.

    Large jobs may wait for ever while small ones keep coming.
    """

    name = "filler"
    only_starts_jobs = True
    uses_estimates = False

    def schedule(self, cluster: Cluster) -> None:
        """Start all that fits, in submission order; as long as nothing ends, only new jobs can."""
        cluster.start_fitting(only_new=cluster.quiet)
