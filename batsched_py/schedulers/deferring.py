"""Jobs that wait for cheap or green hours, under any policy."""

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.outside.curve import Curve
from batsched_py.protocol.jobs import TICK, Job
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.wrapping import Wrapper


@dataclass
class Deferring(Wrapper):
    """Around a policy: a job joins the queue later if it costs less then, by a bound at the latest.

    What a job costs is the sum of a value over the time that it is expected to run: the price of energy, or
    its carbon intensity. A job is kept from the queue until the moment at which it would cost least if it
    started at once. From then on it waits like any other. Jobs without a walltime are not deferred, and none
    is if the value is not known.
    """

    name = "deferring"

    by: Annotated[
        Literal["price", "carbon"],
        Meta(description="What is to be low: the price (--price), or the carbon intensity (--carbon)."),
    ] = "price"
    most: Annotated[
        float,
        Meta(ge=0, description="A job joins the queue so many seconds after its submission at the latest."),
    ] = 43200.0

    def begin(self, cluster: Cluster) -> None:
        """Nobody waits yet."""
        self._value: Curve | None = getattr(cluster.outside, self.by)
        self._last = 0
        self._deferred: list[tuple[float, int, Job]] = []
        """When jobs join the queue, and how many had been submitted with each."""
        self._calls: set[float] = set()
        """When the policy is called because of them."""
        super().begin(cluster)

    def schedule(self, cluster: Cluster) -> None:
        """Let jobs go whose time has come, keep new ones back, and let the policy inside decide."""
        now = cluster.now
        for arrival, job in cluster.joined_after(self._last):
            self._last = arrival
            start = self._cheapest(job, cluster)
            if start > now + TICK:
                cluster.defer(job)
                heappush(self._deferred, (start, arrival, job))
                cluster.remark(job, "is deferred, since it costs less then", start)
                if start not in self._calls:
                    self._calls.add(start)
                    cluster.call_at(start)
        while self._deferred and self._deferred[0][0] <= now + TICK:
            start, _, job = heappop(self._deferred)
            self._calls.discard(start)
            if cluster.resume(job):
                self._last = cluster.queue.nb_joined
        super().schedule(cluster)

    def _cheapest(self, job: Job, cluster: Cluster) -> float:
        """When a job would cost least."""
        duration, latest = cluster.queue.estimate(job), job.submission_time + self.most
        if self._value is None or duration == inf or latest <= cluster.now:
            return cluster.now
        return self._value.cheapest(cluster.now, latest, duration)
