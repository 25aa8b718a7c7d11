"""EASY backfilling with malleable jobs, which grow and shrink while they run.

What a malleable job is: D. Feitelson and L. Rudolph, "Toward Convergence in Job Schedulers for Parallel
Supercomputers", JSSPP 1996. That waiting jobs have precedence over running ones, which grow and shrink
evenly: J. Buisson et al., "Scheduling Malleable Applications in Multicluster Systems", CLUSTER 2007.
"""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.malleable import Malleable, malleable_of
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling


class MalleableEasy(EasyBackfilling):
    """EASY backfilling in which malleable jobs shrink for the head of the queue, and grow when nobody waits.

    A job says in the field ``malleable`` from how many to how many hosts it can have, like
    ``{"min": 2, "max": 16}``. It starts with as many as it asks for. If the first job in the queue can start
    when running malleable jobs are smaller, the largest of them give up hosts one by one. When nobody waits,
    the smallest ones get the free hosts one by one. Only the built-in simulator can do this.
    """

    name = "malleable-easy"
    only_starts_jobs = False

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """Submission order."""
        return None, None

    def schedule(self, cluster: Cluster) -> None:
        """Make room for the head while that is possible, then do as EASY does; if nobody waits, grow."""
        queue = cluster.queue
        while queue and _make_room(cluster, queue.head):
            cluster.start(queue.head)
        super().schedule(cluster)
        if not queue:
            _grow(cluster)


def _make_room(cluster: Cluster, head: Job) -> bool:
    """Let malleable jobs shrink evenly until a job fits; whether it does."""
    if cluster.fits(head):
        return True
    running = _malleable(cluster)
    lacking = head.size - cluster.nb_free
    if not 0 < lacking <= sum(job.nb_hosts - malleable.least for job, malleable in running):
        return False
    _resize_evenly(cluster, [(job, malleable.least) for job, malleable in running], lacking, -1)
    return True


def _grow(cluster: Cluster) -> None:
    """Let malleable jobs grow evenly into the free hosts."""
    bounds = [(job, malleable.most) for job, malleable in _malleable(cluster)]
    _resize_evenly(cluster, bounds, cluster.nb_free, 1)


def _malleable(cluster: Cluster) -> list[tuple[RunningJob, Malleable]]:
    """The running jobs that may grow and shrink."""
    found = ((running, malleable_of(running.job)) for running in cluster.running)
    return [(running, malleable) for running, malleable in found if malleable is not None]


def _resize_evenly(cluster: Cluster, bounds: list[tuple[RunningJob, int]], count: int, step: int) -> None:
    """Give so many hosts one by one, each to the smallest job; with ``step`` -1, take each from the largest.

    No job goes beyond its bound. Of equal ones, the first is the job that was started first.
    """
    heap = [(step * job.nb_hosts, job.number, job, bound) for job, bound in bounds if job.nb_hosts != bound]
    heapify(heap)
    sizes: dict[int, tuple[RunningJob, int]] = {}
    for _ in range(count):
        if not heap:
            break
        place, number, job, bound = heap[0]
        size = step * (place + 1)
        sizes[number] = job, size
        if size == bound:
            heappop(heap)
        else:
            heapreplace(heap, (place + 1, number, job, bound))
    for job, size in sizes.values():
        cluster.resize(job.job, size)
