"""A job of Slurm as it is scheduled: what it asks of the machine, and its records while it waits and runs.

What it tells Slurm beside its resources stands in the field ``slurm`` of a job in a workload file. Its
resources are in the field ``request`` (:mod:`batsched_py.protocol.requests`), what it waits for in ``after``
and its array in ``array``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from operator import attrgetter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.protocol.dependencies import array_of
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import MOST, Amounts, Request
from batsched_py.slurm.policy.nodes import KIBIBYTES, Machine, Share, places
from batsched_py.slurm.policy.settings import Count, Partition

FIELD = "slurm"
"""The field of a job."""


class JobFields(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Options of ``sbatch``; names that are empty were not given.

    The partitions of a job are those of its request, and its user is its field ``user``.
    """

    account: str = ""
    qos: str = ""
    nice: Annotated[int, Meta(ge=-(1 << 31), le=1 << 31)] = 0
    priority: Count | None = None
    """A priority that was given; then none is computed. A job with 0 is held."""
    begin: Annotated[float, Meta(ge=0)] = 0.0
    """It may not start before, in seconds since its submission."""
    not_before: Annotated[float, Meta(ge=0)] = 0.0
    """The same of a job that waited when a log begins: it grows older all the time."""
    deadline: Annotated[float, Meta(ge=0)] | None = None
    """When its time limit must be over, in seconds since its submission; it is given up if that cannot be."""
    hold: bool = False
    """Held for ever, or until ``released``."""
    released: float | None = None
    """When a hold ends, in seconds since its submission."""
    cpus_per_task: Annotated[int, Meta(ge=1)] = 1
    """So many tasks of its request are a task for Slurm, which may be cut in two and put on two nodes."""
    cpus_of_core: Annotated[int, Meta(ge=1)] | None = None
    """It may use so many processors of a core, where a core has several."""
    tasks_of_core: Annotated[int, Meta(ge=1)] | None = None
    """So many of its tasks may share a core; those of the configuration if left out."""
    least_cpus: Annotated[int, Meta(ge=1)] | None = None
    """So many processors will do, if a range of nodes was asked for without a number of tasks."""
    all_memory: bool = False
    """Whether it asks for all the memory of its nodes, whatever a partition gives a job that does not say."""
    gpus: dict[str, Count] = {}
    """GPUs of the whole job, by name; Slurm decides how many of them each node gives."""
    het: str = ""
    """The heterogeneous job that it is a part of; all parts start together."""
    het_size: Count = 0
    """How many parts that has."""
    reservation: str = ""
    requeue: bool | None = None
    """Whether it may be put back into the queue; ``job_requeue`` of the configuration if left out."""
    time_limit: Annotated[float, Meta(ge=0)] | None = None
    """Of a job that runs out of time, in seconds; its walltime leaves the policy time to kill it."""
    no_time_limit: bool = False
    """Whether it did not say how long it runs; then its partition says."""
    time_min: Annotated[float, Meta(ge=0)] | None = None
    """``--time-min``: it may be given a lower time limit, if it starts earlier by that."""
    node_list: str = ""
    """Nodes that it must have, like ``n[1-2]``."""
    exclude: str = ""
    """Nodes that it must not have."""
    contiguous: bool = False
    switches: Count = 0
    """``--switches``: its nodes are to be behind so many leaf switches at most; 0 is any number."""
    switch_wait: Annotated[float, Meta(ge=0)] | None = None
    """So long it waits for that; ``max_switch_wait`` if left out."""
    spread: bool = False
    use_min_nodes: bool = False
    oversubscribe: bool = False
    exclusive_user: bool = False
    """Whether only jobs of the same user may be on its nodes."""
    runs: bool = False
    """Whether it runs already when a simulation begins: then no limit and no reservation keeps it off."""
    name: str = ""
    id: str = ""
    """What Slurm calls it, where that was recorded."""


NOTHING = JobFields()


