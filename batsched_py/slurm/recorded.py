"""Jobs that were recorded, by a log of ``sacct`` or in the files of a recorded scenario.

The ``jobs.csv`` of such a scenario has the columns ``at``, ``run`` and ``args``: when a job is submitted, how
long it sleeps, and the options of ``sbatch``, in which ``%3`` is the third job of the file.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from batsched_py.protocol.dependencies import AFTER, ARRAY, array_of, read_dependency
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.shown import shown
from batsched_py.slurm.jobs import KnownNames, limited, settled
from batsched_py.slurm.policy.job import FIELD
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.reading import Clock, Findings, number, read_text
from batsched_py.slurm.sbatch import Submission, read_options
from batsched_py.workload.batsim_json import RECORDED_FINISH
from batsched_py.workload.dependencies import rewritten
from batsched_py.workload.model import Workload
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.sources.sacct import STEP
from batsched_py.workload.swf.conventions import profile_name
from batsched_py.workload.swf.log import SwfLog, start_of
from batsched_py.workload.swf.workload import swf_to_workload

COLUMNS = ("at", "run", "args")

_JOB = re.compile(r"(?<=:)%([0-9]{1,9})")
RECORDER = {"kill_wait": 1.0, "message_timeout": 100.0}
"""What a recorder adds to the ``slurm.conf`` of a scenario, as far as it shapes schedules."""

SUBMITTING = 0.2
"""A recorder submits one job after another, in the order of the file; so long a call of sbatch takes."""

LAUNCHING = 0.9
"""So much longer than it sleeps a job runs when it is recorded at ten times the speed, in the mean."""

USER = "root"
"""Who submits jobs that do not say."""


def read_submissions(path: Path, findings: Findings) -> Iterator[Submission]:
    """The jobs of a file, named by their numbers."""
    rows = csv.reader(StringIO(read_text(path, findings)))
    head = next(rows, [])
    if missing := [name for name in COLUMNS if name not in head]:
        findings.mistake(f"{path}, line 1", f"there is no column {missing[0]}")
        return
    last = 0.0
    for place, row in enumerate(rows, start=1):
        where = f"{path}, line {rows.line_num}"
        if len(row) != len(head):
            findings.mistake(where, f"has {len(row)} fields instead of {len(head)}")
            continue
        values = dict(zip(head, row, strict=True))
        with findings.noting(where):
            submitted = _submission(place, values, where, findings)
            submitted.at = last = max(submitted.at, last) + SUBMITTING
            yield submitted


def _submission(place: int, values: dict[str, str], where: str, findings: Findings) -> Submission:
    for name in _JOB.findall(values["args"]):
        if not 1 <= int(name) < place:
            raise ValueError(f"{shown('%' + name)} is no job above this line")
    submission = read_options(shlex.split(_JOB.sub(r"\1", values["args"])), where, findings)
    submission.name, submission.user = str(place), submission.user or USER
    submission.run_time, submission.at = number(values["run"]) + LAUNCHING, number(values["at"])
    return submission


#: Columns of a log beside the format, and the fields that they become.
_FIELDS = {"account": "account", "qos": "qos", "reservation": "reservation", "id": "id"}


def read_slurm_log(path: Path, zone: str) -> tuple[SwfLog, Clock]:
    """A log, and when it begins."""
    log = read_log(path, "sacct", {"zone": zone})
    start = start_of(log)
    first = float(log.submit.min())
    return log, Clock(None if start is None else start + first, zone)


def jobs_of(
    log: SwfLog, configuration: Configuration, words: NodeWords, findings: Findings
) -> tuple[list[Job], Mapping[str, Profile]]:
    """The jobs of a log on a cluster, and what they do.

    A job that was cancelled while it waited is left out. One without a time limit has that of its partition.
    One that was not eligible at once, without a known reason, has a time before which it may not begin. One
    that ran out of time runs until the policy kills it.
    """
    workload = swf_to_workload(log, walltime="requested", words=words)
    left_out = len(log) - len(workload.jobs)
    if left_out:
        findings.left_out(log.path, f"{left_out} of {len(log)} jobs never started, and are left out")
    for what, count in log.left_out.items():
        if what == STEP:
            findings.of_no_effect(log.path, f"{count} x {what}")
        else:
            findings.left_out(log.path, f"left out: {what} ({count} x)")
    for what, count in log.guessed.items():
        if what.startswith("size of the machine"):
            continue
        findings.left_out(log.path, f"guessed: {what} ({count} x)")
    jobs = list(_LogJobs(log, configuration, words).of(workload))
    known = workload.profiles
    longer = {job.profile: Delay(seconds=job.walltime) for job in jobs if job.profile not in known}
    for what, count in _missing(log, jobs, configuration, words).items():
        findings.left_out(log.path, f"{what} ({count} x)")
    return _waiting_for_earlier(jobs, log.path, findings), {**known, **longer}


def _missing(
    log: SwfLog, jobs: Iterable[Job], configuration: Configuration, words: NodeWords
) -> Counter[str]:
    """What jobs name that the cluster does not have, and how many of them do."""
    names, found = KnownNames(configuration), Counter[str]()
    for job in jobs:
        found.update(names.missing(job.extra[FIELD]))
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
            earlier = {
                end.target: end.target
                for end in read_dependency(after).ends
                if last.get(end.target, place) < place
            }
            kept = rewritten(after, earlier.get)
            if kept != after:
                count += 1
                extra = {key: value for key, value in job.extra.items() if key != AFTER}
                jobs[place] = replace(job, extra=extra | ({AFTER: kept} if kept else {}))
    if count:
        findings.left_out(path, f"left out: dependency on a job that was submitted later ({count} x)")
    return jobs


def _with_type(request: dict[str, Any], type_: str, words: NodeWords) -> dict[str, Any]:
    """A request that asks for GPUs of a type, if the machine has any."""
    name = f"gpu:{type_}"
    if name not in words.resources:
        return request
    return request | {
        part: amounts | {name: amounts["gpu"]}
        for part in ("per_node", "per_job")
        if "gpu" in (amounts := request.get(part, {}))
    }


class _LogJobs:
    """Tells the jobs of a log what it says of them for Slurm."""

    def __init__(self, log: SwfLog, configuration: Configuration, words: NodeWords) -> None:
        self._log = log
        self._configuration = configuration
        self._words = words
        self._users, self._executables = names_of(log, "user"), names_of(log, "executable")
        self._columns = {field: log.more[name] for name, field in _FIELDS.items() if name in log.more}
        self._partitions = {partition.name: partition for partition in configuration.partitions}
        self._default = [partition.name for partition in configuration.partitions if partition.default]

    def of(self, workload: Workload) -> Iterator[Job]:
        """The jobs of the log as a workload, with fields and requests for Slurm."""
        rows = {number: row for row, number in enumerate(self._log.job_number.tolist())}
        assert workload.finishes is not None
        for job, finish in zip(workload.jobs, workload.finishes, strict=True):
            yield self._job(job, rows[int(job.name)], float(finish))

    def _job(self, job: Job, row: int, finish: float) -> Job:
        extra = {key: value for key, value in job.extra.items() if key != "user"}
        if self._users[row]:
            extra["user"] = str(self._users[row])
        fields, request = self._fields(job, row), self._request(extra.get("request", {}), row)
        shared = [self._partitions[name] for name in request["partitions"] if name in self._partitions]
        linear = self._configuration.selection.type == "linear"
        if linear or any(partition.over_subscribe == "exclusive" for partition in shared):
            request["exclusive"] = True
        request, told = settled(request, request.get("tasks", job.size))
        fields |= told
        limit, profile, partition = job.walltime, job.profile, shared[0] if shared else None
        if not job.has_walltime:
            fields["no_time_limit"] = True
            if partition is not None:
                limit = partition.default_time or partition.max_time
        run_time = float(self._log.run_time[row])
        walltime = limited(fields, limit, run_time, partition, self._configuration)
        if "time_limit" in fields and self._log.more["state"][row] == "TIMEOUT":
            profile = profile_name(walltime)
        extra |= {"request": request, FIELD: fields, RECORDED_FINISH: finish}
        return replace(job, walltime=walltime, profile=profile, extra=extra)

    def _fields(self, job: Job, row: int) -> dict[str, Any]:
        fields: dict[str, Any] = {
            name: str(column[row]) for name, column in self._columns.items() if str(column[row])
        }
        eligible = self._log.more.get("eligible")
        if eligible is not None and eligible[row] > 0 and AFTER not in job.extra:
            fields["begin"] = float(eligible[row])
        if self._executables[row]:
            fields["name"] = str(self._executables[row])
        return fields

    def _request(self, told: Mapping[str, Any], row: int) -> dict[str, Any]:
        """What a job asked for; it had more nodes than the least only if it asked for a range of them."""
        request, types = dict(told), self._log.more.get("gpu_type")
        if isinstance(request.get("nodes"), list):
            least, had = request["nodes"][0], int(self._log.more["nodes"][row])
            request["nodes"] = [least, had] if had > least else least
        if types is not None and types[row]:
            request = _with_type(request, str(types[row]), self._words)
        request.setdefault("partitions", self._default)
        return request
