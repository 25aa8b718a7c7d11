"""What ``scontrol show job`` prints, in paragraphs or, with ``-o``, one job a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.live import (
    ENDING,
    NEVER,
    STATES,
    Live,
    LiveJob,
    check_state,
    resources_asked,
    task_id,
)
from batsched_py.slurm.sbatch import licences
from batsched_py.slurm.values import count, listed, megabytes, time_limit
from batsched_py.workload.sources.quantities import count_hosts, duration, whole
from batsched_py.workload.sources.slurm_fields import resources

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z_/:]*)=(\S*)")
_BEGIN = re.compile(r"(JobId=\S+.*?) JobName=(.*?)(?:(\s+UserId=.*)|$)")
#: What stands for no value.
NOTHING = ("(null)", "N/A", "Unknown", "None", "n/a", "")


def read_scontrol(path: Path, text: str, zone: str, findings: Findings) -> Live:
    """The jobs of a listing; the moment at which it was printed is known from a job that runs."""
    jobs: list[LiveJob] = []
    now: float | None = None
    for where, fields in _records(path, text, findings):
        if "JobState" not in fields:
            findings.mistake(where, "tells no JobState, as in a file that is cut short")
            continue
        if check_state(fields["JobState"], where, findings) is None:
            continue
        try:
            job = job_of(where, fields, zone)
        except ValueError as error:
            findings.mistake(where, f"job {shown_name(fields['JobId'])}: {error}")
            continue
        jobs.append(job)
        if fields["JobState"] == "RUNNING" and job.started is not None:
            ran = duration(fields.get("RunTime", ""))
            now = max(now or 0.0, job.started + ran) if ran >= 0 else now
    return Live(jobs, now)


def _records(path: Path, text: str, findings: Findings) -> Iterator[tuple[str, dict[str, str]]]:
    """The fields of each job, with the line where it begins; what is said twice counts the first time."""
    where, fields = "", dict[str, str]()
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{path}, line {number}"
        if line.startswith("JobId="):
            if fields:
                yield where, fields
            where, fields = place, {}
            if begin := _BEGIN.fullmatch(line):  # a name may have blanks and signs
                fields["JobName"] = begin[2]
                line = begin[1] + (begin[3] or "")
        pairs = _PAIR.findall(line)
        if not pairs and line.strip() and not line.startswith("No jobs"):
            findings.mistake(place, f"{shown(line.strip())} is not of the form Name=Value")
        for name, value in pairs:
            if not where:
                findings.mistake(place, f"{name} stands before any JobId")
                return
            if value not in NOTHING:
                fields.setdefault(name, value)
    if fields:
        yield where, fields


def job_of(where: str, fields: Mapping[str, str], zone: str) -> LiveJob:
    """A job that has these fields."""
    state = STATES[fields["JobState"]]
    runs = state == "running"
    total = next((fields[name] for name in ("AllocTRES", "ReqTRES", "TRES") if name in fields), "")
    asked, most = _range(fields, "NumNodes")
    # how many nodes a waiting job will have is estimated; what it asked for at least is among its resources
    least = max(int(resources(total).get("node", 0.0)) or asked, 1)
    nodes = max(count_hosts(fields.get("NodeList", "")), 1) if runs else least
    cpus, _ = _range(fields, "NumCPUs")
    each = 1 if runs else max(_range(fields, "CPUs/Task")[0], 1)
    tasks = max(cpus if runs else _range(fields, "NumTasks", "0")[0] or cpus // each, nodes, 1)
    per = {unit: fields.get(f"TresPer{unit.title()}", "") for unit in ("node", "job", "task")}
    per_node = fields.get("NtasksPerN:B:S:C", "0").partition(":")[0]
    limit = "0" if fields["JobState"] == ENDING else fields.get("TimeLimit", "UNLIMITED")
    return LiveJob(
        id=_name(fields),
        state=state,
        where=where,
        user=fields.get("UserId", "").partition("(")[0],
        account=fields.get("Account", ""),
        qos=fields.get("QOS", ""),
        partitions=listed(fields.get("Partition", "")),
        priority=0 if fields.get("Reason") == NEVER else count(fields.get("Priority", "0")),
        time_limit=None if limit == "Partition_Limit" else time_limit(limit),
        started=moment_of(fields, "StartTime", zone),
        eligible=moment_of(fields, "EligibleTime", zone),
        nodes=nodes,
        most_nodes=max(most, nodes) if most and not runs else None,
        tasks=tasks,
        cpus_per_task=each,
        tasks_per_node=None if runs else (whole(per_node) or None),
        node_list=fields.get("NodeList" if runs else "ReqNodeList", ""),
        exclude="" if runs else fields.get("ExcNodeList", ""),
        memory_per_cpu=megabytes(fields["MinMemoryCPU"]) if "MinMemoryCPU" in fields else 0,
        memory_per_node=megabytes(fields["MinMemoryNode"]) if "MinMemoryNode" in fields else 0,
        licences=licences(fields.get("Licenses", "")),
        one_switch=fields.get("Switches", "").partition("@")[0] == "1",
        **resources_asked(per, total, nodes, tasks, runs),
        features=fields.get("Features", ""),
        dependency=re.sub(r"\([^)]*\)", "", fields.get("Dependency", "")),
        reservation=fields.get("Reservation", ""),
        exclusive=fields.get("OverSubscribe") == "NO",
        name=fields.get("JobName", ""),
        array_id=fields.get("ArrayJobId", ""),
        array=_array(fields),
    )


def _range(fields: Mapping[str, str], name: str, default: str = "1") -> tuple[int, int]:
    """A number, or the ends of a range like ``2-4``; the upper end is 0 if there is none."""
    least, _, most = fields.get(name, default).partition("-")
    try:
        return count(least), count(most or "0")
    except ValueError:
        raise ValueError(f"{name}={shown(fields[name])} is not a number") from None


def _name(fields: Mapping[str, str]) -> str:
    """The number of a job; tasks of arrays have the form ``ARRAY_TASK`` or ``ARRAY_[TASKS]``."""
    if "ArrayJobId" in fields and "ArrayTaskId" in fields:
        return task_id(fields["ArrayJobId"], fields["ArrayTaskId"])
    return fields["JobId"]


def _array(fields: Mapping[str, str]) -> str:
    tasks, limit = fields.get("ArrayTaskId", ""), fields.get("ArrayTaskThrottle", "")
    return tasks if "%" in tasks or not (tasks and limit) else f"{tasks}%{limit}"


def moment_of(fields: Mapping[str, str], name: str, zone: str) -> float | None:
    """A moment in Unix time, if it is told."""
    if name not in fields:
        return None
    try:
        moment = datetime.fromisoformat(fields[name])
    except ValueError:
        raise ValueError(f"{name} {shown(fields[name])} is not a moment") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).timestamp()
