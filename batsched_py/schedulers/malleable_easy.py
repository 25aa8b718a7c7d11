"""EASY backfilling with malleable jobs, which grow and shrink while they run.

What a malleable job is: D. Feitelson and L. Rudolph, "Toward Convergence in Job Schedulers for Parallel
Supercomputers", JSSPP 1996. That waiting jobs have precedence over running ones, which grow and shrink
evenly: J. Buisson et al., "Scheduling Malleable Applications in Multicluster Systems", CLUSTER 2007.
"""

from heapq import heapify, heappop, heapreplace

from batsched_py.ledger.running import RunningJob
from batsched_py.ledger.trials import Resizing
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import malleable_of
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling


class MalleableEasy(EasyBackfilling):
    """EASY backfilling in which malleable jobs shrink for the head of the queue, and grow when nobody waits.

    A job says in the field ``malleable`` from how many to how many hosts it can have, like
    ``{"min": 2, "max": 16}``. It starts with as many as it asks for. If the first job in the queue can start
    when running malleable jobs are smaller, the largest of them give up hosts one by one. When nobody waits,
    the smallest ones get the free hosts one by one. On a machine of nodes these are whole tasks. Only the
    built-in simulator can do this.
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
    """Let the largest malleable jobs shrink, step by step, until a job fits; whether it does."""
    if cluster.fits(head):
        return True
    running = _malleable(cluster)
    if not running:
        return False
    resizing = cluster.resizing()
    if not resizing.could_fit(head, running):
        return False
    largest = [(-job.nb_hosts, job.number, job) for job in running]
    heapify(largest)
    while not resizing.fits(head):
        if not largest:
            return False
        _, number, job = largest[0]
        if resizing.shrink(job):
            heapreplace(largest, (-resizing.size(job), number, job))
        else:
            heappop(largest)
    _carry_out(cluster, resizing)
    return True


def _grow(cluster: Cluster) -> None:
    """Let the smallest malleable jobs grow, step by step, while there is room."""
    smallest = [(job.nb_hosts, job.number, job) for job in _malleable(cluster)]
    if not smallest:
        return
    heapify(smallest)
    resizing = cluster.resizing()
    while smallest:
        _, number, job = smallest[0]
        if resizing.grow(job):
            heapreplace(smallest, (resizing.size(job), number, job))
        else:
            heappop(smallest)
    _carry_out(cluster, resizing)


def _malleable(cluster: Cluster) -> list[RunningJob]:
    """The running jobs that may grow and shrink."""
    return [running for running in cluster.running if malleable_of(running.job) is not None]


def _carry_out(cluster: Cluster, resizing: Resizing) -> None:
    for job, hosts in resizing.changes():
        cluster.resize(job, hosts)
