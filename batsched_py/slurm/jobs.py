"""Jobs of a workload, made of what ``sbatch`` was asked for and of what the cluster adds to that.

A request says what Slurm cannot know before it chooses nodes in other words:

* *Tasks.* A task of ``-c 3`` needs a node with three free processors. But of ``-n 4 -c 3``, Slurm puts 8
  processors on a node that has 8 free, and the other 4 elsewhere: it cuts a task in two. It does so with
  ``CR_CPU`` and with ``CR_Core``. Tasks stay whole where memory is given out by processor, and where tasks
  are counted by node.
* *GPUs of a whole job*, as ``--gpus`` asks for them. Slurm takes nodes until they have enough GPUs, and how
  many each of them gives is not known before. So a request cannot tell, unless the job is on one node.
* *Time.* Slurm takes note of jobs that run out of time some time after their time limits.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from math import ceil, inf
from typing import Any

import msgspec

from batsched_py.protocol.dependencies import AFTER, ARRAY, read_dependency
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import parse_features, read_request
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.policy.job import FIELD, GPU, JobFields
from batsched_py.slurm.policy.settings import Configuration, Partition
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.slurm.sbatch import Submission
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.sources.slurm_fields import in_seconds
from batsched_py.workload.swf.conventions import profile_name

LONGER = 60.0
"""So much longer than its time limit a job may run at most, until Slurm takes note of that."""

NEARLY = 5.0
"""A job that ends so shortly before its time limit may reach it if it is launched late."""


def divided(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """A request of single cores if Slurm may cut its tasks, and what then has to be told the policy.

    >>> divided({"tasks": 4, "cores": 3})
    ({}, {'cpus_per_task': 3})
    >>> divided({"tasks": 4, "cores": 3, "per_core": {"memory": 100}})[1]
    {}
    """
    made, cores = dict(request), request.get("cores", 1)
    if (
        cores == 1
        or request.get("tasks", 1) == 1
        or "memory" in request.get("per_core", ())
        or request.get("tasks_per_node")
        or request.get("per_task")
    ):
        return made, {}
    del made["cores"], made["tasks"]
    return made, {"cpus_per_task": cores}


def settle_gpus(asked: Submission) -> None:
    """Let a submission tell all without GPUs of the whole job beside others, and without shares of a GPU."""
    _settle_counts(asked)
    _settle_shares(asked)


def _settle_counts(asked: Submission) -> None:
    """Beside GPUs of each node or task, those of the whole job tell how many nodes or tasks there are."""
    total = asked.resources_per_job.get(GPU, 0)
    if not total:
        return
    if of_node := asked.resources_per_node.get(GPU):
        nodes = max(total // of_node, 1)
        asked.nodes = nodes, nodes
    elif of_task := asked.resources_per_task.get(GPU):
        asked.tasks = asked.tasks or max(total // of_task, 1)
    else:
        return
    asked.resources_per_job = {}


def _settle_shares(asked: Submission) -> None:
    """Processors and memory of each GPU become those of tasks and nodes, as if GPUs were spread evenly."""
    cpus, memory = asked.cpus_per_gpu, asked.memory_per_gpu
    asked.cpus_per_gpu, asked.memory_per_gpu = cpus and 0, memory and 0  # what was told needs no default
    least, _ = asked.nodes
    tasks = asked.tasks or least * (asked.tasks_per_node or 1)
    of_node = asked.resources_per_node.get(GPU, 0)
    gpus = max(
        asked.resources_per_job.get(GPU, 0), of_node * least, asked.resources_per_task.get(GPU, 0) * tasks
    )
    asked.cpus_per_task = max(asked.cpus_per_task, -(-gpus * (cpus or 0) // tasks))
    if memory and (of_node or (gpus and tasks == 1)):
        asked.memory_per_node = (of_node or gpus) * memory
    elif memory and gpus:
        asked.memory_per_cpu = -(-gpus * memory // (tasks * asked.cpus_per_task))


def without_shared_gpus(request: Mapping[str, Any], tasks: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request without GPUs of the whole job, and what then has to be told the policy.

    >>> without_shared_gpus({"per_job": {"gpu": 4}}, 8)
    ({}, {'gpus': {'gpu': 4}})
    >>> without_shared_gpus({"per_job": {"gpu": 4}, "nodes": 1}, 8)
    ({'nodes': 1, 'per_node': {'gpu': 4}}, {})
    """
    made = dict(request)
    gpus = made.pop("per_job", None)
    if not gpus:
        return made, {}
    if tasks == 1 or made.get("nodes") == 1:
        return made | {"per_node": {**made.get("per_node", {}), **gpus}}, {}
    return made, {"gpus": gpus}


