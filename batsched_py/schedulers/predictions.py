"""Run times as users' earlier jobs predict them, corrected when jobs outlive what was predicted."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from math import inf
from typing import TYPE_CHECKING

from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import Job

if TYPE_CHECKING:
    from batsched_py.schedulers.cluster import Cluster


class Predictions:
    """A job is expected to run for the average of the last two of its user's jobs that have ended.

    If there is none it is its walltime, and never more than that. A prediction that expires is prolonged.
    """

    def __init__(self, cluster: Cluster, shortest: float, corrections: Sequence[float]) -> None:
        """``corrections`` say by how much, the first time, the second, and so on."""
        self._cluster = cluster
        self._shortest = shortest
        self._more = corrections
        self._run_times: dict[str | None, deque[float]] = {}
        self._corrections: dict[str, int] = {}
        self._next_call = inf
        cluster.on_end(self._learn)

    def estimate(self, job: Job) -> float:
        """The average of the user's last two run times."""
        recent = self._run_times.get(job.user)
        if recent is None:
            return job.walltime
        return min(max(sum(recent) / len(recent), self._shortest), job.walltime)

    def _learn(self, ended: RunningJob) -> None:
        run_times = self._run_times.setdefault(ended.job.user, deque(maxlen=2))
        run_times.append(self._cluster.now - ended.start)
        self._corrections.pop(ended.job.id, None)

    def correct(self) -> None:
        """Prolong the predictions that have expired."""
        cluster = self._cluster
        for running in list(takewhile(lambda running: running.expected_end <= cluster.now, cluster.running)):
            job, ran = running.job, cluster.now - running.start
            if ran < job.walltime:
                count = self._corrections.get(job.id, 0)
                self._corrections[job.id] = count + 1
                more = self._more[min(count, len(self._more) - 1)]
                cluster.expect(job, min(ran + more, job.walltime))

    def call_at_next_expiry(self) -> None:
        """The expiry of a prediction is nobody else's event, and it can let a job start that waits."""
        cluster = self._cluster
        if not cluster.queue:
            return
        expiry = next((r.expected_end for r in cluster.running if r.expected_end > cluster.now), inf)
        if self._next_call <= cluster.now or expiry < self._next_call:
            self._next_call = expiry
            if expiry < inf:
                cluster.call_at(expiry)
