"""What ``scontrol show job`` prints, in paragraphs or, with ``-o``, one job a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.live import STATES, Live, LiveJob, task_id
from batsched_py.slurm.values import count, megabytes, names, time_limit
from batsched_py.workload.sources.quantities import count_hosts, duration
from batsched_py.workload.sources.slurm_fields import resources

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z_/:]*)=(\S*)")
_NOTHING = ("(null)", "N/A", "Unknown", "None", "n/a", "")


def read_scontrol(path: Path, text: str, zone: str, findings: Findings) -> Live:
    """The jobs of a listing; the moment at which it was printed is known from a job that runs."""
    jobs: list[LiveJob] = []
    now: float | None = None
    for where, fields in _records(path, text, findings):
        state = STATES.get(fields.get("JobState", ""))
        if state is None:
            if "JobState" not in fields:
                findings.mistake(where, "tells no JobState, as in a file that is cut short")
            continue
        try:
            job = _job(where, fields, zone)
        except ValueError as error:
            findings.mistake(where, f"job {shown_name(fields['JobId'])}: {error}")
            continue
        jobs.append(job)
        if (
            job.state == "running"
            and job.started is not None
            and (ran := duration(fields.get("RunTime", ""))) >= 0
        ):
            now = job.started + ran
    return Live(jobs, now)


def _records(path: Path, text: str, findings: Findings) -> Iterator[tuple[str, dict[str, str]]]:
    """The fields of each job, with the line where it begins; what is said twice counts the first time."""
    where, fields = "", dict[str, str]()
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{path}, line {number}"
        pairs = _PAIR.findall(line)
        if not pairs and line.strip() and not line.startswith("No jobs"):
            findings.mistake(place, f"{shown(line.strip())} is not of the form Name=Value")
        for name, value in pairs:
            if name == "JobId":
                if fields:
                    yield where, fields
                where, fields = place, {}
            elif not fields:
                findings.mistake(place, f"{name} stands before any JobId")
                return
            if value not in _NOTHING:
                fields.setdefault(name, value)
    if fields:
        yield where, fields


def _job(where: str, fields: Mapping[str, str], zone: str) -> LiveJob:
    state = STATES[fields["JobState"]]
    tres = resources(fields["TRES"]) if "TRES" in fields else {}
    asked = fields.get("NumNodes", "1").partition("-")[0]
    nodes = count_hosts(fields.get("NodeList", "")) if state == "running" else count(asked)
    cpus = count(fields.get("NumCPUs", "1").partition("-")[0])
    each = count(fields.get("CPUs/Task", "1"))
    gpus = sum(int(value) for name, value in tres.items() if name == "gres/gpu")
    return LiveJob(
        id=_name(fields),
        state=state,
        where=where,
        user=fields.get("UserId", "").partition("(")[0],
        account=fields.get("Account", ""),
        qos=fields.get("QOS", ""),
        partitions=names(fields.get("Partition", "")),
        priority=count(fields.get("Priority", "0")),
        time_limit=time_limit(fields.get("TimeLimit", "UNLIMITED")),
        started=_moment(fields, "StartTime", zone),
        eligible=_moment(fields, "EligibleTime", zone),
        nodes=max(nodes, 1),
        tasks=max(count(fields.get("NumTasks", "0")) or cpus // max(each, 1), nodes, 1),
        cpus_per_task=max(each, 1),
        node_list=fields.get("NodeList", "") if state == "running" else fields.get("ReqNodeList", ""),
        memory_per_cpu=megabytes(fields["MinMemoryCPU"]) if "MinMemoryCPU" in fields else 0,
        memory_per_node=megabytes(fields["MinMemoryNode"]) if "MinMemoryNode" in fields else 0,
        gpus_per_node=-(-gpus // max(nodes, 1)),
        features=fields.get("Features", ""),
        dependency=re.sub(r"\([^)]*\)", "", fields.get("Dependency", "")),
        reservation=fields.get("Reservation", ""),
        exclusive=fields.get("OverSubscribe") == "NO",
        name=fields.get("JobName", ""),
        array_id=fields.get("ArrayJobId", ""),
        array=_array(fields),
    )


def _name(fields: Mapping[str, str]) -> str:
    """The number of a job; tasks of arrays have the form ``ARRAY_TASK`` or ``ARRAY_[TASKS]``."""
    if "ArrayJobId" in fields and "ArrayTaskId" in fields:
        return task_id(fields["ArrayJobId"], fields["ArrayTaskId"])
    return fields["JobId"]


def _array(fields: Mapping[str, str]) -> str:
    tasks, limit = fields.get("ArrayTaskId", ""), fields.get("ArrayTaskThrottle", "")
    return tasks if "%" in tasks or not (tasks and limit) else f"{tasks}%{limit}"


def _moment(fields: Mapping[str, str], name: str, zone: str) -> float | None:
    if name not in fields:
        return None
    try:
        moment = datetime.fromisoformat(fields[name])
    except ValueError:
        raise ValueError(f"{name} {shown(fields[name])} is not a moment") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).timestamp()