WORKLOAD = "w0"
"""The name of every workload that is made here."""

#: The kind of dependency in which a task of an array waits for the same task of another.
_TASK_BY_TASK = "aftercorr:"

_ARRAY = re.compile(r"([0-9,:-]+)(?:%([1-9][0-9]{0,8}))?")
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?(?::([1-9][0-9]{0,8}))?")
_COUNT_OF_NODES = re.compile(r"\*[0-9]+")
_MOST_TASKS = 1_000_000


class JobMaker:
    """Makes jobs for a cluster of what was submitted, whatever file tells of that."""

    def __init__(
        self, configuration: Configuration, words: NodeWords, clock: Clock, findings: Findings
    ) -> None:
        self._configuration = configuration
        self._partitions = {partition.name: partition for partition in configuration.partitions}
        self._words = words
        self._clock = clock
        self._findings = findings
        self._known = {"reservation": {each.name for each in configuration.reservations}}
        """Names that jobs may use; without a listing of QOS or accounts, all of these."""
        if configuration.qos:
            self._known["qos"] = {each.name for each in configuration.qos}
        if configuration.associations:
            self._known["account"] = {each.account for each in configuration.associations}
        self._arrays: set[str] = set()
        """The submissions until now that were arrays."""

    def jobs(self, asked: Submission) -> Iterator[Job]:
        """The job of a submission, or the tasks of its array; none if something is wrong with it."""
        with self._findings.noting(asked.where):
            yield from self._made(asked)

    def _made(self, asked: Submission) -> list[Job]:
        partition = self._partition(asked)
        self._give_gpu_defaults(asked, partition)
        settle_gpus(asked)
        tasks, request = self._request(asked, partition)
        size = tasks * asked.cpus_per_task
        request, of_gpus = without_shared_gpus(request, tasks)
        request, of_tasks = divided(request)
        read_request(size, request)
        extra = asked.extra | {"request": request}
        if asked.user:
            extra["user"] = asked.user
        if "executable" not in extra and (name := asked.fields.get("name")):
            extra["name"] = name
        fields = self._fields(asked, of_tasks | of_gpus)
        walltime = self._time_limit(asked, partition)
        if asked.run_time > walltime - NEARLY:
            fields["time_limit"] = walltime
            over = partition.over_time_limit
            walltime += LONGER + (self._configuration.scheduling.over_time_limit if over is None else over)
        if fields:
            extra[FIELD] = fields
        names, limit = task_names(asked.name, asked.array)
        if asked.array:
            self._arrays.add(asked.name)
            extra[ARRAY] = asked.name + (f"%{limit}" if limit else "")
        after = self._after(asked.dependency, asked.where)
        profile = profile_name(asked.run_time)
        made = []
        for name in names:
            more = extra | {AFTER: _of_task(after, name, self._arrays)} if after else extra
            made.append(Job(f"{WORKLOAD}!{name}", asked.at, size, walltime, profile, more))
        return made

    def _give_gpu_defaults(self, asked: Submission, partition: Partition) -> None:
        """Let a job with GPUs have the processors and the memory of each that the cluster gives it."""
        gpus = asked.resources_per_node, asked.resources_per_job, asked.resources_per_task
        if not any(GPU in amounts for amounts in gpus):
            return
        usual = self._configuration.selection
        cpus, memory = partition.def_cpu_per_gpu, partition.def_mem_per_gpu
        if asked.cpus_per_gpu is None and not asked.tells_cpus:
            asked.cpus_per_gpu = (usual.def_cpu_per_gpu if cpus is None else cpus) or None
        if asked.memory_per_gpu is asked.memory_per_cpu is asked.memory_per_node is None:
            asked.memory_per_gpu = (usual.def_mem_per_gpu if memory is None else memory) or None
            if not self._gives_memory():
                asked.memory_per_gpu = None

    def _fields(self, asked: Submission, told: Mapping[str, Any]) -> dict[str, Any]:
        """What the policy is told beside the request."""
        fields = {**asked.fields, **told}
        if _has_open_range(asked):
            fields["least_cpus"] = asked.cpus_per_task
        for name, moment in (("begin", asked.begin), ("deadline", asked.deadline)):
            if moment:
                fields[name] = max(round(self._clock.moment(moment, asked.at) - asked.at, 3), 0.0)
        if asked.memory_per_node == 0 and self._gives_memory():
            fields["all_memory"] = True
        if asked.time is None:
            fields["no_time_limit"] = True
        for key in ("node_list", "exclude"):
            expand(fields.get(key, ""))
        return self._checked({key: value for key, value in fields.items() if value is not None}, asked.where)

    def _checked(self, given: dict[str, Any], where: str) -> dict[str, Any]:
        """The fields for Slurm, if they may be so."""
        for missing in self._missing(given):
            self._findings.left_out(where, missing)
        made: dict[str, Any] = msgspec.to_builtins(msgspec.convert(given, JobFields))
        return made

    def _missing(self, fields: Mapping[str, Any]) -> Iterator[str]:
        """What a job names that is not there."""
        for what, known in self._known.items():
            if fields.get(what) and not known.issuperset(fields[what].split(",")):
                yield f"{what} {shown(fields[what])} is not there"

    def _partition(self, asked: Submission) -> Partition:
        """The first partition of a job; that of jobs that name none is the default one."""
        for name in asked.partitions:
            if name not in self._partitions:
                raise ValueError(f"there is no partition {shown_name(name)}")
        if asked.partitions:
            return self._partitions[asked.partitions[0]]
        default = [partition for partition in self._partitions.values() if partition.default]
        if not default:
            raise ValueError("names no partition, and none is the default")
        asked.partitions = (default[-1].name,)
        return default[-1]

    def _request(self, asked: Submission, partition: Partition) -> tuple[int, dict[str, Any]]:
        """How many tasks there are, and the field ``request``."""
        least, most = asked.nodes
        linear = self._configuration.selection.type == "linear"
        tasks = asked.tasks or least * (asked.tasks_per_node or 1)
        if most is not None and _has_open_range(asked):
            tasks = most
        least = min(least, tasks)
        request: dict[str, Any] = {}
        if asked.cpus_per_task > 1:
            request |= {"tasks": tasks, "cores": asked.cpus_per_task}
        if most is not None:
            request["nodes"] = least if least == most or most > tasks == least else [least, max(most, least)]
        per_node = self._resources(asked.resources_per_node, asked.where)
        per_core, of_node = self._memory(asked, partition)
        if of_node:
            per_node["memory"] = of_node
        more = {
            "tasks_per_node": asked.tasks_per_node,
            "per_core": {"memory": per_core} if per_core else None,
            "per_node": per_node,
            "per_job": self._resources(asked.resources_per_job, asked.where),
            "per_task": self._resources(asked.resources_per_task, asked.where),
            "exclusive": asked.exclusive or linear or partition.over_subscribe == "exclusive",
            "features": self._features(asked.features, asked.where) if asked.features else "",
            "one_switch": asked.one_switch,
            "licences": asked.licences,
            "partitions": list(asked.partitions),
        }
        return tasks, request | {name: value for name, value in more.items() if value}

    def _time_limit(self, asked: Submission, partition: Partition) -> float:
        """In whole minutes, as Slurm has it."""
        limit = asked.time if asked.time else partition.default_time or partition.max_time
        return limit if limit == inf else ceil(limit / 60) * 60.0

    def _gives_memory(self) -> bool:
        return self._configuration.selection.memory and "memory" in self._words.resources

    def _memory(self, asked: Submission, partition: Partition) -> tuple[int, int]:
        """The memory of each core and of each node, in MB; a job without any gets all memory of its nodes."""
        selection = self._configuration.selection
        if not self._gives_memory():
            if asked.memory_per_cpu or asked.memory_per_node:
                what = "memory is not given out on this cluster, and not asked for"
                self._findings.left_out(asked.where, what)
            return 0, 0
        if asked.memory_per_cpu or asked.memory_per_node is not None:
            return asked.memory_per_cpu or 0, asked.memory_per_node or 0
        per_cpu, per_node = partition.def_mem_per_cpu, partition.def_mem_per_node
        per_cpu = selection.def_mem_per_cpu if per_cpu is None else per_cpu
        per_node = selection.def_mem_per_node if per_node is None else per_node
        return per_cpu, 0 if per_cpu else per_node

    def _resources(self, amounts: Mapping[str, int], where: str) -> dict[str, Any]:
        """What of some resources the machine has."""
        for name in amounts:
            if name not in self._words.resources:
                self._findings.left_out(where, f"the machine has no {shown_name(name)}; not asked for")
        return {name: amount for name, amount in amounts.items() if name in self._words.resources}

    def _features(self, text: str, where: str) -> str:
        """What nodes must have, without how many of them must."""
        plain = _COUNT_OF_NODES.sub("", text).replace("[", "(").replace("]", ")")
        if plain != text:
            self._findings.left_out(where, f"all nodes must have {plain}, not {text}")
        parse_features(plain)
        return plain

    def _after(self, text: str, where: str) -> str:
        """What a job waits for, without what is not simulated."""
        if "," in text and "?" in text:
            raise ValueError(f"--dependency: {shown(text)} has both , (all of them) and ? (any of them)")
        kept = []
        for part in map(in_seconds, filter(None, re.split("[,?]", text))):
            try:
                read_dependency(part.replace(_TASK_BY_TASK, "afterok:"))
                kept.append(part)
            except ValueError as error:
                if part.partition(":")[0] in ("afterburstbuffer", "expand"):
                    self._findings.left_out(where, f"--dependency={shown_name(part)} is not modelled")
                else:
                    raise ValueError(f"--dependency: {error}") from None
        return ("?" if "?" in text else ",").join(kept)


