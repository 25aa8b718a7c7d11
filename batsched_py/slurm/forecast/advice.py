"""A job that is not submitted yet, what a job might ask for instead, and which priorities jobs will have."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, inf

from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.simulator.machine_files import platform_of
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.forecast.live import made_of, with_limit
from batsched_py.slurm.forecast.queue_log import QueueLog
from batsched_py.slurm.jobs import JobMaker
from batsched_py.slurm.logged import LogMaker
from batsched_py.slurm.policy.priorities import FIRST, age_part
from batsched_py.slurm.policy.settings import ROOT, Configuration
from batsched_py.slurm.policy.setup import Setup
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.slurm.sbatch import Submission, read_options
from batsched_py.slurm.scenario import words_of
from batsched_py.workload.sources.accounting import written_duration

NEW = "new"
"""What a job is called that is not submitted yet."""

#: Time limits and numbers of nodes are divided by these.
PARTS = (2, 4)

#: A job begins so many hours later.
LATER = (6, 24)


class Entrance:
    """What Slurm would say to a job that is submitted now: its priority, or why it never starts."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self._configuration, self._now = cluster.configuration, now
        hosts = platform_of(cluster.machine, cluster.licences, "slurm.conf").as_protocol()[0]
        self._setup = Setup(cluster.configuration, hosts)
        self._priorities = self._setup.priorities()
        self._findings = Findings()
        words = words_of(cluster.machine)
        self._maker = JobMaker(cluster.configuration, words, Clock(now), self._findings)
        self._of_log = LogMaker(cluster.configuration, words, Clock(now))

    def of(self, job: Submission, aged: bool = False) -> tuple[int, str]:
        """The priority, without any age unless that counts, and why it can never start, if it cannot."""
        given = replace(job, fields={**job.fields, "priority": None, "node_list": ""}, dependency="")
        made = made_of(given, self._maker, self._of_log)
        self._findings.check()
        if not made:
            return 0, "BadConstraints"
        records, never = self._setup.records(made[0], 0.0)
        if not records:
            return 0, never.reason
        self._priorities.enter(records, 0.0)
        priority = max(record.priority for record in records)
        if aged and job.eligible is not None and self._configuration.priority.type == "multifactor":
            priority += int(age_part(self._configuration.priority, self._now - job.eligible))
        return priority, ""


def submitted(
    words: str, jobs: Sequence[Submission], cluster: Cluster, now: float, zone: str, findings: Findings
) -> Submission:
    """The job that a call of ``sbatch`` with these options would submit, with the priority it would get."""
    where = "--submit"
    with findings.noting(where):
        submission = read_options(shlex.split(words), where, findings)
        eligible = Clock(0.0, zone).moment(submission.begin, now) if submission.begin else None
    findings.check()
    configuration = cluster.configuration
    job = with_limit(replace(submission, id=NEW, name=NEW, begin="", eligible=eligible), configuration)
    if not job.partitions:
        job.partitions = tuple(each.name for each in configuration.partitions if each.default)[-1:]
        job = with_limit(job, configuration)
    priority, never = Entrance(cluster, now).of(job)
    if never:
        raise InputError(f"--submit: such a job never starts ({never})")
    if configuration.priority.type == "basic":
        lowest = min((each.fields["priority"] for each in jobs if not each.is_held), default=FIRST)
        priority = max(lowest - 1, 1)
    elif configuration.priority.weight_fairshare and not any(
        each.usage for each in configuration.associations
    ):
        findings.left_out(where, "no usage of accounts is told (sshare): its fair share is taken to be full")
    if job.fields.get("priority") is None:
        job.fields["priority"] = priority
    return job


def alternatives(job: Submission, cluster: Cluster, now: float) -> dict[str, Submission]:
    """What a job might ask for instead, by the option of ``sbatch``; what Slurm would refuse is left out."""
    configuration, entrance = cluster.configuration, Entrance(cluster, now)
    is_computed = configuration.priority.type == "multifactor" and job.fields["priority"]
    as_it_is, _ = entrance.of(job)
    found: dict[str, Submission] = {}
    for option, other in _others(job, configuration, now):
        priority, never = entrance.of(other)
        if never:
            continue
        if is_computed:
            other.fields["priority"] = max(job.fields["priority"] + priority - as_it_is, 1)
        found[option] = other
    return found


def _others(job: Submission, configuration: Configuration, now: float) -> Iterator[tuple[str, Submission]]:
    least, most = job.nodes
    limit = inf if job.time is None else job.time

    def instead(**changes: object) -> Submission:
        return replace(job, **{"fields": dict(job.fields), **changes})

    for part in PARTS:
        shorter = ceil(limit / part / 60) * 60.0 if limit < inf else inf
        if shorter < limit:
            yield f"--time={written_duration(shorter)}", instead(time=shorter)
    for part in PARTS:
        if least >= part:
            fewer = least // part
            upper = None if most is None else max(most // part, fewer)
            yield f"--nodes={fewer}", instead(nodes=(fewer, upper), tasks=job.tasks * fewer // least)
    for partition in configuration.partitions:
        if partition.name not in job.partitions:
            yield f"--partition={partition.name}", instead(partitions=(partition.name,))
    for qos in _qos_of(job, configuration):
        yield f"--qos={qos}", instead(fields={**job.fields, "qos": qos})
    first = max(job.eligible or now, now)
    for hours in LATER:
        yield f"--begin=now+{hours}hours", instead(eligible=first + hours * 3600.0)


def _qos_of(job: Submission, configuration: Configuration) -> list[str]:
    """The other QOS that a job may ask for; those that its association lists, if there are associations."""
    known = [each.name for each in configuration.qos if each.name != job.fields.get("qos", "normal")]
    if not configuration.associations:
        return known
    own = [each for each in configuration.associations if each.user == job.user and job.user]
    default = min(own, key=lambda each: not each.default_account, default=None)
    account = job.fields.get("account") or ("" if default is None else default.account)
    above = {each.account: each for each in configuration.associations if not each.user}
    listed = [each.qos for each in own if each.account == account and each.qos]
    while account in above and not listed:
        listed = list(filter(None, [above[account].qos]))
        account = "" if account == ROOT else above[account].parent
    return [name for name in known if listed and name in listed[0]]


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


def computed_again(cluster: Cluster, jobs: Iterable[Submission], now: float) -> list[Submission]:
    """The jobs with priorities that begin as they are told and are computed again as time passes.

    A job keeps what it has now more or less than the configuration gives it. Jobs that run have no priority
    to lose, and those that are held none to gain; by ``priority/basic`` all stay as they are.
    """
    if cluster.configuration.priority.type != "multifactor":
        return list(jobs)
    entrance = Entrance(cluster, now)
    return [job if job.runs or job.is_held else _growing(job, entrance) for job in jobs]


def _growing(job: Submission, entrance: Entrance) -> Submission:
    without_age, never = entrance.of(job)
    nice = job.fields.get("nice", 0) + without_age - job.fields["priority"]
    if never or abs(nice) > MOST_NICE:
        return job
    return replace(job, fields={**job.fields, "priority": None, "nice": nice})
