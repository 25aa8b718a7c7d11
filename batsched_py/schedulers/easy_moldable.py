"""EASY backfilling of moldable jobs.

A moldable job can run on several numbers of hosts, and the scheduler chooses one when it starts the job: D.
Feitelson and L. Rudolph, "Toward Convergence in Job Schedulers for Parallel Supercomputers", JSSPP 1996. How
to choose is the question of S. Srinivasan et al., "Effective Selection of Partition Sizes for Moldable
Scheduling of Parallel Jobs", HiPC 2002. Here it is the size with which the job is expected to end first.
"""

from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import SIZES, Shape, shapes_of
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling


class EasyMoldable(EasyBackfilling):
    """EASY backfilling that chooses the size of jobs which give several, so that each ends early.

    A job gives its sizes in the field ``sizes``: the expected run time in seconds for each number of hosts,
    like ``{"2": 400, "4": 210, "8": 130}``. Its profile must be one that divides its work among its hosts
    (``parallel_homogeneous_total``); Batsim runs all others on as many hosts as ``res`` says. The walltime is
    the same for all sizes. Jobs without the field have the size that they ask for. On a machine of nodes, a
    size may have a request of its own: ``{"8": 130, "16": {"run_time": 80, "request": {"cores": 4}}}``.
    """

    name = "easy-moldable"
    reads_profiles = True
    chooses_sizes = True

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """Submission order."""
        return None, None

    def begin(self, cluster: Cluster) -> None:
        """Look whether the machine has nodes."""
        super().begin(cluster)
        self._has_nodes = bool(cluster.resources)

    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it would not end earlier by waiting, reserve for it, then backfill."""
        queue = cluster.queue
        if self._has_nodes and not any(SIZES in job.extra for job in queue):
            super().schedule(cluster)
            return
        while queue:
            chosen, start = self._ends_first(cluster, queue.head)
            hosts = None if start > cluster.now else cluster.hosts_beside(chosen.job, chosen.run_time)
            if hosts is None:
                self._backfill_beside(cluster, chosen)
                return
            _start(cluster, chosen, hosts)

    def _backfill_beside(self, cluster: Cluster, head: Shape) -> None:
        """Start each job that can have a size which does not delay the head, with the shortest run time."""
        reservation = cluster.reservation(head.job)
        if cluster.heeded:
            cluster.remark(
                head.job, f"heads the queue, to run on {head.job.size} hosts", reservation.shadow_time
            )
        for job in list(cluster.queue):
            if job.id == head.job.id:
                continue
            for choice in sorted(self._choices(cluster, job), key=lambda choice: choice.run_time):
                if (hosts := cluster.hosts_beside(choice.job, choice.run_time, reservation)) is not None:
                    reservation.admit(_start(cluster, choice, hosts))
                    break

    def _choices(self, cluster: Cluster, job: Job) -> list[Shape]:
        """The sizes that a job can have on this machine, the smallest first."""
        try:
            shapes = shapes_of(job)
        except ValueError as error:
            raise InputError(f"job {job.id}: {error}") from None
        possible = [shape for shape in shapes if cluster.could_fit(shape.job)]
        if not possible:
            return [Shape(job, cluster.queue.estimate(job))]
        return [replace(shape, run_time=min(shape.run_time, job.walltime)) for shape in possible]

    def _ends_first(self, cluster: Cluster, job: Job) -> tuple[Shape, float]:
        """The size with which a job is expected to end first, the smallest such, and when it can start."""
        choices = self._choices(cluster, job)
        starts = cluster.starts([(choice.job, choice.run_time) for choice in choices])
        start, chosen = min(zip(starts, choices, strict=True), key=lambda pair: pair[0] + pair[1].run_time)
        return chosen, start


def _start(cluster: Cluster, choice: Shape, hosts: HostSet) -> RunningJob:
    """Start a job with the size that was chosen."""
    asked = cluster.queue.get(choice.job.id)
    if asked is not None and asked.size != choice.job.size:
        cluster.expect(choice.job, choice.run_time)
    return cluster.start(choice.job, hosts)
