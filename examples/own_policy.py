"""A policy of your own: first come, first served, but short jobs may pass others if they fit.

batsched-py run -w LOG.swf -s examples/own_policy.py:ShortPass -o minutes=30
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.schedulers import Cluster, Scheduler


@dataclass
class ShortPass(Scheduler):
    """First come, first served; jobs that ask for little time may pass."""

    name = "short-pass"
    only_starts_jobs = True

    minutes: Annotated[float, Meta(description="The longest walltime with which a job may pass.")] = 60.0

    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it fits, then whatever is short and fits."""
        while cluster.queue and cluster.fits(cluster.queue.head):
            cluster.start(cluster.queue.head)
        for job in cluster.fitting(lambda size, estimate: estimate <= 60 * self.minutes):
            cluster.start(job)
