"""The jobs of a log of ``sacct``, with what it says of them for Slurm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from batsched_py.protocol.dependencies import AFTER
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.job_fields import FIELD
from batsched_py.slurm.divided_tasks import divided
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.moments import Clock
from batsched_py.workload.batsim_json import RECORDED_FINISH
from batsched_py.workload.model import Workload
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.workload import swf_to_workload
from batsched_py.workload.wall_clock import start_of

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
    One that was not eligible at once, without a known reason, has a time before which it may not begin.
    """
    workload = swf_to_workload(log, walltime="requested", words=words)
    left_out = len(log) - len(workload.jobs)
    if left_out:
        findings.left_out(log.path, f"{left_out} of {len(log)} jobs never started, and are left out")
    for what, count in log.left_out.items():
        findings.of_no_effect(log.path, f"{count} x {what}")
    for what, count in log.guessed.items():
        if what.startswith("size of the machine"):
            continue
        findings.left_out(log.path, f"guessed: {what} ({count} x)")
    return list(_with_fields(workload, log, configuration)), workload.profiles


def _with_fields(workload: Workload, log: SwfLog, configuration: Configuration) -> Iterator[Job]:
    users = names_of(log, "user")
    executables = names_of(log, "executable")
    rows = {number: row for row, number in enumerate(log.job_number.tolist())}
    columns = {field: log.more[name] for name, field in _FIELDS.items() if name in log.more}
    partitions = {partition.name: partition for partition in configuration.partitions}
    default = [partition.name for partition in configuration.partitions if partition.default]
    eligible = log.more.get("eligible")
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
        names = request.setdefault("partitions", default)
        shared = [partitions[name] for name in names if name in partitions]
        if linear or any(partition.over_subscribe == "exclusive" for partition in shared):
            request["exclusive"] = True
        request, of_tasks = divided(request)
        fields |= of_tasks
        walltime = job.walltime
        if not job.has_walltime:
            fields["no_time_limit"] = True
            if shared:
                walltime = shared[0].default_time or shared[0].max_time
        extra |= {"request": request, FIELD: fields, RECORDED_FINISH: float(finish)}
        yield replace(job, walltime=walltime, extra=extra)
