"""All jobs of a queue that are known at a moment: those of a log, which are over, and those that were listed.

They tell who ran and waited at earlier moments, who might come next, and who has used how much.
"""

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from math import inf, log
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol.dependencies import AFTER, ARRAY
from batsched_py.protocol.hosts import expand
from batsched_py.slurm.conf import Cluster
from batsched_py.slurm.forecast.history import History, Kind
from batsched_py.slurm.forecast.live import limit_of, with_limit
from batsched_py.slurm.logged import LogMaker, LogSubmissions
from batsched_py.slurm.policy.fair_share import decay_of
from batsched_py.slurm.policy.settings import Association, Configuration
from batsched_py.slurm.reading import Clock
from batsched_py.slurm.sbatch import Submission
from batsched_py.slurm.scenario import words_of
from batsched_py.workload.model import CANCELLED_AFTER
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.swf.log import start_of
from batsched_py.workload.swf.workload import swf_to_workload

_NUMBER = re.compile(r"[0-9]+")


class LoggedJobs:
    """The jobs of a log of ``sacct`` that are over."""

    def __init__(self, path: Path, zone: str, cluster: Cluster) -> None:
        log = read_log(path, "sacct", {"zone": zone})
        log = log.select(log.requested_time > 0)
        if not (log.run_time > 0).any():
            raise InputError(f"{path}: no job of this log has a time limit and a run time")
        self._cluster, self.path = cluster, path
        if not cluster.configuration.selection.memory:
            log = dataclasses.replace(log, requested_memory=np.full(len(log), -1.0))
        self.log = log
        words = words_of(cluster.machine)
        self.maker = LogMaker(cluster.configuration, words, Clock(None))
        self._submissions = LogSubmissions(log, cluster.configuration, cluster.machine, words, Counter(), 0.0)
        workload = swf_to_workload(
            log, walltime="requested", words=words, cancelled="withdraw", processors="requested"
        )
        rows = {number: row for row, number in enumerate(log.job_number.tolist())}
        self._logged = {rows[int(job.name)]: job for job in workload.jobs}
        self._made: dict[int, Submission | None] = {}
        self.submit = log.submit + (start_of(log) or 0)
        self.start = np.where(log.never_started, inf, self.submit + np.maximum(log.wait, 0.0))
        self.end = self.submit + np.maximum(log.wait, 0.0) + log.run_time
        ids = log.more["id"].tolist()
        counts = Counter(ids)
        self.names = [name if counts[name] == 1 else f"{name}~{row}" for row, name in enumerate(ids)]
        self.accounts = log.more.get("account", np.full(len(log), "")).tolist()
        self.users: list[str] = names_of(log, "user").tolist()
        self.titles: list[str] = names_of(log, "executable").tolist()

    def __len__(self) -> int:
        """How many there are."""
        return len(self.log)

    def job(self, row: int) -> Submission | None:
        """The job, as if it waited; none if this cluster knows no such job."""
        if row not in self._made:
            logged = self._logged.get(row)
            self._made[row] = (
                None if logged is None else self._as_waiting(row, self._submissions.of(logged, row))
            )
        return self._made[row]

    def _as_waiting(self, row: int, asked: Submission) -> Submission | None:
        fields = {key: value for key, value in asked.fields.items() if key not in ("begin", "hold", "runs")}
        left_out = (AFTER, ARRAY, CANCELLED_AFTER)
        extra = {key: value for key, value in asked.extra.items() if key not in left_out}
        name = self.names[row]
        job = replace(asked, id=name, name=name, begin="", at=0.0, fields=fields, extra=extra, is_logged=True)
        made = self.maker.made(replace(job, fields=dict(fields), extra=dict(extra)))
        return None if isinstance(made, str) or not made else with_limit(job, self._cluster.configuration)

    def nodes_of(self, row: int) -> str:
        """The nodes that it ran on."""
        return str(self.log.more["hosts"][row]) if "hosts" in self.log.more else ""

    def delay(self, row: int) -> float:
        """How long after its submission it might start at the earliest."""
        eligible = self.log.more.get("eligible")
        return float(eligible[row]) if eligible is not None else 0.0


