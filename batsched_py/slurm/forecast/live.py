"""The jobs of a live cluster, as ``squeue`` or ``scontrol show job`` shows them.

A listing may not tell all. What is assumed instead is said once, under the name of the file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.requests import MOST
from batsched_py.protocol.shown import shown_name
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.findings import Findings, read_text
from batsched_py.slurm.policy.job import GPU
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.sbatch import Submission, gres
from batsched_py.workload.sources.slurm_fields import resources

State = Literal["running", "waiting"]

#: What Slurm calls the states that count here; a job in any other one is over.
STATES: dict[str, State] = {
    **dict.fromkeys(("PENDING", "REQUEUED", "REQUEUE_HOLD", "RESV_DEL_HOLD"), "waiting"),
    **dict.fromkeys("RUNNING CONFIGURING COMPLETING SUSPENDED RESIZING SIGNALING STOPPED".split(), "running"),
}

#: Those of jobs that are over.
OVER = frozenset(
    """BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED
    REVOKED SPECIAL_EXIT STAGE_OUT TIMEOUT""".split()
)

#: The state of a job that has ended and still has its nodes.
ENDING = "COMPLETING"

#: Why a job waits that will never start.
NEVER = "DependencyNeverSatisfied"
_GRES = "gres/"
_DIGITS = re.compile(r"[0-9]{1,18}")


class LiveJob(Submission, kw_only=True):
    """A job that waits or runs; moments are in Unix time.

    Its field ``node_list`` has the nodes that it runs on, or that it must have. One of ``priority`` 0 is
    held, or waits for ever.
    """

    id: str
    """What Slurm calls it: some tasks of an array have one, like ``12_[4-9%2]``."""
    state: State
    nodes: tuple[int, int | None]
    tasks: int
    started: float | None = None
    """Of a running job; of a waiting one, when Slurm plans to start it."""
    eligible: float | None = None

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return self.state == "running"

    @property
    def is_held(self) -> bool:
        """Whether it waits, and will not start."""
        return not (self.runs or self.fields["priority"])

    @property
    def node_names(self) -> list[str]:
        """The nodes that it runs on, or that it must have."""
        return expand(self.fields.get("node_list", ""))


class Live(Struct):
    """All jobs that wait or run, and the moment at which they were listed."""

    jobs: list[LiveJob]
    now: float | None
    """In Unix time; unknown if the listing does not tell."""
    columns: frozenset[str] | None = None
    """Those of a table; other listings tell all that counts."""


def read_live(path: Path, zone: str, findings: Findings, moment: float | None = None) -> Live:
    """The jobs that a file lists, which was printed at a moment unless it tells one itself."""
    from batsched_py.slurm.forecast.squeue_table import is_header, read_table

    text = read_text(path, findings)
    lines = text.splitlines()
    if text.lstrip().startswith("{"):
        from batsched_py.slurm.forecast.scontrol import read_squeue

        live = read_squeue(path, text, findings)
    elif any(map(is_header, lines[:2])):
        live = read_table(path, lines, zone, moment, findings)
    else:
        from batsched_py.slurm.forecast.scontrol import read_scontrol

        live = read_scontrol(path, text, zone, findings)
    if not live.jobs and not findings.mistakes:
        findings.mistake(str(path), "there is no job that waits or runs")
    twice = [name for name, count in Counter(job.id for job in live.jobs).items() if count > 1]
    if twice:
        findings.mistake(str(path), f"there are two jobs {shown_name(twice[0])}")
    for job in live.jobs:
        try:
            expand(job.fields.get("node_list", ""))
            expand(job.fields.get("exclude", ""))
        except ValueError as error:
            findings.mistake(job.where, f"job {shown_name(job.id)}: {error}")
    live.jobs.sort(key=_number)
    return live


def _number(job: LiveJob) -> int:
    """The number of a job; jobs that came before have lower ones."""
    digits = _DIGITS.match(job.id)
    return int(digits[0]) if digits else 0


def check_state(state: str, where: str, findings: Findings) -> State | None:
    """Whether a job runs or waits; none if it is over."""
    if state not in STATES and state not in OVER:
        findings.left_out(where, f"a job of the state {shown_name(state)} is taken to be over")
    return STATES.get(state)


def resources_asked(per: Mapping[str, str], total: str, nodes: int, tasks: int, runs: bool) -> dict[str, Any]:
    """The further resources of a job, such as GPUs, by node, by task and of the whole job.

    They are told ``per`` each of these, or else in all. A running job is taken to have as many on each of its
    nodes.
    """
    by = {unit: _further(gres(text)) for unit, text in per.items()}
    every = [
        by["node"],
        {name: -(-amount // nodes) for name, amount in by["job"].items()},
        {name: -(-amount * tasks // nodes) for name, amount in by["task"].items()},
    ]
    if not any(every):
        by["job"] = _total(total)
        every[1] = {name: -(-amount // nodes) for name, amount in by["job"].items()}
    if runs:
        return {"resources_per_node": every[0] | every[1] | every[2]}
    return {f"resources_per_{unit}": amounts for unit, amounts in by.items()}


def _total(text: str) -> dict[str, int]:
    """The further resources in ``cpu=8,gres/gpu=2,gres/gpu:a100=2``; those of a type are told twice."""
    amounts = {
        name.removeprefix(_GRES): int(amount)
        for name, amount in resources(text).items()
        if name.startswith(_GRES) and 0 < amount < MOST
    }
    plain = {name for name in amounts if ":" not in name}
    for name, amount in list(amounts.items()):
        if (kind := name.partition(":")[0]) not in plain:
            amounts[kind] = amounts.get(kind, 0) + amount
    return amounts


def _further(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if name not in ("cpu", "mem", "node", "billing")}


def completed(live: Live, path: Path, cluster: Cluster, findings: Findings) -> list[LiveJob]:
    """All jobs of a listing, with what it does not tell of them."""
    jobs = live.jobs
    if live.columns is not None:
        jobs = _of_table(live, live.columns, path, cluster, findings)
    return [with_limit(job, cluster.configuration) for job in jobs]


def with_limit(job: LiveJob, configuration: Configuration) -> LiveJob:
    """The job, with the time limit of its partition if it has none."""
    partition = next((each for each in configuration.partitions if each.name in job.partitions), None)
    if job.time is not None or partition is None:
        return job
    return replace(job, time=partition.default_time or partition.max_time)


def _of_table(
    live: Live, columns: frozenset[str], path: Path, cluster: Cluster, findings: Findings
) -> list[LiveJob]:
    configuration = cluster.configuration
    names = [partition.name for partition in configuration.partitions]
    jobs = [replace(job, partitions=_whole_names(job.partitions, names)) for job in live.jobs]

    def says_none(what: str, assumed: str, *told_by: str) -> bool:
        is_missing = columns.isdisjoint(told_by)
        if is_missing:
            findings.left_out(str(path), f"tells no {what}: {assumed}")
        return is_missing

    if says_none("processors", "jobs that wait are taken to need whole nodes", "CPUS", "TRES_ALLOC"):
        jobs = _with_whole_nodes(jobs)
    elif says_none("tasks", "each is taken to have one processor, on as many nodes as told", "TASKS"):
        jobs = [job if job.runs else replace(job, nodes=(job.nodes[0],) * 2) for job in jobs]
    if not any(job.runs for job in jobs):
        findings.left_out(str(path), "tells of no running job: all nodes are taken to be free")
    says_none("priorities", "jobs are taken in the order of the table", "PRIORITY")
    says_none("run times", "running jobs are taken to have just started", "TIME", "START_TIME")
    if any(GPU in kind.resources for kind in cluster.machine):
        says_none(
            "GPUs", "they are not counted", "TRES_PER_NODE", "TRES_PER_JOB", "TRES_PER_TASK", "TRES_ALLOC"
        )
    if configuration.selection.memory and says_none("memory", "it is not counted", "TRES_ALLOC"):
        jobs = [replace(job, memory_per_node=1) for job in jobs]
    if says_none("time limits", "those of partitions count", "TIME_LIMIT", "TIME_LEFT"):
        _check_limits(jobs, configuration, findings)
    return jobs


def _whole_names(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Names of partitions that may be cut.

    >>> _whole_names(["interacti", "batch"], ["batch", "interactive"])
    ('interactive', 'batch')
    """
    found = []
    for name in names:
        longer = [each for each in known if each.startswith(name)]
        found.append(longer[0] if name not in known and len(longer) == 1 else name)
    return tuple(found)


def _with_whole_nodes(jobs: Sequence[LiveJob]) -> list[LiveJob]:
    """Give jobs their nodes for themselves, unless they run on nodes of others."""
    running = Counter(node for job in jobs if job.runs for node in job.node_names)
    return [
        replace(job, exclusive=not job.runs or all(running[node] == 1 for node in job.node_names))
        for job in jobs
    ]


def _check_limits(jobs: Sequence[LiveJob], configuration: Configuration, findings: Findings) -> None:
    """Without time limits of jobs, their partitions must have some."""
    for job in jobs:
        if with_limit(job, configuration).time == inf:
            partition = shown_name(",".join(job.partitions))
            findings.mistake(
                job.where,
                f"job {shown_name(job.id)}: neither the table nor partition {partition} has a time limit; "
                "give what squeue -l prints",
            )
            return
