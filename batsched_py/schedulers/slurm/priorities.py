"""When priorities are computed, and from what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from math import inf

from batsched_py.schedulers.slurm.accounts import Accounts
from batsched_py.schedulers.slurm.asked import KIBIBYTES
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.fair_share import FairShare
from batsched_py.schedulers.slurm.nodes import Machine, places
from batsched_py.schedulers.slurm.priority import JobFacts, Scale, age_part, priority_of, weighted
from batsched_py.schedulers.slurm.records import PartitionRecord, RunningRecord, WaitingRecord

FIRST = 0xFFFF0000
"""The priority from which ``priority/basic`` counts down."""


class Priorities(ABC):
    """Gives jobs their priorities."""

    next_time: float = inf
    """When they are computed again."""

    @abstractmethod
    def enter(self, records: Sequence[WaitingRecord], now: float) -> None:
        """Give a job that is new its priority."""

    def advance(self, now: float, waiting: Sequence[WaitingRecord], running: Sequence[RunningRecord]) -> bool:
        """Let time pass; whether priorities were computed again."""
        return False

    def ended(self, running: RunningRecord, now: float) -> None:
        """A job has ended."""
        return None


class Basic(Priorities):
    """``priority/basic``: each job gets a little less than the one before it."""

    def __init__(self) -> None:
        self._lowest = FIRST
        self._submissions: list[float] = [-inf]
        self._given: list[int] = [FIRST]
        """The lowest priority that was given by each submission."""

    def enter(self, records: Sequence[WaitingRecord], now: float) -> None:
        """Less than all jobs that were submitted before it, even if it joins the queue later."""
        first = records[0]
        submitted = first.job.submission_time
        if submitted < self._submissions[-1]:
            priority = self._given[bisect_right(self._submissions, submitted) - 1] - first.fields.nice
        else:
            self._lowest -= 1
            priority = self._lowest - first.fields.nice
            self._submissions.append(submitted)
            self._given.append(self._lowest)
        for record in records:
            record.give_priority(first.fields.priority if first.fields.priority else priority)


class Multifactor(Priorities):
    """``priority/multifactor``: computed at submission, and again once in a while."""

    def __init__(
        self,
        configuration: Configuration,
        machine: Machine,
        partitions: Sequence[PartitionRecord],
        accounts: Accounts,
        others: Sequence[str],
    ) -> None:
        self._settings = configuration.priority
        self._machine = machine
        self._accounts = accounts
        self._others = [f"gres/{name}" for name in others]
        self._scale = Scale(
            nodes=len(machine.nodes),
            cpus=sum(machine.cpus),
            partition_factor=max(each.settings.priority_job_factor for each in partitions),
            qos_priority=max((each.priority for each in configuration.qos), default=0),
            assoc_priority=max((each.priority for each in configuration.associations), default=0),
        )
        self._partition_tres = [self._tres_of(each.nodes) for each in partitions]
        self._fair_share = FairShare(self._settings, configuration.associations)
        self._last = 0.0
        self._period = self._settings.calc_period
        self._counts_usage = bool(self._settings.weight_fairshare)
        self._accrues_always = "accrue_always" in self._settings.flags
        self.next_time = self._period

    def _tres_of(self, nodes: int) -> dict[str, float]:
        """What nodes have together."""
        machine, members = self._machine, list(places(nodes))
        found = {
            "cpu": float(sum(machine.cpus[node] for node in members)),
            "mem": sum(machine.memory[node] for node in members) / KIBIBYTES,
            "node": float(len(members)),
        }
        found["billing"] = found["cpu"]
        for name, column in zip(self._others, machine.others, strict=True):
            found[name] = float(sum(column[node] for node in members))
        return found

    def enter(self, records: Sequence[WaitingRecord], now: float) -> None:
        """Compute the priority of a job in each of its partitions."""
        for record in records:
            record.give_priority(self._priority(record, int(now)))

    def _priority(self, record: WaitingRecord, now: int) -> int:
        """What it was given, or what is computed: if no usage counts, only age and size make a difference."""
        if record.fields.priority:
            return record.fields.priority
        size, rest = record.parts
        if size != record.cpus or self._counts_usage:
            rest = weighted(self._settings, self._facts(record), self._scale).rest
            record.parts = record.cpus, rest
        age = now - (record.submitted if self._accrues_always else record.eligible)
        return priority_of(age_part(self._settings, age), rest)

    def _facts(self, record: WaitingRecord) -> JobFacts:
        """What counts of a job beside its age."""
        fields, asked, accounts = record.fields, record.asked, self._accounts
        branch = None
        if self._counts_usage:
            branch = self._fair_share.find(
                accounts.account_of(record), record.job.user or "", record.partition.name
            )
        qos = accounts.qos_of(record)
        return JobFacts(
            nodes=asked.least_nodes,
            cpus=record.cpus,
            limit=record.limit,
            nice=fields.nice,
            fair_share=0.0 if branch is None else branch.factor,
            partition_factor=record.partition.settings.priority_job_factor,
            qos_priority=0 if qos is None else qos.priority,
            assoc_priority=0 if branch is None else branch.settings.priority,
            tres=self._asked_tres(record) if self._settings.weight_tres else {},
            partition_tres=self._partition_tres[record.partition.number],
        )

    def _asked_tres(self, record: WaitingRecord) -> dict[str, float]:
        asked = record.asked
        memory = asked.memory_per_cpu * asked.cpus + asked.memory_per_node * asked.least_nodes
        found = {
            "cpu": float(asked.cpus),
            "mem": memory / KIBIBYTES,
            "node": float(asked.least_nodes),
            "billing": float(asked.cpus),
        }
        for column, of_node, of_task in asked.others:
            found[self._others[column]] = float(of_node * asked.least_nodes + of_task * asked.tasks)
        for columns, amount in asked.of_job:
            for column in columns:
                found[self._others[column]] = found.get(self._others[column], 0.0) + amount
        return found

    # --- time ------------------------------------------------------------------------------------

    def advance(self, now: float, waiting: Sequence[WaitingRecord], running: Sequence[RunningRecord]) -> bool:
        """Go through all times until now at which Slurm computes.

        The fair tree counts the usage until then, the classic factors that until the time before.
        """
        if self.next_time > now:
            return False
        while self.next_time <= now:
            if self._counts_usage:
                if not self._settings.fair_tree:
                    self._fair_share.compute()
                self._fair_share.pass_time(self.next_time - self._last)
                for each in running:
                    self._bill(each, self.next_time)
            self._last = self.next_time
            self.next_time += self._period
        if self._counts_usage and self._settings.fair_tree:
            self._fair_share.compute()
        incr_only, last = "incr_only" in self._settings.flags, int(self._last)
        for record in waiting:
            priority = self._priority(record, last)
            if priority != record.priority and not (incr_only and priority < record.priority):
                record.give_priority(priority)
        return True

    def ended(self, running: RunningRecord, now: float) -> None:
        """Count the rest of its usage."""
        if self._counts_usage:
            self._bill(running, int(now))

    def _bill(self, running: RunningRecord, until: float) -> None:
        """Count the usage of a job since the last time."""
        record, accounts = running.waiting, self._accounts
        branch = self._fair_share.find(
            accounts.account_of(record), record.job.user or "", record.partition.name
        )
        seconds = until - max(self._last, running.start)
        if branch is not None and seconds > 0:
            qos = accounts.qos_of(record)
            factor = 1.0 if qos is None else qos.usage_factor
            self._fair_share.add_usage(branch, accounts.billed(running) * factor, seconds)


def priorities_of(
    configuration: Configuration,
    machine: Machine,
    partitions: Sequence[PartitionRecord],
    accounts: Accounts,
    others: Sequence[str],
) -> Priorities:
    """Those that a configuration asks for."""
    if configuration.priority.type == "basic":
        return Basic()
    return Multifactor(configuration, machine, partitions, accounts, others)
