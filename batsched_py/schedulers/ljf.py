"""Longest job first."""

from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.schedulers.orders import longest


class Ljf(Fcfs):
    """Longest job first: the job with the longest walltime goes next, and all wait until it fits.

    On equal hosts it ends at most a third later than the best schedule could, for jobs of one host that wait
    from the beginning: R. Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM Journal on Applied
    Mathematics 17(2), 1969.
    """

    name = "ljf"
    uses_estimates = True

    def begin(self, cluster: Cluster) -> None:
        """Put the queue into its order."""
        cluster.order_queue(longest)
