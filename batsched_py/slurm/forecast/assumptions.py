"""What is assumed of the jobs of a listing that does not tell all.

Each assumption is said once, under the name of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf
from pathlib import Path

from msgspec.structs import replace

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown_name
from batsched_py.schedulers.slurm.asked import GPU
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.slurm.conf.read import Cluster
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.live import Live, LiveJob


def completed(live: Live, path: Path, cluster: Cluster, findings: Findings) -> list[LiveJob]:
    """All jobs of a listing, with what it does not tell of them."""
    jobs = live.jobs
    if live.columns is not None:
        jobs = _of_table(live, live.columns, path, cluster, findings)
    return [with_limit(job, cluster.configuration) for job in jobs]


def with_limit(job: LiveJob, configuration: Configuration) -> LiveJob:
    """The job, with the time limit of its partition if it has none."""
    partition = next((each for each in configuration.partitions if each.name in job.partitions), None)
    if job.time_limit is not None or partition is None:
        return job
    return replace(job, time_limit=partition.default_time or partition.max_time)


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
        jobs = [replace(job, most_nodes=job.nodes) if job.state == "waiting" else job for job in jobs]
    if not any(job.state == "running" for job in jobs):
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
    running = Counter(node for job in jobs if job.state == "running" for node in expand(job.node_list))
    return [
        replace(
            job,
            exclusive=job.state == "waiting" or all(running[node] == 1 for node in expand(job.node_list)),
        )
        for job in jobs
    ]


def _check_limits(jobs: Sequence[LiveJob], configuration: Configuration, findings: Findings) -> None:
    """Without time limits of jobs, their partitions must have some."""
    for job in jobs:
        if with_limit(job, configuration).time_limit == inf:
            partition = shown_name(",".join(job.partitions))
            findings.mistake(
                job.where,
                f"job {shown_name(job.id)}: neither the table nor partition {partition} has a time limit; "
                "give what squeue -l prints",
            )
            return
