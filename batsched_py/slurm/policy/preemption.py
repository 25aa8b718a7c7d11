"""Preemption: jobs that make way for others, and are cancelled or put back into the queue.

Jobs can be put back where users hand them in. Elsewhere no job makes way whose mode is ``requeue``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord
from batsched_py.slurm.policy.limits import Accounts
from batsched_py.slurm.policy.nodes import Share, Usage
from batsched_py.slurm.policy.selection import Selector
from batsched_py.slurm.policy.settings import Configuration, Partition, Qos


class Preemption:
    """Says who makes way for whom."""

    def __init__(
        self,
        configuration: Configuration,
        accounts: Accounts,
        selector: Selector,
        nb_nodes: int,
        can_requeue: bool,
    ) -> None:
        self._settings = configuration.preemption
        self._by_partition = self._settings.type == "partition_prio"
        self._selector = selector
        self._nb_nodes = nb_nodes
        self._patience = configuration.scheduling.kill_wait + configuration.scheduling.message_timeout
        self._made_way: dict[str, int] = {}
        """When jobs last had to make way for a job."""
        self._requeues_jobs = configuration.scheduling.job_requeue
        self._accounts = accounts
        self._modes = {"cancel", "requeue"} if can_requeue else {"cancel"}

    def candidates(
        self, record: WaitingRecord, running: Sequence[RunningRecord], now: int
    ) -> list[RunningRecord]:
        """The running jobs that may have to make way for a job, in the order in which they are tried."""
        found = [
            each
            for each in running
            if each.share.nodes & record.partition.nodes and self._yields(each, record, now)
        ]
        return sorted(found, key=self._importance)

    def victims(
        self, record: WaitingRecord, nodes: int, usage: Usage, candidates: list[RunningRecord], now: int
    ) -> list[RunningRecord]:
        """The jobs that make way now so that a job fits on some nodes; none if that does not help.

        They are taken away one after another until the job fits. Then those come first that have more of the
        nodes that were found, so that fewer jobs have to go, and it is tried again; that is done
        ``preempt_reorder_count`` times and once more. A job that has just made others go waits for them.
        """
        order, tries = list(candidates), 0
        while True:
            found = self._until_it_fits(record, nodes, usage, order)
            if found is None:
                return []
            taken, share = found
            tries += 1
            if tries > self._settings.reorder_count + 1 or tries >= len(candidates):
                break
            last = taken[-1]
            if self._settings.strict_order:
                order.remove(last)
                order.insert(0, last)
                continue
            counts = {id(each): (each.share.nodes & share.nodes).bit_count() for each in taken[:-1]}
            counts[id(last)] = self._nb_nodes + 1
            order.sort(key=lambda each: -counts.get(id(each), 0))
        if now < self._made_way.get(record.job.id, -inf) + self._patience:
            return []
        self._made_way[record.job.id] = now
        return [each for each in taken if each.share.nodes & share.nodes]

    def _until_it_fits(
        self, record: WaitingRecord, nodes: int, usage: Usage, order: Sequence[RunningRecord]
    ) -> tuple[list[RunningRecord], Share] | None:
        """Which jobs have to be taken away until a job fits, and what it would get then."""
        future, taken = usage.copy(), list[RunningRecord]()
        for each in order:
            if each.share.nodes & nodes:
                future.give(each.share)
                taken.append(each)
                share = self._selector.select(record.asked, nodes, future)
                if share is not None:
                    return taken, share
        return None

    def _told_by(self, record: WaitingRecord) -> Partition | Qos | None:
        """What tells how a job makes way: its partition, or its QOS if it has any."""
        return record.partition.settings if self._by_partition else self._accounts.qos_of(record)

    def _yields(self, running: RunningRecord, record: WaitingRecord, now: int) -> bool:
        """Whether a running job makes way for a waiting one."""
        exempt, lower = self._settings.exempt_time, False
        of_other, of_record = self._told_by(running.waiting), self._told_by(record)
        if isinstance(of_other, Partition) and isinstance(of_record, Partition):
            lower = of_other.priority_tier < of_record.priority_tier
        elif isinstance(of_other, Qos) and isinstance(of_record, Qos):
            if of_other.preempt_exempt_time is not None:
                exempt = of_other.preempt_exempt_time
            lower = of_other.name in of_record.preempt
        return lower and self._mode(running.waiting) in self._modes and now - running.start >= exempt

    def _mode(self, record: WaitingRecord) -> str:
        """How a job makes way."""
        told = self._told_by(record)
        return (told.preempt_mode if told is not None else None) or self._settings.mode

    def grace_time(self, record: WaitingRecord) -> int:
        """How long a job goes on running that has to make way, in seconds."""
        told = self._told_by(record)
        return 0 if told is None else int(told.grace_time)

    def requeues(self, record: WaitingRecord) -> bool:
        """Whether a job that makes way is put back into the queue; it is cancelled if it may not be."""
        allowed = record.fields.requeue
        return self._mode(record) == "requeue" and (self._requeues_jobs if allowed is None else allowed)

    def _importance(self, running: RunningRecord) -> tuple[int, int, int]:
        """The least important jobs make way first, then those with the fewest nodes; or else the youngest."""
        record = running.waiting
        if self._settings.youngest_first:
            return -running.start, 0, record.number
        qos = self._accounts.qos_of(record) if self._settings.type == "qos" else None
        importance = record.partition.settings.priority_tier if qos is None else qos.priority
        return importance, running.share.nodes.bit_count(), record.number
