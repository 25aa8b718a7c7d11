"""EASY with predicted run times and shortest job backfilled first, known as EASY++.

D. Tsafrir, Y. Etsion and D. Feitelson, "Backfilling Using System-Generated Predictions Rather than User
Runtime Estimates", IEEE TPDS 18(6), 2007.
"""

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import in_library
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling
from batsched_py.schedulers.orders import shortest

_MINUTE, _HOUR = 60.0, 3600.0

#: By how much a prediction is prolonged when it expires for the first time, the second time, ...
CORRECTIONS = (
    *(minutes * _MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 5, 10, 20, 50, 100)),
)

#: The least that is predicted.
SHORTEST = 1.0


class EasySjbf(EasyBackfilling):
    """EASY++: run times are predicted from the user's last two jobs; the shortest job is backfilled first.

    A job is expected to run for the average of the last two of its user's jobs that have ended, or for its
    walltime if there is none, and never for more than that. When it outlives the prediction, it is given
    some more time, at first a minute. The walltime remains what it is killed at.
    """

    name = "easy-sjbf"
    only_starts_jobs = False

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """Submission order, and the shortest prediction first for backfilling."""
        return None, shortest

    def begin(self, cluster: Cluster) -> None:
        """Nothing is known of the users yet."""
        super().begin(cluster)
        self.predictions = cluster.predictions(SHORTEST, CORRECTIONS)

    @in_library("predictions")
    def estimate(self, job: Job) -> float:
        """The prediction."""
        return job.walltime if self.predictions is None else self.predictions.estimate(job)
