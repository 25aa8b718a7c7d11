"""Priorities of jobs, as ``priority/multifactor`` computes them, and when they are computed.

Each factor lies between 0 and 1 and is multiplied with its weight; the sum, less the job's ``nice``, is cut
to a whole number. The functions of numbers alone can be held against what ``sprio`` prints.

Jobs come before those that they may preempt by QOS, whatever the priorities. Slurm compares two jobs at a
time, so with a QOS that has nothing to do with preemption its order may depend on chance. Here such a QOS has
the first turn.
"""

import logging
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, cast

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.ledger.queue import Waiting
from batsched_py.protocol.dependencies import array_of
from batsched_py.schedulers.formulas import USAGE, Formula
from batsched_py.slurm.policy.fair_share import Branch, FairShare, Resets
from batsched_py.slurm.policy.job import PartitionRecord, RunningRecord, WaitingRecord
from batsched_py.slurm.policy.limits import Accounts
from batsched_py.slurm.policy.nodes import KIBIBYTES, Machine
from batsched_py.slurm.policy.settings import Configuration, Priority

RUNS_ALREADY = -1_000_000
"""The turn of jobs that are to run from the beginning on: before any other."""


def turns_of(configuration: Configuration) -> Mapping[str | None, int]:
    """In which turn the jobs of each QOS come: before those of all QOS that it may preempt.

    A QOS that has nothing to do with preemption comes in the first turn.
    """
    has_turns = configuration.preemption.type == "qos" and configuration.preemption.mode != "off"
    preempts = {each.name: set(each.preempt) for each in configuration.qos if has_turns}
    below = dict.fromkeys(preempts, 0)
    for _ in preempts:  # a chain of them is no longer than that
        for name, others in preempts.items():
            below[name] = max([below[name], *(below[each] + 1 for each in others & below.keys() - {name})])
    most = max(below.values(), default=0)
    has_part = {name for name, others in preempts.items() if others}.union(*preempts.values())
    return defaultdict(lambda: -most, {name: -below[name] for name in has_part & below.keys()})


class AgesOfTasks:
    """Since when the tasks of arrays with a limit (``%2``) grow older.

    A task joins the queue when one before it has ended. Only if as many as may run did so until then, Slurm
    has held the rest of the array, and its age begins anew; otherwise it is as old as the first task.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def settle(self, records: Sequence[WaitingRecord], running: Sequence[RunningRecord]) -> None:
        """Give a job that joins the queue its age, if it is such a task."""
        array = array_of(records[0].job)
        if array is None or array.limit is None:
            return
        nb_running = sum(each.waiting.array == array.name for each in running)
        if array.name not in self._since or nb_running + 1 >= array.limit:
            self._since[array.name] = records[0].aged
        for record in records:
            record.aged = self._since[array.name]


_log = logging.getLogger(__name__)

HIGHEST = 0xFFFFFFFF
"""A priority has 32 bits."""


class JobFacts(Struct, frozen=True, kw_only=True):
    """What counts of a job, in one of its partitions."""

    age: float = 0.0
    """Seconds since it could have started, as far as its submitter is concerned."""
    nodes: int = 1
    """The least that it asks for."""
    cpus: int = 0
    """What it asks for, or would get by Slurm's latest plan."""
    limit: int = 1
    """Its time limit in minutes."""
    nice: int = 0
    fair_share: float = 0.0
    """Between 0 and 1."""
    partition_factor: int = 1
    """The ``PriorityJobFactor`` of its partition."""
    qos_priority: int = 0
    assoc_priority: int = 0
    tres: Mapping[str, float] = {}
    """How much of which resource it asks for."""
    partition_tres: Mapping[str, float] = {}
    """How much of it its partition has."""


class Scale(Struct, frozen=True, kw_only=True):
    """The largest values, by which factors are divided."""

    nodes: int
    cpus: int
    partition_factor: int = 1
    qos_priority: int = 0
    assoc_priority: int = 0


class Weighted(Struct, frozen=True, kw_only=True):
    """The parts of a priority, each multiplied with its weight, as ``sprio -l`` shows them."""

    age: float = 0.0
    assoc: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = {}
    nice: int = 0

    @property
    def rest(self) -> tuple[float, ...]:
        """All but the age, in the order in which they are added; those that are 0 are left out."""
        parts = (self.assoc, self.fair_share, self.job_size, self.partition, self.qos)
        return tuple(filter(None, (*parts, sum(self.tres.values()), -float(self.nice))))

    @property
    def priority(self) -> int:
        """The whole."""
        return priority_of(self.age, self.rest)


