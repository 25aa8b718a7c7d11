"""Which priorities the jobs of a queue will have, of which a listing tells the present ones."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.forecast.advice import Entrance
from batsched_py.slurm.forecast.live import LiveJob
from batsched_py.slurm.forecast.queue_log import QueueLog
from batsched_py.slurm.reading import Findings

#: A job that has more or less than this beside what is computed was given its priority.
MOST_NICE = 1 << 31


def with_known_usage(cluster: Cluster, queue: QueueLog, findings: Findings) -> Cluster:
    """The cluster with what users have used; where nothing tells that, fair shares stay as they are."""
    configuration, priority = cluster.configuration, cluster.configuration.priority
    is_told = any(each.usage for each in configuration.associations)
    if is_told or priority.type != "multifactor" or not priority.weight_fairshare:
        return cluster
    if configuration.associations and queue.tells_accounts:
        findings.left_out("priorities", "no usage is told (--accounts, of sshare): that of the log counts")
        return Cluster(queue.with_usage(configuration, queue.now), cluster.machine, cluster.licences)
    findings.left_out("priorities", "fair shares stay as they are: no usage is told (--accounts, of sshare)")
    unchanging = replace(configuration, priority=replace(priority, weight_fairshare=0))
    return Cluster(unchanging, cluster.machine, cluster.licences)


def computed_again(cluster: Cluster, jobs: Iterable[LiveJob], now: float) -> list[LiveJob]:
    """The jobs with priorities that begin as they are told and are computed again as time passes.

    A job keeps what it has now more or less than the configuration gives it. Jobs that run have no priority
    to lose, and those that are held none to gain; by ``priority/basic`` all stay as they are.
    """
    if cluster.configuration.priority.type != "multifactor":
        return list(jobs)
    entrance = Entrance(cluster, now)
    return [job if job.runs or job.is_held else _growing(job, entrance) for job in jobs]


def _growing(job: LiveJob, entrance: Entrance) -> LiveJob:
    without_age, never = entrance.of(job)
    nice = job.fields.get("nice", 0) + without_age - job.fields["priority"]
    if never or abs(nice) > MOST_NICE:
        return job
    return replace(job, fields={**job.fields, "priority": None, "nice": nice})
