"""Shortest job first."""

from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.schedulers.orders import shortest


class Sjf(Fcfs):
    """Shortest job first: the job with the shortest walltime goes next, and all wait until it fits.

    On one host it has the least mean waiting time of all orders, for jobs that wait from the beginning and
    run for as long as they say: W. Smith, "Various Optimizers for Single-Stage Production", Naval Research
    Logistics Quarterly 3, 1956.
    """

    name = "sjf"
    uses_estimates = True

    def begin(self, cluster: Cluster) -> None:
        """Put the queue into its order."""
        cluster.order_queue(shortest)
