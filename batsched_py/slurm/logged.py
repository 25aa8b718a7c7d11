"""The jobs of a log of ``sacct``, as a cluster would have to be asked for them again.

What a job asked for stands in two places, and neither tells all. The columns tell how many processors, nodes,
GPUs and how much memory it came to, after all that the cluster added. The command in ``SubmitLine`` tells how
it was said: tasks, ``--exclusive``, memory of a processor or of a node, licences, several partitions. It does
not have the lines ``#SBATCH`` of a script. So the command counts where it tells all: if there is no script,
or if it comes to the sizes in the columns. Otherwise these count, and of the command what they cannot tell.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from batsched_py.protocol.dependencies import AFTER, ARRAY, array_of, read_dependency
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.shown import shown
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.beginning import NOT_BEFORE, RAN, from_the_beginning, look_cut
from batsched_py.slurm.jobs import JobMaker, settle_gpus
from batsched_py.slurm.policy.job import FIELD, GPU
from batsched_py.slurm.policy.settings import Configuration, Partition, Selection
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.slurm.reservations import AGAIN
from batsched_py.slurm.sbatch import ANY_NODES, Submission, licences, read_submit_line
from batsched_py.workload.batsim_json import RECORDED_FINISH
from batsched_py.workload.dependencies import rewritten
from batsched_py.workload.model import CANCELLED_AFTER, Workload
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.sources.sacct import STEP
from batsched_py.workload.swf.conventions import profile_name
from batsched_py.workload.swf.log import SwfLog, start_of
from batsched_py.workload.swf.workload import swf_to_workload

#: Columns of a log beside the format that are fields of a job.
_FIELDS = ("account", "qos", "reservation", "id")

#: What of a command counts even if the columns tell the sizes of a job.
_SAID_ONLY = ("licences", "exclusive", "one_switch", "begin", "deadline")


def read_slurm_log(
    path: Path, zone: str, since: str, findings: Findings
) -> tuple[SwfLog, Clock, frozenset[str]]:
    """A log, when it begins, and its jobs that were submitted before ``since``, if that is given."""
    log, early = read_log(path, "sacct", {"zone": zone}), frozenset[str]()
    start, first = start_of(log), float(log.submit.min())
    clock = Clock(None if start is None else start + first, zone)
    if since:
        log, early = from_the_beginning(log, since, zone, findings)
    elif count := look_cut(log):
        told = "waited though no job of the log had ended: does it begin with `sacct -S`? then give --since"
        findings.left_out(str(path), f"{told} ({count} x)")
    return log, clock, early


def with_users(configuration: Configuration, log: SwfLog) -> Configuration:
    """The configuration, in which reservations that name nobody are for those whose jobs were in them."""
    named = log.more.get("reservation")
    if named is None:
        return configuration
    users: dict[str, set[str]] = {}
    for name, user in zip(named.tolist(), names_of(log, "user").tolist(), strict=True):
        users.setdefault(name, set()).add(user)
    reservations = tuple(
        each
        if each.users or each.accounts
        else replace(each, users=tuple(sorted(users.get(each.name.partition(AGAIN)[0], ()))))
        for each in configuration.reservations
    )
    return replace(configuration, reservations=reservations)


def with_groups(configuration: Configuration, log: SwfLog) -> Configuration:
    """The configuration, in whose groups are those, too, whose jobs ran with such a group.

    A file of groups does not name those who have a group as their first one.
    """
    if not configuration.groups:
        return configuration
    groups = {name: set(users) for name, users in configuration.groups.items()}
    pairs = zip(names_of(log, "group").tolist(), names_of(log, "user").tolist(), strict=True)
    for name, user in set(pairs):
        if name in groups and user:
            groups[name].add(user)
    return replace(configuration, groups={name: tuple(sorted(users)) for name, users in groups.items()})


def jobs_of(
    log: SwfLog,
    configuration: Configuration,
    machine: Sequence[NodeKind],
    words: NodeWords,
    clock: Clock,
    findings: Findings,
) -> tuple[list[Job], Mapping[str, Profile]]:
    """The jobs of a log on a cluster, and what they do.

    A job that was cancelled while it waited is withdrawn after the same time. One without a time limit has
    that of its partition. One that was not eligible at once, without a known reason, has a time before which
    it may not begin. One that ran out of time runs until the policy kills it.
    """
    if not configuration.selection.memory:  # then a log has the memory of whole nodes, which nobody gave out
        log = dataclasses.replace(log, requested_memory=np.full(len(log), -1.0))
    workload = swf_to_workload(
        log, walltime="requested", words=words, cancelled="withdraw", processors="requested"
    )
    left_out = len(log) - len(workload.jobs)
    if left_out:
        findings.left_out(log.path, f"{left_out} of {len(log)} jobs never started, and are left out")
    for what, count in log.left_out.items():
        if what == STEP:
            findings.of_no_effect(log.path, f"{count} x {what}")
        else:
            findings.left_out(log.path, f"left out: {what} ({count} x)")
    for what, count in log.guessed.items():
        if not what.startswith("size of the machine"):
            findings.left_out(log.path, f"guessed: {what} ({count} x)")
    maker = LogMaker(configuration, words, clock)
    start = start_of(log)
    later = 0.0 if start is None or clock.start is None else start + float(log.submit.min()) - clock.start
    submissions = LogSubmissions(log, configuration, machine, words, maker.counted, later)
    jobs = list(_jobs(workload, submissions, maker, findings))
    known = workload.profiles
    longer = {job.profile: Delay(seconds=job.walltime) for job in jobs if job.profile not in known}
    for what, count in (maker.counted + _missing(log, configuration, words)).items():
        findings.left_out(log.path, f"{what} ({count} x)")
    return _waiting_for_earlier(jobs, log.path, findings), {**known, **longer}


def _missing(log: SwfLog, configuration: Configuration, words: NodeWords) -> Counter[str]:
    """The partitions and GPUs that jobs name and the cluster does not have, and how many jobs do."""
    found = Counter[str]()
    partitions = {partition.name for partition in configuration.partitions}
    for text, count in Counter(names_of(log, "partition").tolist()).items():
        if text and partitions.isdisjoint(text.split(",")):
            found[f"partition {shown(text)} is not there, its jobs go to the default one"] += count
    for text, count in Counter(log.more.get("gpu_type", np.empty(0)).tolist()).items():
        if text and f"gpu:{text}" not in words.resources:
            found[f"GPUs of the type {shown(text)} are not there"] += count
    return found


def _waiting_for_earlier(jobs: Iterable[Job], path: str, findings: Findings) -> list[Job]:
    """The jobs without waits for later ones and for themselves.

    Slurm numbers jobs from the beginning again at times, so a number may be that of another job. Of an
    array, the first limit counts.
    """
    jobs = list(jobs)
    last: dict[str, int] = {}
    arrays: dict[str, str] = {}
    for place, job in enumerate(jobs):
        last[job.name] = place
        if (array := array_of(job)) is not None:
            name, _, _ = job.extra[ARRAY].partition("%")
            last[name] = place
            if (first := arrays.setdefault(array.name, job.extra[ARRAY])) != job.extra[ARRAY]:
                jobs[place] = replace(job, extra={**job.extra, ARRAY: first})
    count = 0
    for place, job in enumerate(jobs):
        if after := job.extra.get(AFTER):
            targets = [end.target for end in read_dependency(after).ends]
            earlier = {target: target for target in targets if last.get(target, place) < place}
            kept = rewritten(after, earlier.get)
            if kept != after:
                count += 1
                extra = {key: value for key, value in job.extra.items() if key != AFTER}
                jobs[place] = replace(job, extra=extra | ({AFTER: kept} if kept else {}))
    if count:
        findings.left_out(path, f"left out: dependency on a job that was submitted later ({count} x)")
    return jobs


class LogMaker(JobMaker):
    """Makes the jobs of a log. What a job names that the cluster does not have is counted, and left out."""

    def __init__(self, configuration: Configuration, words: NodeWords, clock: Clock) -> None:
        self._of_jobs = Findings()
        super().__init__(configuration, words, clock, self._of_jobs)
        self.counted = Counter[str]()
        """What is not modelled, and how many jobs have it."""

    def made(self, asked: Submission) -> list[Job] | str:
        """The jobs of a submission, or what is wrong with it."""
        made = list(self.jobs(asked))
        wrong = [finding.what for finding in self._of_jobs.mistakes]
        if not wrong:
            self.counted.update(finding.what for finding in self._of_jobs.unmodelled)
        self._of_jobs.mistakes, self._of_jobs.unmodelled, self._of_jobs.without_effect = [], [], []
        return wrong[0] if wrong else made

    def _partition(self, asked: Submission) -> Partition:
        named = (self._partitions[name] for name in asked.partitions if name in self._partitions)
        return next(named, Partition(name=""))

    def _request(self, asked: Submission, partition: Partition) -> tuple[int, dict[str, Any]]:
        if "request" in asked.extra:
            return asked.tasks or 1, asked.extra["request"]
        return super()._request(asked, partition)

    def _features(self, text: str, where: str) -> str:
        plain = super()._features(text, where)
        if self._words.features.issuperset(re.findall(r"[A-Za-z0-9_.:+-]+", plain)):
            return plain
        self._findings.left_out(where, f"the machine has no {shown(plain)}; not asked for")
        return ""

    def _time_limit(self, asked: Submission, partition: Partition) -> float:
        return partition.default_time or partition.max_time if asked.time is None else asked.time

    def _checked(self, given: dict[str, Any], where: str) -> dict[str, Any]:
        self.counted.update(self._missing(given))
        known = self._known["reservation"]
        if known and given.get("reservation") not in known:  # it starts without, as if none were known
            given.pop("reservation", None)
        return given


def _jobs(
    workload: Workload, submissions: LogSubmissions, maker: LogMaker, findings: Findings
) -> Iterator[Job]:
    """The jobs of a log as a workload, with fields and requests for Slurm."""
    log = submissions.log
    rows = {number: row for row, number in enumerate(log.job_number.tolist())}
    assert workload.finishes is not None
    for logged, finish in zip(workload.jobs, workload.finishes, strict=True):
        row = rows[int(logged.name)]
        made = maker.made(submissions.of(logged, row))
        if isinstance(made, str):
            maker.counted[f"a command is not understood: {made}"] += 1
            made = maker.made(submissions.of_columns(logged, row))
        if isinstance(made, str):
            findings.mistake(log.path, f"job {submissions.id_of(row)}: {made}")
            continue
        for job in made:
            is_late = "time_limit" in job.extra[FIELD] and log.more["state"][row] == "TIMEOUT"
            profile = profile_name(job.walltime) if is_late else logged.profile
            finished = float(finish) + submissions.later
            yield replace(job, profile=profile, extra=job.extra | {RECORDED_FINISH: finished})


class LogSubmissions:
    """What a log says of its jobs, as submissions."""

    def __init__(
        self,
        log: SwfLog,
        configuration: Configuration,
        machine: Sequence[NodeKind],
        words: NodeWords,
        counted: Counter[str],
        later: float,
    ) -> None:
        self.log = log
        self._words = words
        self._counted = counted
        self._users, self._executables = names_of(log, "user"), names_of(log, "executable")
        self._columns = {name: log.more[name] for name in _FIELDS if name in log.more}
        self._lines = log.more.get("submit_line")
        self._default = [partition.name for partition in configuration.partitions if partition.default]
        self._reservations = sorted(configuration.reservations, key=lambda each: each.start)
        ids = log.more["id"].tolist() if "id" in log.more else ()
        self._nb_parts = Counter(name.partition("+")[0] for name in ids if "+" in name)
        """How many parts each heterogeneous job has."""
        self.later = later
        """How long after the beginning the first job is submitted, in seconds."""
        self._first = float(log.submit.min()) - later
        selection, partitions = configuration.selection, configuration.partitions
        given: list[Selection | Partition] = [selection, *partitions]
        self._has_default_memory = any(
            each.def_mem_per_cpu or each.def_mem_per_node or each.def_mem_per_gpu for each in given
        )
        self._least_memory = min((kind.resources.get("memory", 0) for kind in machine), default=0)
        self._is_linear = configuration.selection.type == "linear"
        whole = (each for each in configuration.partitions if each.over_subscribe == "exclusive")
        self._exclusive = {each.name for each in whole}
        self._cores = {name: kind.cores for kind in machine for name in kind.names}

    def id_of(self, row: int) -> str:
        """What Slurm called a job."""
        return str(self.log.more["id"][row])

    def of(self, job: Job, row: int) -> Submission:
        """The submission of a job of the workload, which has a row in the log."""
        line = str(self._lines[row]) if self._lines is not None else ""
        told = self._told(line, self._part_of(row)[1])
        if told is None:
            return self.of_columns(job, row)
        said, is_all = told
        said = replace(said, fields=dict(said.fields))
        settle_gpus(said)
        of_columns = self.of_columns(job, row)
        if not (is_all or self._comes_to(said, row)):
            if _asks_for_sizes(said):
                self._counted["a command does not tell all that its job asked for: its columns count"] += 1
            said = replace(
                of_columns, **{name: getattr(said, name) for name in _SAID_ONLY}, fields=said.fields
            )
            if said.exclusive:
                said.extra["request"]["exclusive"] = True
            if said.licences:
                said.extra["request"]["licences"] = said.licences
        else:
            extra = {key: value for key, value in of_columns.extra.items() if key != "request"}
            said = replace(said, extra=extra, features=said.features or self._features(row))
            said.exclusive = said.exclusive or (not is_all and self._had_whole_nodes(row))
            if self._lacks_memory(said):
                said.memory_per_cpu = self._memory(row)
        ran_in, named = of_columns.partitions, said.partitions
        fields = {**said.fields, **of_columns.fields}
        if "begin" in fields or job.extra.get(AFTER) is None:
            said.begin = ""
        if CANCELLED_AFTER not in job.extra or "begin" in fields:
            fields.pop("hold", None)  # somebody let it go
        return replace(
            said,
            name=of_columns.name,
            where=of_columns.where,
            at=of_columns.at,
            run_time=of_columns.run_time,
            time=of_columns.time,
            partitions=named if set(ran_in) <= set(named) else ran_in,
            user=of_columns.user,
            array="",
            dependency="",
            fields=fields,
        )

    def _part_of(self, row: int) -> tuple[str, int]:
        """The heterogeneous job that a job is a part of, if it is one, and which part."""
        name, plus, number = self.id_of(row).partition("+") if "id" in self.log.more else ("", "", "")
        return (name, int(number)) if plus and number.isdecimal() else ("", 0)

    def _told(self, line: str, part: int) -> tuple[Submission, bool] | None:
        """What a command asks for, and whether nothing else can tell of that; nothing if it is no command."""
        findings = Findings()
        told = read_submit_line(line, self.log.path, findings, part) if line else None
        if findings.mistakes:
            self._counted[f"a command is not understood: {findings.mistakes[0].what}"] += 1
            return None
        self._counted.update(finding.what for finding in findings.unmodelled)
        return told

    def _comes_to(self, said: Submission, row: int) -> bool:
        """Whether a command asks for as many processors, nodes and GPUs as the columns tell."""
        log = self.log
        least, most = said.nodes
        tasks = said.tasks or least * (said.tasks_per_node or 1)
        nodes, gpus = (log.more.get(name, np.full(len(log), -1))[row] for name in ("requested_nodes", "gpus"))
        asked_gpus = max(
            said.resources_per_job.get(GPU, 0),
            said.resources_per_node.get(GPU, 0) * least,
            said.resources_per_task.get(GPU, 0) * tasks,
        )
        return (
            tasks * said.cpus_per_task == log.requested_processors[row]
            and (nodes <= 0 or most is None or nodes == min(least, tasks))
            and asked_gpus == max(gpus, 0)
            and (log.requested_memory[row] <= 0 or not self._lacks_memory(said))
        )

    def _lacks_memory(self, said: Submission) -> bool:
        """Whether memory is given out, and a command does not ask for any."""
        given = "memory" in self._words.resources
        return given and said.memory_per_cpu is said.memory_per_node is None

    def _memory(self, row: int) -> int | None:
        """The memory of each processor by the columns, in MB; none if the cluster has a default for that.

        A job without any default has all memory of its nodes, wherever it runs.
        """
        each = float(self.log.requested_memory[row])
        nodes = self.log.more.get("requested_nodes", np.ones(len(self.log)))[row]
        of_node = each * self.log.requested_processors[row] / max(nodes, 1)
        if self._has_default_memory or each <= 0 or of_node >= self._least_memory:
            return None
        return max(round(each / 1024), 1)

    def _features(self, row: int) -> str:
        column = self.log.more.get("features")
        return str(column[row]) if column is not None else ""

    def of_columns(self, job: Job, row: int) -> Submission:
        """The submission of a job by the columns of the log alone."""
        extra = {key: value for key, value in job.extra.items() if key != "user"}
        user = str(self._users[row])
        if user:
            extra["user"] = user
        extra["request"] = request = self._request(extra.get("request", {}), row)
        name, is_task, _ = self.id_of(row).partition("_") if "id" in self.log.more else ("", "", "")
        if is_task:
            extra.setdefault(ARRAY, name)
        return Submission(
            name=job.name,
            where=self.log.path,
            at=job.submission_time + self.later,
            run_time=float(self.log.run_time[row]),
            tasks=request.get("tasks", job.size),
            cpus_per_task=request.get("cores", 1),
            time=job.walltime if job.has_walltime else None,
            partitions=tuple(request["partitions"]),
            user=user,
            fields=self._fields(job, row),
            extra=extra,
        )

    def _fields(self, job: Job, row: int) -> dict[str, Any]:
        fields: dict[str, Any] = {
            name: str(column[row]) for name, column in self._columns.items() if str(column[row])
        }
        eligible = self.log.more.get("eligible")
        if eligible is not None and eligible[row] > 0 and AFTER not in job.extra:
            fields["begin"] = float(eligible[row])
        if NOT_BEFORE in self.log.more and (later := float(self.log.more[NOT_BEFORE][row])):
            fields["not_before"] = later
        if RAN in self.log.more and self.log.more[RAN][row]:
            fields["runs"] = True
        if "reservation" in fields:
            fields["reservation"] = self._reservation(fields["reservation"], row)
        if (het := self._part_of(row)[0]) and "runs" not in fields:
            fields |= {"het": het, "het_size": self._nb_parts[het]}
        if self._executables[row]:
            fields["name"] = str(self._executables[row])
        return fields

    def _reservation(self, name: str, row: int) -> str:
        """The reservation of this name that was not over when a job started, or was given up."""
        start = float(self.log.submit[row] - self._first + max(self.log.wait[row], 0.0))
        alike = [each for each in self._reservations if each.name.partition(AGAIN)[0] == name]
        return next((each.name for each in alike if each.end > start), name)

    def _request(self, told: Mapping[str, Any], row: int) -> dict[str, Any]:
        """What a job asked for; it had more nodes than the least only if it asked for a range of them."""
        request, more = dict(told), self.log.more
        if isinstance(request.get("nodes"), list):
            least, had = request["nodes"][0], int(more["nodes"][row])
            request["nodes"] = [least, had] if had > least else least
        types = more.get("gpu_type")
        name = f"gpu:{types[row]}" if types is not None and types[row] else ""
        if name in self._words.resources:
            for part in ("per_node", "per_job"):
                if "gpu" in (amounts := request.get(part, {})):
                    request[part] = amounts | {name: amounts["gpu"]}
        request.setdefault("partitions", self._default)
        is_whole = self._is_linear or not self._exclusive.isdisjoint(request["partitions"])
        if is_whole or self._had_whole_nodes(row):
            request["exclusive"] = True
        if "licences" in more and more["licences"][row]:
            request["licences"] = licences(str(more["licences"][row]))
        return request

    def _had_whole_nodes(self, row: int) -> bool:
        """Whether a job had all processors of its nodes, and had not asked for as many."""
        log = self.log
        had = int(log.allocated_processors[row])
        if had <= log.requested_processors[row] or "hosts" not in log.more:
            return False
        return had == sum(self._cores.get(name, 0) for name in expand(str(log.more["hosts"][row])))


def _asks_for_sizes(said: Submission) -> bool:
    """Whether a command tells anything of the sizes that columns have."""
    return bool(
        said.nodes != ANY_NODES
        or said.tasks
        or said.tasks_per_node
        or said.cpus_per_task > 1
        or said.resources_per_node
        or said.resources_per_job
        or said.resources_per_task
    )
