"""Preemption: jobs that make way for others, and are cancelled or put back into the queue.

Jobs can be put back where users hand them in. Elsewhere no job makes way whose mode is ``requeue``.
"""

from __future__ import annotations

from batsched_py.schedulers.slurm.accounts import Accounts
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.nodes import Usage
from batsched_py.schedulers.slurm.records import RunningRecord, WaitingRecord
from batsched_py.schedulers.slurm.selection import Selector


class Preemption:
    """Says who makes way for whom."""

    def __init__(self, configuration: Configuration, accounts: Accounts, can_requeue: bool) -> None:
        self._settings = configuration.preemption
        self._requeues_jobs = configuration.scheduling.job_requeue
        self._accounts = accounts
        self._modes = {"cancel", "requeue"} if can_requeue else {"cancel"}

    def victims(
        self,
        record: WaitingRecord,
        nodes: int,
        usage: Usage,
        running: list[RunningRecord],
        selector: Selector,
        now: int,
    ) -> list[RunningRecord]:
        """The jobs that make way so that a job fits on some nodes; none if that does not help.

        They are taken away one after another, the least important first, until the job fits. Only those make
        way that are on its nodes then.
        """
        candidates = [
            each for each in running if each.share.nodes & nodes and self._yields(each, record, now)
        ]
        candidates.sort(key=self._importance)
        future, removed = usage.copy(), list[RunningRecord]()
        for each in candidates:
            future.give(each.share)
            removed.append(each)
            share = selector.select(record.asked, nodes, future)
            if share is not None:
                return [one for one in removed if one.share.nodes & share.nodes]
        return []

    def _yields(self, running: RunningRecord, record: WaitingRecord, now: int) -> bool:
        """Whether a running job makes way for a waiting one."""
        other, settings = running.waiting, self._settings
        if settings.type == "partition_prio":
            exempt = settings.exempt_time
            lower = other.partition.settings.priority_tier < record.partition.settings.priority_tier
        else:
            of_other, of_record = self._accounts.qos_of(other), self._accounts.qos_of(record)
            if of_other is None or of_record is None:
                return False
            exempt = (
                settings.exempt_time if of_other.preempt_exempt_time is None else of_other.preempt_exempt_time
            )
            lower = of_other.name in of_record.preempt
        return lower and self._mode(other) in self._modes and now - running.start >= exempt

    def _mode(self, record: WaitingRecord) -> str:
        """How a job makes way."""
        if self._settings.type == "partition_prio":
            return record.partition.settings.preempt_mode or self._settings.mode
        qos = self._accounts.qos_of(record)
        return self._settings.mode if qos is None else qos.preempt_mode or self._settings.mode

    def requeues(self, record: WaitingRecord) -> bool:
        """Whether a job that makes way is put back into the queue; it is cancelled if it may not be."""
        allowed = record.fields.requeue
        return self._mode(record) == "requeue" and (self._requeues_jobs if allowed is None else allowed)

    def _importance(self, running: RunningRecord) -> tuple[int, int]:
        """The least important jobs make way first; then the youngest or the oldest."""
        record = running.waiting
        qos = self._accounts.qos_of(record) if self._settings.type == "qos" else None
        importance = record.partition.settings.priority_tier if qos is None else qos.priority
        return importance, -running.start if self._settings.youngest_first else running.start