def priority_of(age: float, rest: Iterable[float]) -> int:
    """The whole of the parts of a priority; 0 is for jobs that are held."""
    total = age
    for part in rest:  # one after another, as Slurm adds them
        total += part
    return min(max(int(total), 1), HIGHEST)


def weighted(settings: Priority, job: JobFacts, scale: Scale) -> Weighted:
    """The parts of a job's priority."""

    def normal(of: str, value: float, largest: float) -> float:
        if f"no_normal_{of}" in settings.flags or "no_normal_all" in settings.flags:
            return float(value)
        return value / largest if largest else 0.0

    asked, has = job.tres, job.partition_tres
    return Weighted(
        age=age_part(settings, job.age),
        assoc=settings.weight_assoc * normal("assoc", job.assoc_priority, scale.assoc_priority),
        fair_share=settings.weight_fairshare * job.fair_share,
        job_size=settings.weight_job_size and settings.weight_job_size * size_factor(settings, job, scale),
        partition=settings.weight_partition * normal("part", job.partition_factor, scale.partition_factor),
        qos=settings.weight_qos * normal("qos", job.qos_priority, scale.qos_priority),
        tres={
            name: weight * normal("tres", asked.get(name, 0.0), has.get(name, 0.0))
            for name, weight in settings.weight_tres.items()
        },
        nice=job.nice,
    )


def age_part(settings: Priority, age: float) -> float:
    """The part of a priority that is for the age of a job, in seconds."""
    if age <= 0:
        return 0.0
    return settings.weight_age * (age / settings.max_age if age < settings.max_age else 1.0)


def size_factor(settings: Priority, job: JobFacts, scale: Scale) -> float:
    """How large a job is, in nodes and processors; or how small, if small jobs are favoured."""
    if "small_relative_to_time" in settings.flags:
        factor = max(job.nodes * scale.cpus / scale.nodes, float(job.cpus)) / job.limit / scale.cpus
        factor = 1.0 - factor if settings.favor_small else factor
    else:
        nodes = scale.nodes - job.nodes if settings.favor_small else job.nodes
        cpus = scale.cpus - job.cpus if settings.favor_small else job.cpus
        factor = nodes / scale.nodes
        if job.cpus:
            factor = (factor + cpus / scale.cpus) / 2
    return min(max(factor, 0.0), 1.0)


FIRST = 0xFFFF0000
"""The priority from which ``priority/basic`` counts down."""


