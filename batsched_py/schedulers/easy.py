"""EASY backfilling.

D. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; A. Mu'alem and D. Feitelson, "Utilization,
Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling",
IEEE TPDS 12(6), 2001.
"""

from __future__ import annotations

from typing import Any

from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster


class Easy(Scheduler):
    """EASY backfilling: later jobs may start early if they do not delay the first one in the queue."""

    name = "easy"

    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it fits, reserve for the head, then backfill."""
        queue = cluster.queue
        while queue and cluster.fits(queue.head):
            cluster.start(queue.head)
        if len(queue) < 2 or not cluster.nb_free:
            return

        shadow_time, extra = cluster.reservation(queue.head)

        def harmless(size: Any, walltime: Any) -> Any:
            in_time = cluster.now + walltime <= shadow_time
            return (size <= cluster.nb_free) & (in_time | (size <= extra))

        for job in queue.where(harmless):
            if harmless(job.size, job.walltime):
                cluster.start(job)
                if cluster.now + job.walltime > shadow_time:
                    extra -= job.size