def _of_task(after: str, name: str, arrays: Collection[str]) -> str:
    """What a task waits for, if its array waits task by task for others, of which some may be arrays.

    >>> _of_task("aftercorr:3:4,afterany:2", "7_5", {"3"}), _of_task("aftercorr:3", "7", {"3"})
    ('afterok:3_5:4,afterany:2', 'afterok:3')
    """
    _, _, task = name.partition("_")

    def of_task(match: re.Match[str]) -> str:
        targets = match[1].split(":")
        return "afterok:" + ":".join(
            f"{each}_{task}" if task and each in arrays else each for each in targets
        )

    return re.sub(_TASK_BY_TASK + r"([^:,?]+(?::[^:,?]+)*)", of_task, after)


def _has_open_range(asked: Submission) -> bool:
    """Whether a job asks for a range of nodes, and does not say how many tasks it has."""
    least, most = asked.nodes
    return most is not None and most > least and not (asked.tasks or asked.tasks_per_node)


def task_names(name: str, array: str) -> tuple[list[str], str]:
    """The names of the tasks of an array, and how many may run at once; without an array, the job alone.

    >>> task_names("7", "1-5:2%2")
    (['7_1', '7_3', '7_5'], '2')
    """
    if not array:
        return [name], ""
    match = _ARRAY.fullmatch(array)
    numbers: list[int] = []
    for part in match[1].split(",") if match else [""]:
        tasks = _TASKS.fullmatch(part)
        if tasks is None:
            raise ValueError(f"--array: {shown(array)} is not of the form 1-10, 1,3,5 or 0-20:5%2")
        found = range(int(tasks[1]), int(tasks[2] or tasks[1]) + 1, int(tasks[3] or 1))
        if len(found) + len(numbers) > _MOST_TASKS:
            raise ValueError(f"--array: {shown(array)} has too many tasks")
        numbers += found
    return [f"{name}_{number}" for number in numbers], (match[2] if match else None) or ""
