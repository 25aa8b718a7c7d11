"""EASY with predicted run times and shortest job backfilled first, known as EASY++.

D. Tsafrir, Y. Etsion and D. Feitelson, "Backfilling Using System-Generated Predictions Rather than User
Runtime Estimates", IEEE TPDS 18(6), 2007.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from math import inf

from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import Job
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
        self._run_times: dict[str | None, deque[float]] = {}
        self._corrections: dict[str, int] = {}
        self._next_call = inf
        self._cluster = cluster
        cluster.on_end(self._learn)

    def estimate(self, job: Job) -> float:
        """The average of the user's last two run times."""
        recent = self._run_times.get(job.user)
        if recent is None:
            return job.walltime
        return min(max(sum(recent) / len(recent), SHORTEST), job.walltime)

    def _learn(self, ended: RunningJob) -> None:
        run_times = self._run_times.setdefault(ended.job.user, deque(maxlen=2))
        run_times.append(self._cluster.now - ended.start)
        self._corrections.pop(ended.job.id, None)

    def schedule(self, cluster: Cluster) -> None:
        """EASY, after predictions that have expired are corrected."""
        self._correct(cluster)
        super().schedule(cluster)
        self._call_at_next_expiry(cluster)

    def _correct(self, cluster: Cluster) -> None:
        for running in list(takewhile(lambda running: running.expected_end <= cluster.now, cluster.running)):
            job, ran = running.job, cluster.now - running.start
            if ran < job.walltime:
                count = self._corrections.get(job.id, 0)
                self._corrections[job.id] = count + 1
                more = CORRECTIONS[min(count, len(CORRECTIONS) - 1)]
                cluster.expect(job, min(ran + more, job.walltime))

    def _call_at_next_expiry(self, cluster: Cluster) -> None:
        """The expiry of a prediction is nobody else's event, and it can let a job start that waits."""
        if not cluster.queue:
            return
        expiry = next((r.expected_end for r in cluster.running if r.expected_end > cluster.now), inf)
        if self._next_call <= cluster.now or expiry < self._next_call:
            self._next_call = expiry
            if expiry < inf:
                cluster.call_at(expiry)
