"""EASY backfilling.

D. Lifka, "The ANL/IBM SP Scheduling System", JSSPP 1995; A. Mu'alem and D. Feitelson, "Utilization,
Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling",
IEEE TPDS 12(6), 2001.

Where several jobs are expected to end at the shadow time, the extra hosts are those that are left over once
the head fits: running jobs are gone through in the order of their expected ends, those that end together in
the order of their starts, and no further than to the one that makes the head fit. The textbook counts all
that end then, and so backfills a little more: ``ends=all``. The tables that this package reproduces need the
former.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.base import Scheduler, in_library
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.predictions import Predictions


class EasyBackfilling(Scheduler):
    """What the variants of EASY have in common; they differ in their orders, and in what they expect."""

    only_starts_jobs = True
    backfill_order: Order | None
    predictions: Predictions | None = None
    """What tells how long jobs are expected to run, if not their walltimes."""

    @abstractmethod
    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """The order of the queue, if it is not submission order, and of backfilling, if it is another one."""

    def begin(self, cluster: Cluster) -> None:
        """Put the queue into its order."""
        queue_order, self.backfill_order = self.orders(cluster)
        if queue_order is not None:
            cluster.order_queue(queue_order)
        self._remarked: tuple[Job, float] | None = None

    @in_library("easy")
    def schedule(self, cluster: Cluster) -> None:
        """Start from the head while it fits, reserve for the head, then backfill."""
        if self.predictions is not None:
            self.predictions.correct()
        head = cluster.start_from_head()
        if head is not None:
            if cluster.heeded:
                self._remark_on(cluster, head)
            if len(cluster.queue) > 1:
                cluster.start_fitting(self.backfill_order, beside=cluster.reservation(head))
        if self.predictions is not None:
            self.predictions.call_at_next_expiry()

    def _remark_on(self, cluster: Cluster, head: Job) -> None:
        """Say which reservation the head has, when it has a new one."""
        shadow_time, extra = cluster.reservation(head)
        if self._remarked != (head, shadow_time):
            self._remarked = head, shadow_time
            cluster.remark(head, f"heads the queue, {extra} hosts are extra when it starts", shadow_time)


@dataclass
class Easy(EasyBackfilling):
    """EASY backfilling: later jobs may start early if they do not delay the first one in the queue."""

    name = "easy"

    order: Annotated[str, Meta(description="The order of the queue: a name or a formula.")] = "submission"
    backfill: Annotated[str, Meta(description="The order in which jobs are tried for backfilling.")] = (
        "submission"
    )
    ends: Annotated[
        Literal["needed", "all"],
        Meta(
            description="Which of the jobs that end at the shadow time count towards the extra hosts: as "
            "many as the head needs, or all, as in the textbook."
        ),
    ] = "needed"

    def __post_init__(self) -> None:
        if self.order == self.backfill == "submission":
            return
        from batsched_py.schedulers.orders import check_order

        check_order(self.order)
        check_order(self.backfill)

    def begin(self, cluster: Cluster) -> None:
        """Say which ends count, too."""
        super().begin(cluster)
        if self.ends == "all":
            cluster.count_all_ends()

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """Those that were asked for."""
        if self.order == self.backfill == "submission":
            return None, None
        from batsched_py.schedulers.orders import order

        return (
            None if self.order == "submission" else order(self.order, cluster),
            None if self.backfill == self.order else order(self.backfill, cluster),
        )