def fields_of(job: Job) -> JobFields:
    """What a job tells Slurm; raises ``ValueError`` if that is not what it may tell."""
    given = job.extra.get(FIELD)
    if not given:
        return NOTHING
    try:
        return msgspec.convert(given, JobFields)
    except msgspec.ValidationError as error:
        raise ValueError(f"{FIELD}: {error}") from None


YEAR = 365 * 24 * 60
"""In minutes: how long a job is taken to run that has no time limit at all."""

GPU = "gpu"
"""What GPUs are called among the other resources."""


class PartitionRules(Struct, frozen=True):
    """What a partition of a machine makes of the jobs in it."""

    machine: Machine
    names: Sequence[str]
    """Those of the machine's resources beside processors and memory."""
    nodes: int
    """Those of the partition."""
    whole_nodes: bool = False
    consumes_memory: bool = False
    memory_per_cpu: int = 0
    """Of a job that does not say, in MB, as with the next one."""
    memory_per_node: int = 0
    most_memory_per_cpu: int = 0
    """A job that asks for more memory gets more processors; 0 is no limit."""
    most_cpus_of_node: int = 0
    one_task_per_core: bool = False
    least_loaded: bool = False


class Asked(Struct, frozen=True, gc=False):
    """Tasks with their processors and other resources, and which nodes will do."""

    number: int
    """What is asked for in the same way has the same number."""
    tasks: int
    cpus_per_task: int
    unit: int
    """Processors of a node are counted in multiples of this: a task, or 1 where tasks may be cut in two."""
    cpus: int
    """Of the whole job, at least."""
    least_nodes: int
    wanted_nodes: int
    """So many if they can be had: the upper end, where a range was asked for."""
    most_nodes: int
    nodes: int
    """The nodes that would do if nobody else used them."""
    partition: int
    """All nodes of its partition: when some of them come back, the backfill loop tries again."""
    required: int = 0
    """Nodes that it must have."""
    exclusive: bool = False
    memory_per_cpu: int = 0
    memory_per_node: int = 0
    """All memory of its nodes if neither is asked for."""
    others: tuple[tuple[int, int, int], ...] = ()
    """Which other resource, how much of it on each node, and how much for each task."""
    capacities: tuple[int, ...] = ()
    """How many of its tasks each node of the machine could take if it were empty."""
    licences: Amounts = ()
    tasks_per_node: int = 0
    """So many on each of its nodes; 0 if it does not say."""
    least_cpus_of_node: int = 1
    """A node with fewer free processors is of no use."""
    cpus_of_node: int = 1
    """So many processors of each of its nodes are meant for it, however many nodes it gets."""
    most_cpus_of_node: int = 0
    """It may not have more of a node; 0 is no limit."""
    own_cores: bool = False
    """Whether each of its tasks has cores of its own."""
    cpus_of_core: int = MOST
    """It may use so many processors of a core."""
    charged_of_core: int = MOST
    """It gets memory for so many processors of a core, if it asks for memory by processors."""
    cpus_of_each: int = 1
    """So many processors for each that it runs on, because of its memory."""
    least_loaded: bool = False
    """Whether the least loaded nodes are taken first, and not those that follow one another."""
    contiguous: bool = False
    """Whether its nodes must follow one another."""
    most_switches: int = 0
    """Its nodes must be behind so many leaf switches at most; 0 is any number."""
    of_job: tuple[tuple[tuple[int, ...], int], ...] = ()
    """GPUs of the whole job: as which resources they count, the most special one first, and how many."""
    gpus: tuple[tuple[int, int], ...] = ()
    """Of a job with GPUs: their columns, and how many free ones of a node count at most."""

    def usable_cpus(self, free: int, threads: int) -> int:
        """How many of some free processors of a node it could use, if so many ``threads`` are a core."""
        cores, of_core = free // threads, min(threads, self.cpus_of_core)
        if not self.own_cores:
            return cores * of_core
        tasks, left = divmod(cores, -(-self.cpus_per_task // of_core))
        return tasks * self.cpus_per_task + left * of_core

    def held_cpus(self, used: int, threads: int) -> int:
        """How many processors are in the cores of so many processors that it uses."""
        of_core = min(threads, self.cpus_of_core)
        if not self.own_cores:
            return -(-used // of_core) * threads
        tasks, left = divmod(used, self.cpus_per_task)
        return (tasks * -(-self.cpus_per_task // of_core) + -(-left // of_core)) * threads


def _memory(request: Request, fields: JobFields, rules: PartitionRules) -> tuple[int, int, int, int]:
    """The memory of a request by processor and by node, or what the partition gives a job that does not say.

    It is in KiB. No processor may have all that memory if there is a limit. So there are so many processors
    for each that the job runs on, and it has so many of each node at least.
    """
    of_cpu = -(-dict(request.per_task).get("memory", 0) // request.cores)
    of_node = dict(request.per_node).get("memory", 0)
    if not (of_cpu or of_node or fields.all_memory):
        of_cpu, of_node = rules.memory_per_cpu * KIBIBYTES, rules.memory_per_node * KIBIBYTES
    most = rules.most_memory_per_cpu * KIBIBYTES
    if not most:
        return of_cpu, of_node, 1, 0
    of_each = max(-(-of_cpu // most), 1)
    return -(-of_cpu // of_each), of_node, of_each, -(-of_node // most)


def _resources(
    request: Request, fields: JobFields, tasks: int, names: Sequence[str], exclusive: bool
) -> dict[str, Any]:
    """The resources of a request beside processors and memory that the machine has."""
    per_node, per_task = dict(request.per_node), dict(request.per_task)
    others = (
        (column, per_node.get(name, 0), per_task.get(name, 0))
        for column, name in enumerate(names)
        if name in per_node or name in per_task
    )
    of_job = (
        (tuple(names.index(each) for each in dict.fromkeys((name, GPU))), fields.gpus[name])
        for name in _told_apart(fields.gpus)
        if name in names
    )
    useful = fields.gpus | {name: count * tasks for name, count in per_task.items()} | per_node
    gpus = (
        (names.index(name), MOST if exclusive else useful[name])
        for name in _told_apart(useful)
        if name in names
    )
    return {"others": tuple(others), "of_job": tuple(of_job), "gpus": tuple(gpus)}


def _of_core(fields: JobFields, rules: PartitionRules, cpus_per_task: int) -> dict[str, Any]:
    """How a request may use a core."""
    own_cores = rules.one_task_per_core if fields.tasks_of_core is None else fields.tasks_of_core == 1
    tasks_of_core, of_core = 1 if own_cores else fields.tasks_of_core or MOST, fields.cpus_of_core or MOST
    return {
        "own_cores": own_cores,
        "cpus_of_core": min(of_core, tasks_of_core * cpus_per_task),
        "charged_of_core": of_core,
    }


def asked_of(
    number: int, request: Request, fields: JobFields, nodes: int, rules: PartitionRules, required: int = 0
) -> Asked:
    """What a request means in a partition, of whose nodes some have what it names."""
    memory_per_cpu, memory_per_node, cpus_of_each, least_for_memory = _memory(request, fields, rules)
    tasks = request.tasks // fields.cpus_per_task
    cores = request.cores * fields.cpus_per_task * cpus_of_each
    exclusive = rules.whole_nodes or request.exclusive
    more = _resources(request, fields, tasks, rules.names, exclusive)
    is_counted_by_tasks = bool(more["others"] or more["of_job"])
    of_each = request.tasks_per_node if request.tasks_per_node <= request.tasks else 0
    least_of_node = cores * (of_each or (tasks if request.most_nodes == 1 else 1))
    least = max(request.least_nodes, -(-tasks // request.tasks_per_node))
    by_task = more["of_job"] or any(per_task for _, _, per_task in more["others"])
    least_cpus = tasks * cores if fields.least_cpus is None else fields.least_cpus
    asked = Asked(
        number=number,
        tasks=tasks,
        cpus_per_task=cores,
        unit=cores if fields.cpus_per_task == 1 or memory_per_cpu or is_counted_by_tasks else 1,
        cpus=max(least_cpus, least * least_for_memory),
        least_nodes=least,
        wanted_nodes=least if request.most_nodes == MOST or by_task else max(request.most_nodes, least),
        most_nodes=request.most_nodes,
        nodes=nodes if all(name in rules.names for name in fields.gpus) else 0,
        partition=rules.nodes,
        required=required,
        exclusive=exclusive,
        memory_per_cpu=memory_per_cpu,
        memory_per_node=memory_per_node,
        licences=request.licences,
        tasks_per_node=of_each,
        least_cpus_of_node=max(least_of_node, least_for_memory),
        cpus_of_node=max(cores * (of_each if of_each and tasks > 1 else 1), least_for_memory),
        cpus_of_each=cpus_of_each,
        least_loaded=rules.least_loaded,
        contiguous=fields.contiguous,
        **_of_core(fields, rules, cores),
        **more,
    )
    return _placed(asked, rules, request.tasks_per_node)


def _placed(asked: Asked, rules: PartitionRules, most_tasks: int) -> Asked:
    """The same on a machine: which of its nodes would do, and how many of its tasks each could take."""
    machine, takes_all_memory = rules.machine, asked.exclusive and rules.consumes_memory
    usable, capacities = 0, [0] * len(machine.nodes)
    of_cpu, of_node, of_task = asked.memory_per_cpu, asked.memory_per_node, asked.cpus_per_task
    for place in places(asked.nodes & machine.up):
        node = machine.nodes[place]
        cpus = asked.usable_cpus(node.cpus, node.threads)
        needed = of_node + of_cpu * (node.cpus if takes_all_memory else asked.least_cpus_of_node)
        if (
            cpus >= asked.least_cpus_of_node
            and node.memory >= needed
            and all(node.others[column] >= of_all + each for column, of_all, each in asked.others)
            and all(node.others[columns[0]] for columns, _ in asked.of_job)
        ):
            usable |= 1 << place
            most = min(cpus // of_task, most_tasks)
            if of_cpu:
                most = min(most, (node.memory - of_node) // (of_cpu * of_task))
            for column, of_all, each in asked.others:
                if each:
                    most = min(most, (node.others[column] - of_all) // each)
            capacities[place] = max(most, 1)
    is_counted_by_tasks = asked.others or asked.of_job
    is_spread = asked.least_nodes == asked.most_nodes == asked.tasks
    is_fixed = asked.tasks_per_node or asked.most_nodes == 1 or is_spread or asked.tasks == 1
    # it may not have more of a node than the partition allows, or than counts if tasks are counted
    most_cpus = asked.least_cpus_of_node if is_counted_by_tasks and is_fixed else MOST
    most_cpus = min(rules.most_cpus_of_node or MOST, most_cpus) % MOST
    return replace(asked, nodes=usable, capacities=tuple(capacities), most_cpus_of_node=most_cpus)


def _told_apart(names: Iterable[str]) -> list[str]:
    """By which of some names GPUs are told apart: by those of types, if there are any.

    >>> _told_apart(["nvme", "gpu", "gpu:a100"]), _told_apart(["gpu"])
    (['gpu:a100'], ['gpu'])
    """
    gpus = [name for name in names if name.partition(":")[0] == GPU]
    return [name for name in gpus if name != GPU] or gpus


def minutes(time_limit: float, most: float) -> int:
    """A time limit in whole minutes, as Slurm keeps it, under the most that a partition allows."""
    limit = min(time_limit, most)
    return YEAR if limit == inf else max(ceil(limit / 60), 1)


#: Where a job stands in the queue; the lowest comes first.
Rank = tuple[int, bool, int, int, float, int]

rank_of = attrgetter("rank")
"""That of a record."""


class PartitionRecord(Struct, frozen=True):
    """A partition with its nodes."""

    settings: Partition
    nodes: int
    number: int
    name: str
    bit: int
    """Itself in a set of partitions."""


@dataclass(slots=True, eq=False)
class WaitingRecord:
    """A job that waits, in one of its partitions."""

    job: Job
    number: int
    """Its place in the order of submission."""
    fields: JobFields
    partition: PartitionRecord
    asked: Asked
    limit: int
    """Its time limit in minutes."""
    least_limit: int
    """By ``--time-min``: with so many minutes the backfill loop plans it, and starts it."""
    eligible: float
    """Since when it may start, as far as that depends on its submitter."""
    cpus: int = 0
    """What it asks for, or what it would get by the last plan: that counts as its size."""
    array: str = ""
    """The array that it is a task of, if any."""
    nb_partitions: int = 1
    """In how many partitions it waits."""
    is_magnetic: bool = False
    """Whether it is only for a reservation that the job has not asked for."""
    reserves: bool = True
    """Whether nodes may be kept for it; not with the flag ``NoReserve`` of its QOS."""
    submitted: int = 0
    aged: float = 0.0
    """Since when it grows older."""
    makes_way_as: str | None = None
    """Its partition or QOS, as far as it makes way for others; what nobody has asked for is not known."""
    relaxed: Asked | None = None
    """What it asks for when it has waited long enough for nodes behind few switches."""
    patient_until: float = inf
    """When that is so."""
    latest_start: float = inf
    """After this second it is given up, because it could not end before its deadline."""
    parts: tuple[int, tuple[float, ...]] = (-1, ())
    """The parts of its priority but for its age, and for how many processors they were computed."""
    priority: int = 0
    turn: int = 0
    """Those whose QOS may preempt others come before them."""
    rank: Rank = (0, False, 0, 0, 0.0, 0)

    def __post_init__(self) -> None:
        array, submission_time, deadline = array_of(self.job), self.job.submission_time, self.fields.deadline
        self.array = "" if array is None else array.name
        self.cpus, self.submitted, self.aged = self.asked.cpus, int(submission_time), self.eligible
        if self.fields.not_before:
            self.eligible = max(self.eligible, int(round(submission_time + self.fields.not_before, 3)))
        if deadline is not None:
            self.latest_start = int(round(submission_time + deadline, 3)) - self.least_limit * 60
        self.give_priority(0)

    @property
    def is_special(self) -> bool:
        """Whether more than nodes decides on its start: its submitter, licences, or other records."""
        return bool(
            self.eligible > self.submitted
            or self.asked.licences
            or self.array
            or self.nb_partitions > 1
            or self.latest_start < inf
            or self.relaxed is not None
            or self.fields.het
        )

    def give_priority(self, priority: int) -> None:
        """Let it have this priority in its partition."""
        self.priority = priority
        tier, names_none = self.partition.settings.priority_tier, not self.fields.reservation
        self.rank = (self.turn, names_none, -tier, -priority, self.job.submission_time, self.number)

    def go_back(self, before: WaitingRecord, eligible: float) -> None:
        """Be in the queue again as before, with the same place and priority, but wait until a time."""
        self.number, self.eligible, self.aged = before.number, eligible, eligible
        self.give_priority(before.priority)


@dataclass(slots=True, eq=False)
class RunningRecord:
    """A job that runs."""

    waiting: WaitingRecord
    share: Share
    start: int
    end: int
    """When its time limit is over."""
    ended: float = inf
    """When it has ended."""
    taken: dict[int, int] = field(default_factory=dict)
    """Its processors on each of its nodes, as bits."""
