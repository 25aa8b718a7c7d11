"""EASY backfilling of moldable jobs.

A moldable job can run on several numbers of hosts, and the scheduler chooses one when it starts the job: D.
Feitelson and L. Rudolph, "Toward Convergence in Job Schedulers for Parallel Supercomputers", JSSPP 1996. How
to choose is the question of S. Srinivasan et al., "Effective Selection of Partition Sizes for Moldable
Scheduling of Parallel Jobs", HiPC 2002. Here it is the size with which the job is expected to end first.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol.jobs import NODE_PROPERTIES, Job
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling

#: The run times that a job gives, by numbers of hosts.
_Sizes = dict[Annotated[int, Meta(ge=1)], Annotated[float, Meta(gt=0)]]


class Choice(Struct, frozen=True):
    """A size that a job can have, and how long it is expected to run with it."""

    job: Job
    """The job as if it asked for this size."""
    run_time: float


class EasyMoldable(EasyBackfilling):
    """EASY backfilling that chooses the size of jobs which give several, so that each ends early.

    A job gives its sizes in the field ``sizes``: the expected run time in seconds for each number of hosts,
    like ``{"2": 400, "4": 210, "8": 130}``. Its profile must be one that divides its work among its hosts
    (``parallel_homogeneous_total``); Batsim runs all others on as many hosts as ``res`` says. The walltime is
    the same for all sizes. Jobs without the field, and all on a machine of nodes, have the size that they ask
    for.
    """

    name = "easy-moldable"
    reads_profiles = True

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """Submission order."""
        return None, None

    def begin(self, cluster: Cluster) -> None:
        """Look whether the machine has nodes."""
        super().begin(cluster)
        self._has_nodes = any(
            name in host.properties for host in cluster.machines for name in NODE_PROPERTIES
        )

    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it would not end earlier by waiting, reserve for it, then backfill."""
        if self._has_nodes:
            super().schedule(cluster)
            return
        queue = cluster.queue
        while queue:
            chosen, start = _ends_first(cluster, queue.head)
            if start > cluster.now or not cluster.fits(chosen.job):
                self._backfill_beside(cluster, chosen)
                return
            _start(cluster, chosen)

    def _backfill_beside(self, cluster: Cluster, head: Choice) -> None:
        """Start each job that can have a size which does not delay the head, with the shortest run time."""
        reservation = cluster.reservation(head.job)
        if cluster.heeded:
            cluster.remark(
                head.job, f"heads the queue, to run on {head.job.size} hosts", reservation.shadow_time
            )
        for job in list(cluster.queue):
            if job.id == head.job.id:
                continue
            for choice in sorted(_choices(cluster, job), key=lambda choice: choice.run_time):
                if cluster.fits(choice.job) and reservation.allows(choice.job.size, choice.run_time):
                    reservation.admit(_start(cluster, choice))
                    break


def _choices(cluster: Cluster, job: Job) -> list[Choice]:
    """The sizes that a job can have on this machine, the smallest first."""
    given = job.extra.get("sizes")
    if given is None:
        return [Choice(job, cluster.queue.estimate(job))]
    try:
        sizes = msgspec.convert(dict(given), _Sizes, strict=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"job {job.id}: sizes: {error}") from None
    choices = [
        Choice(job if size == job.size else replace(job, size=size), min(run_time, job.walltime))
        for size, run_time in sorted(sizes.items())
        if size <= cluster.nb_hosts
    ]
    return choices or [Choice(job, cluster.queue.estimate(job))]


def _ends_first(cluster: Cluster, job: Job) -> tuple[Choice, float]:
    """The size with which a job is expected to end first, the smallest such, and when it can start."""
    profile = cluster.profile()
    starts = [
        (profile.earliest(choice.job.size, choice.run_time), choice) for choice in _choices(cluster, job)
    ]
    start, chosen = min(starts, key=lambda pair: pair[0] + pair[1].run_time)
    return chosen, start


def _start(cluster: Cluster, choice: Choice) -> RunningJob:
    """Start a job with the size that was chosen."""
    job, size = choice.job, choice.job.size
    asked = cluster.queue.get(job.id)
    if asked is None or asked.size == size:
        return cluster.start(job)
    cluster.expect(job, choice.run_time)
    selection = cluster._selection
    return cluster.start(
        job, cluster.free.lowest(size) if selection is None else selection(cluster.free, size)
    )