class Priorities(ABC):
    """Gives jobs their priorities."""

    next_time: float = inf
    """When they are computed again."""

    @abstractmethod
    def enter(self, records: Sequence[WaitingRecord], now: float) -> None:
        """Give a job that is new its priority."""

    def count_from(self, started: float) -> None:
        """The controller was started so many seconds before time 0."""
        return None

    def advance(self, now: float, waiting: Sequence[WaitingRecord], running: Sequence[RunningRecord]) -> bool:
        """Let time pass; whether priorities were computed again."""
        return False

    def ended(self, running: RunningRecord, now: float) -> None:
        """A job has ended."""
        return None

    def parts(self, record: WaitingRecord) -> Mapping[str, float]:
        """What the priority of a job is made of, as far as that is more than its turn."""
        return {}


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
            record.give_priority(first.fields.priority or priority)


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
        self._accounts = accounts
        self._others = [f"gres/{name}" for name in others]
        self._scale = Scale(
            nodes=len(machine.nodes),
            cpus=sum(machine.cpus),
            partition_factor=max(each.settings.priority_job_factor for each in partitions),
            qos_priority=max((each.priority for each in configuration.qos), default=0),
            assoc_priority=max((each.priority for each in configuration.associations), default=0),
        )
        of_partitions = (machine.tres(each.nodes, self._others) for each in partitions)
        self._partition_tres = [tres | {"billing": tres["cpu"]} for tres in of_partitions]
        self._fair_share = FairShare(self._settings, configuration.associations)
        self._resets = Resets(configuration)
        if self._resets.is_due(0.0):
            self._fair_share.reset()
        self._last = 0.0
        self._period = self._settings.calc_period
        self._counts_usage = bool(self._settings.weight_fairshare)
        self._accrues_always = "accrue_always" in self._settings.flags
        self.next_time = self._period

    def count_from(self, started: float) -> None:
        """Priorities are computed when the controller starts, and in each period from then on."""
        if self._period < inf:
            self.next_time = self._period - started % self._period

    def enter(self, records: Sequence[WaitingRecord], now: float) -> None:
        """Compute the priority of a job in each of its partitions."""
        computed = self._computed(records, int(now))
        for record, priority in zip(records, computed, strict=True):
            record.give_priority(record.fields.priority or priority)

    def _computed(self, records: Sequence[WaitingRecord], now: int) -> Sequence[int]:
        """The priorities of jobs that were given none; if no usage counts, only age and size can change."""
        settings, accrues_always, computed = self._settings, self._accrues_always, []
        for record in records:
            size, rest = record.parts
            if size != record.cpus or self._counts_usage:
                rest = weighted(settings, self._facts(record), self._scale).rest
                record.parts = record.cpus, rest
            age = now - (record.submitted if accrues_always else record.aged)
            computed.append(priority_of(age_part(settings, age), rest))
        return computed

    def parts(self, record: WaitingRecord) -> Mapping[str, float]:
        """The parts of a priority that are not 0; none of one that was given."""
        if record.fields.priority:
            return {}
        since = record.submitted if self._accrues_always else record.aged
        found = weighted(self._settings, self._facts(record), self._scale)
        named = {
            "age": age_part(self._settings, int(self._last) - since),
            "association": found.assoc,
            "fair share": found.fair_share,
            "size": found.job_size,
            "partition": found.partition,
            "qos": found.qos,
            **found.tres,
            "nice": -float(found.nice),
        }
        return {name: part for name, part in named.items() if part}

    def _facts(self, record: WaitingRecord) -> JobFacts:
        """What counts of a job beside its age."""
        fields, asked, accounts = record.fields, record.asked, self._accounts
        branch = self._branch(record) if self._counts_usage else None
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

    def _branch(self, record: WaitingRecord) -> Branch | None:
        """Where the association of a job stands in the tree."""
        account = self._accounts.account_of(record)
        return self._fair_share.find(account, record.job.user or "", record.partition.name)

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
                if self._resets.is_due(self.next_time):
                    self._fair_share.reset()
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
        mine = [record for record in waiting if not record.fields.priority]
        for record, priority in zip(mine, self._computed(mine, last), strict=True):
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
        branch = self._branch(record)
        seconds = until - max(self._last, running.start)
        if branch is not None and seconds > 0:
            qos = accounts.qos_of(record)
            factor = 1.0 if qos is None else qos.usage_factor
            self._fair_share.add_usage(branch, accounts.billed(running) * factor, seconds)


class _Columns:
    """Waiting jobs as a formula looks at them."""

    def __init__(self, records: Sequence[WaitingRecord], usages: Sequence[float]) -> None:
        import numpy as np

        self.size = np.array([record.cpus for record in records])
        self.estimate = np.array([record.limit * 60.0 for record in records])
        self.submission = np.array([record.job.submission_time for record in records])
        self.usage = np.array(usages)

    def __len__(self) -> int:
        return len(self.size)


class ByFormula(Multifactor):
    """A priority that a formula gives instead of weights; when it is computed, and usage, are as there.

    The size of a job is in processors, and the usage that of its association, in seconds of billed resources.
    Slurm's priorities are whole numbers from 1 on, and so are these: a formula should have values that are
    large enough to tell jobs apart.
    """

    def __init__(self, configuration: Configuration, *others: Any) -> None:
        super().__init__(configuration, *others)
        text = configuration.priority.formula
        try:
            self._formula = Formula(text, lambda waiting, now: cast(_Columns, waiting).usage)
        except InputError as error:
            raise InputError(f"priority.formula: {error}") from None
        self._counts_usage = USAGE in self._formula.names
        if self._counts_usage and not any(each.user for each in configuration.associations):
            raise InputError("priority.formula: it names the usage of users, who have no associations")
        self._has_warned = False

    def _computed(self, records: Sequence[WaitingRecord], now: int) -> Sequence[int]:
        """All at once; what is not a number is the lowest."""
        import numpy as np

        if not records:
            return []
        branches = [self._branch(record) for record in records]
        usages = [0.0 if branch is None else branch.usage for branch in branches]
        values = self._formula.values(cast(Waiting, _Columns(records, usages)), now)
        if not self._has_warned and (values < 1).any():
            self._has_warned = True
            _log.warning(
                "priority.formula comes to %g for job %s: priorities are whole numbers from 1 on, so all "
                "that is less counts as 1; add a constant, or multiply",
                values.min(),
                records[int(values.argmin())].job.id,
            )
        priorities: list[int] = np.nan_to_num(values, nan=1.0).clip(1.0, HIGHEST).astype(np.int64).tolist()
        return priorities

    def parts(self, record: WaitingRecord) -> Mapping[str, float]:
        """The formula has none."""
        return {}
