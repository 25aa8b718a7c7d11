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
from batsched_py.slurm.findings import Findings, read_text
from batsched_py.slurm.jobs import KnownNames, Submitted, divided, longest, may_reach, without_shared_gpus
from batsched_py.slurm.policy.job import FIELD
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.sbatch import read_options
from batsched_py.slurm.values import Clock, number
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


def read_submissions(path: Path, findings: Findings) -> Iterator[Submitted]:
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
        try:
            submitted = _submission(place, values, where, findings)
        except ValueError as error:
            findings.mistake(where, str(error))
            continue
        last = max(submitted.at, last) + SUBMITTING
        yield replace(submitted, at=last)


def _submission(place: int, values: dict[str, str], where: str, findings: Findings) -> Submitted:
    for name in _JOB.findall(values["args"]):
        if not 1 <= int(name) < place:
            raise ValueError(f"{shown('%' + name)} is no job above this line")
    words = shlex.split(_JOB.sub(r"\1", values["args"]))
    submission = read_options(words, where, findings)
    submission.user = submission.user or USER
    run_time = number(values["run"]) + LAUNCHING
    return Submitted(str(place), number(values["at"]), run_time, submission, where)


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
    jobs = list(_with_fields(workload, log, configuration, words))
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


def _nodes(asked: int, had: int) -> int | list[int]:
    """How many nodes a job asked for at least; it had more only if it asked for a range."""
    return [asked, had] if had > asked else asked


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


def _with_fields(
    workload: Workload, log: SwfLog, configuration: Configuration, words: NodeWords
) -> Iterator[Job]:
    users = names_of(log, "user")
    executables = names_of(log, "executable")
    rows = {number: row for row, number in enumerate(log.job_number.tolist())}
    columns = {field: log.more[name] for name, field in _FIELDS.items() if name in log.more}
    partitions = {partition.name: partition for partition in configuration.partitions}
    default = [partition.name for partition in configuration.partitions if partition.default]
    eligible, types, states = log.more.get("eligible"), log.more.get("gpu_type"), log.more["state"]
    linear = configuration.selection.type == "linear"
    finishes = workload.finishes
    assert finishes is not None
    for job, finish in zip(workload.jobs, finishes, strict=True):
        row = rows[int(job.name)]
        fields: dict[str, Any] = {
            name: str(column[row]) for name, column in columns.items() if str(column[row])
        }
        if eligible is not None and eligible[row] > 0 and AFTER not in job.extra:
            fields["begin"] = float(eligible[row])
        if executables[row]:
            fields["name"] = str(executables[row])
        extra: dict[str, Any] = dict(job.extra)
        extra.pop("user", None)
        if users[row]:
            extra["user"] = str(users[row])
        request = dict(extra.get("request", {}))
        if isinstance(request.get("nodes"), list):
            request["nodes"] = _nodes(request["nodes"][0], int(log.more["nodes"][row]))
        if types is not None and types[row]:
            request = _with_type(request, str(types[row]), words)
        names = request.setdefault("partitions", default)
        shared = [partitions[name] for name in names if name in partitions]
        if linear or any(partition.over_subscribe == "exclusive" for partition in shared):
            request["exclusive"] = True
        request, of_gpus = without_shared_gpus(request, request.get("tasks", job.size))
        request, of_tasks = divided(request)
        fields |= of_tasks | of_gpus
        walltime, profile = job.walltime, job.profile
        if not job.has_walltime:
            fields["no_time_limit"] = True
            if shared:
                walltime = shared[0].default_time or shared[0].max_time
        if may_reach(walltime, float(log.run_time[row])):
            fields["time_limit"] = walltime
            walltime = longest(walltime, shared[0] if shared else None, configuration)
            if states[row] == "TIMEOUT":
                profile = profile_name(walltime)
        extra |= {"request": request, FIELD: fields, RECORDED_FINISH: float(finish)}
        yield replace(job, walltime=walltime, profile=profile, extra=extra)
