"""The jobs of a live cluster, as ``squeue`` or ``scontrol show job`` shows them, and as a workload.

A listing may not tell all. What is assumed instead is said once, under the name of the file.

In the workload jobs that run come first: they have the highest priorities, and each may only be on the nodes
that it is on, which is told by a feature that each node has for itself.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.protocol.requests import MOST
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.jobs import WORKLOAD, JobMaker
from batsched_py.slurm.logged import LogMaker
from batsched_py.slurm.policy.job import GPU
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.slurm.sbatch import State, Submission, gres
from batsched_py.slurm.scenario import words_of
from batsched_py.workload.model import Workload
from batsched_py.workload.sources.slurm_fields import resources
from batsched_py.workload.swf.conventions import profile_name

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
_NOT_FURTHER = ("cpu", "mem", "node", "billing")


class Live(Struct):
    """All jobs that wait or run, and the moment at which they were listed."""

    jobs: list[Submission]
    now: float | None
    """In Unix time; unknown if the listing does not tell."""
    columns: frozenset[str] | None = None
    """Those of a table; other listings tell all that counts."""


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
    by = {
        unit: {name: amount for name, amount in gres(text).items() if name not in _NOT_FURTHER}
        for unit, text in per.items()
    }
    if not any(by.values()):
        by["job"] = _total(total)
    if not runs:
        return {f"resources_per_{unit}": amounts for unit, amounts in by.items()}
    of_job = {name: -(-amount // nodes) for name, amount in by["job"].items()}
    of_tasks = {name: -(-amount * tasks // nodes) for name, amount in by["task"].items()}
    return {"resources_per_node": by["node"] | of_job | of_tasks}


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


def completed(live: Live, path: Path, cluster: Cluster, findings: Findings) -> list[Submission]:
    """All jobs of a listing, with what it does not tell of them."""
    jobs = live.jobs
    if live.columns is not None:
        jobs = _of_table(jobs, live.columns, path, cluster, findings)
    return [with_limit(job, cluster.configuration) for job in jobs]


def with_limit(job: Submission, configuration: Configuration) -> Submission:
    """The job, with the time limit of its partition if it has none."""
    partition = next((each for each in configuration.partitions if each.name in job.partitions), None)
    if job.time is not None or partition is None:
        return job
    return replace(job, time=partition.default_time or partition.max_time)


def _of_table(
    jobs: list[Submission], columns: frozenset[str], path: Path, cluster: Cluster, findings: Findings
) -> list[Submission]:
    configuration = cluster.configuration
    names = [partition.name for partition in configuration.partitions]
    jobs = [replace(job, partitions=_whole_names(job.partitions, names)) for job in jobs]

    def says_none(what: str, assumed: str, *told_by: str) -> bool:
        is_missing = columns.isdisjoint(told_by)
        if is_missing:
            findings.left_out(str(path), f"tells no {what}: {assumed}")
        return is_missing

    if says_none("processors", "jobs that wait are taken to need whole nodes", "CPUS", "TRES_ALLOC"):
        jobs = _alone_on_nodes(jobs)
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


def _check_limits(jobs: Iterable[Submission], configuration: Configuration, findings: Findings) -> None:
    """Say it of the first job that has no time limit, not even that of its partition."""
    job = next((job for job in jobs if with_limit(job, configuration).time == inf), None)
    if job is not None:
        partition = shown_name(",".join(job.partitions))
        findings.mistake(
            job.where,
            f"job {shown_name(job.id)}: neither the table nor partition {partition} has a time limit; "
            "give what squeue -l prints",
        )


def _alone_on_nodes(jobs: Sequence[Submission]) -> list[Submission]:
    """The jobs, of which those that wait, and those that run beside no other, have whole nodes."""
    on_node = Counter(node for job in jobs if job.runs for node in job.node_names)
    alone = [not job.runs or all(on_node[node] == 1 for node in job.node_names) for job in jobs]
    return [replace(job, exclusive=is_alone) for job, is_alone in zip(jobs, alone, strict=True)]


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


#: How long a job without a time limit is taken to run.
FOR_EVER = 365 * 86400.0

#: Above every priority of Slurm.
FIRST = 1 << 33

#: Waiting jobs come so many seconds later, if some of them would be before the running ones otherwise.
AFTERWARDS = 2.0

_ENDS = ("afterok", "afternotok", "aftercorr")
_TARGET = re.compile(r"([0-9]+(?:_[0-9]+)?)(?:\+([0-9]{1,9}))?")
"""A job, and how many minutes must have passed since its start."""

#: The whole run time of a job that has run for so long.
RunTime = Callable[[Submission, float], float]


def pinned(kinds: Iterable[NodeKind]) -> list[NodeKind]:
    """The nodes, each with a feature of its own."""
    return [
        replace(
            kind,
            names=[name],
            switches=[kind.switches[place]] if kind.switches else (),
            features=[*kind.features, _feature(name)],
        )
        for kind in kinds
        for place, name in enumerate(kind.names)
    ]


def workload_of(
    jobs: Sequence[Submission],
    now: float,
    configuration: Configuration,
    machine: Sequence[NodeKind],
    run_time: RunTime,
    findings: Findings,
) -> Workload:
    """The jobs that run or may start, as a workload that begins at a moment; held ones are left out."""
    words = words_of(machine)
    maker = JobMaker(configuration, words, Clock(now), findings)
    of_log = LogMaker(configuration, words, Clock(now))
    known: set[str] = set()
    """The jobs so far, for a job can wait for earlier ones only."""
    stuck: set[str] = set()
    """Those of them that are held, or wait for one that is."""
    started: dict[str, float] = {}
    """How long those of them run that run."""
    namesakes: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    """The jobs of one user and name so far."""
    nodes = {name for kind in machine for name in kind.names}
    tiers = {partition.priority_tier for partition in configuration.partitions}
    afterwards = AFTERWARDS if len(tiers) > 1 else 0.0
    made: list[Job] = []
    profiles = {}
    for place, job in enumerate(jobs):
        if job.is_held or (not job.runs and _waits_for(job.dependency, stuck)):
            stuck.add(job.name)
            continue
        ran = 0.0
        if job.runs:
            ran = 0.0 if job.started is None else max(now - job.started, 0.0)
            started[job.id] = ran
            if unknown := [name for name in job.node_names if name not in nodes]:
                what = f"job {job.id} runs on {shown(unknown[0])}, which has no NodeName"
                findings.left_out(job.where, what)
        left = max(round(run_time(job, ran) - ran), 1)
        alike = namesakes[job.user, job.fields.get("name", "")]
        others = [each for each in alike if each != job.name] if "singleton" in job.dependency else []
        alike[job.name] = None
        submission = _from_now_on(job, now, ran, FIRST - place, afterwards)
        submission.run_time = left
        submission.dependency = _still_open(job.dependency, known, started, others)
        profiles[profile_name(left)] = Delay(seconds=left)
        found = made_of(submission, maker, of_log)
        known |= {job.name, *(each.name for each in found)}
        made += found
    return Workload(WORKLOAD, made, profiles, sum(len(kind.names) * kind.cores for kind in machine))


def made_of(job: Submission, maker: JobMaker, of_log: LogMaker) -> list[Job]:
    """The job, or the tasks of its array; none if a log tells of it, and the cluster knows no such job."""
    if not job.is_logged:
        return list(maker.jobs(job))
    made = of_log.made(job)
    return [] if isinstance(made, str) else made


def limit_of(job: Submission) -> float:
    """The time limit of a job; one without a limit runs for very long."""
    return FOR_EVER if job.time is None or job.time == inf else job.time


def _from_now_on(job: Submission, now: float, ran: float, first: int, afterwards: float) -> Submission:
    """What would have to be submitted now for the rest of a job that ran for a while already.

    One that waits begins so many seconds ``afterwards``.
    """
    least, most = job.nodes
    rest = replace(job, fields=dict(job.fields), time=max(limit_of(job) - ran, 60.0))
    rest.nodes = least, most or (least if job.runs or least > 1 else None)
    if job.runs:
        rest.fields |= {"priority": first, "runs": True}
        rest.fields.pop("node_list", None)
        rest.features = "|".join(map(_feature, job.node_names))
        if "request" in job.extra:
            request = {**job.extra["request"], "nodes": least, "features": rest.features}
            rest.extra = {**job.extra, "request": request}
    else:
        begin = max((job.eligible or now) - now, afterwards) - job.at
        if begin > 0:
            rest.fields["begin"] = begin
    return rest


def _waits_for(dependency: str, jobs: set[str]) -> bool:
    """Whether all of a dependency must be met, and it names one of some jobs."""
    targets = [target for target, _ in _TARGET.findall(dependency)]
    named = {*targets, *(target.partition("_")[0] for target in targets)}
    return "?" not in dependency and not jobs.isdisjoint(named)


def _still_open(dependency: str, known: set[str], ran: Mapping[str, float], alike: Iterable[str]) -> str:
    """A dependency without the jobs that are over; whether the others will succeed is not known.

    Some jobs ``ran`` for a while already: their starts are less far away. A singleton waits for all jobs
    ``alike`` that came before.
    """
    dependency = dependency.replace("singleton", ":".join(["afterany", *alike]))
    parts = []
    for part in re.split("[,?]", dependency):
        kind, *targets = part.replace("_*", "").split(":")
        still = []
        for target in targets:
            match = _TARGET.fullmatch(target)
            if match is not None and match[1] in known:
                delay = max(int(match[2] or 0) * 60 - ran.get(match[1], 0.0), 0.0)
                still.append(match[1] + (f"+{delay:.0f}s" if delay else ""))
        if still:
            parts.append(":".join(["afterany" if kind in _ENDS else kind, *still]))
    return ("?" if "?" in dependency else ",").join(parts)


def _feature(node: str) -> str:
    return f"node:{node}"