class QueueLog:
    """The jobs of a log, and those that are listed now; moments are in Unix time."""

    def __init__(self, logged: LoggedJobs, live: Sequence[Submission], now: float) -> None:
        self._logged, self.now = logged, now
        over = set(logged.names)
        self._live = [job for job in live if job.id not in over and job.eligible is not None]
        self._numbers: dict[tuple[str, str], int] = defaultdict(lambda: len(self._numbers))
        submit = np.concatenate([logged.submit, [min(job.eligible or now, now) for job in self._live]])
        start = [(job.started or now) if job.runs else inf for job in self._live]
        order = np.argsort(submit, kind="stable")
        log = logged.log
        kinds = [
            self._kind(*each)
            for each in zip(
                logged.users, logged.titles, log.requested_processors.tolist(), log.requested_time.tolist(),
                strict=True,
            )
        ] + [self.kind_of(job) for job in self._live]  # fmt: skip
        user, name, size, limit = (np.array(column)[order] for column in zip(*kinds, strict=True))
        self._rows: list[int] = order.tolist()
        self.history = History(
            submit=submit[order],
            start=np.concatenate([logged.start, start])[order],
            end=np.concatenate([logged.end, np.full(len(start), inf)])[order],
            limit=limit,
            size=size,
            user=user,
            name=name,
            ran=np.concatenate([log.run_time, np.zeros(len(start))])[order],
        )

    def _kind(self, user: str, name: str, size: int, limit: float) -> Kind:
        """Numbers in the names of jobs tell one from another that is alike."""
        return self._numbers["user", user], self._numbers["name", _NUMBER.sub("", name)], size, limit

    def kind_of(self, job: Submission) -> Kind:
        """What a job has in common with those that run as long."""
        size = (job.tasks or job.nodes[0] * (job.tasks_per_node or 1)) * job.cpus_per_task
        return self._kind(job.user, job.fields.get("name", ""), size, limit_of(job))

    def user(self, name: str) -> int:
        """The number of a user."""
        return self._numbers["user", name]

    def job(self, number: int) -> Submission | None:
        """A job of the history, as if it waited; none if this cluster knows no such job."""
        row = self._rows[number]
        if row < len(self._logged):
            return self._logged.job(row)
        live = self._live[row - len(self._logged)]
        return replace(live, state="waiting", fields={**live.fields, "node_list": ""}) if live.runs else live

    def at(self, moment: float) -> list[tuple[int, Submission]]:
        """The jobs that ran or waited at a moment, and their numbers; those that come first come first."""
        history = self.history
        found = []
        for number in np.flatnonzero((history.submit <= moment) & (history.end > moment)).tolist():
            job = self.job(number)
            if job is None:
                continue
            started, row = float(history.start[number]), self._rows[number]
            if started > moment:
                later = self._logged.delay(row) if row < len(self._logged) else 0.0
                eligible = float(history.submit[number]) + later
                found.append((number, replace(job, eligible=eligible, fields=dict(job.fields))))
                continue
            nodes = (
                self._logged.nodes_of(row)
                if row < len(self._logged)
                else self._live[row - len(self._logged)].fields.get("node_list", "")
            )
            count = len(expand(nodes))
            if count:
                fields = {**job.fields, "node_list": nodes, "priority": 1}
                found.append(
                    (
                        number,
                        replace(job, state="running", started=started, fields=fields, nodes=(count,) * 2),
                    )
                )
        return found

    def with_usage(self, configuration: Configuration, moment: float) -> Configuration:
        """The configuration with what users had used at a moment, as far as the log and the present tell.

        What is told of now and is not of jobs that are known is taken to be older than all of them.
        """
        decay = decay_of(configuration.priority)
        then, now = (self._used(each, decay) for each in (moment, self.now))
        told = any(each.usage for each in configuration.associations)
        grown = decay ** (moment - self.now)

        def used(each: Association) -> float:
            key = each.account, each.user
            older = max(each.usage - now.get(key, 0.0), 0.0) * grown if told else 0.0
            return older + then.get(key, 0.0)

        associations = tuple(
            replace(each, usage=used(each) if each.user else 0.0) for each in configuration.associations
        )
        return replace(configuration, associations=associations)

    @property
    def tells_accounts(self) -> bool:
        """Whether it tells which accounts have used the machine."""
        return any(self._logged.accounts)

    def _used(self, moment: float, decay: float) -> dict[tuple[str, str], float]:
        """The usage by accounts and users that is left at a moment, of known jobs."""
        history = self.history
        ran = np.flatnonzero(history.start < moment)
        begin, end = history.start[ran], np.minimum(history.end[ran], moment)
        rate = -log(decay) if decay < 1 else 0.0
        spans = (
            (np.exp(-rate * (moment - end)) - np.exp(-rate * (moment - begin))) / rate
            if rate
            else end - begin
        )
        found: dict[tuple[str, str], float] = defaultdict(float)
        for number, used in zip(ran.tolist(), (spans * history.size[ran]).tolist(), strict=True):
            row = self._rows[number]
            if row < len(self._logged):
                found[self._logged.accounts[row], self._logged.users[row]] += used
            else:
                job = self._live[row - len(self._logged)]
                found[job.fields.get("account", ""), job.user] += used
        return found
