"""What ``scontrol show job`` prints, in paragraphs or, with ``-o``, one job a line, and ``squeue --json``.

Versions of Slurm differ in JSON: a number may stand alone or in an object that says whether it is set, and a
state may be a word or a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

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
from batsched_py.workload.sources.accounting import count_hosts, duration, whole
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


class _File(msgspec.Struct):
    jobs: list[dict[str, Any]]
    last_update: Any = None


def read_squeue(path: Path, text: str, findings: Findings) -> Live:
    """The jobs of a listing."""
    try:
        content = msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, RecursionError) as error:
        findings.mistake(str(path), f"is not what squeue --json prints: {error}")
        return Live([], None)
    jobs = []
    for place, fields in enumerate(content.jobs):
        where = f"{path}, job {place}"
        try:
            if check_state(_state(fields), where, findings) is not None:
                jobs.append(_job(where, fields))
        except ValueError as error:
            findings.mistake(where, str(error))
    try:
        now = _number({"now": content.last_update}, "now")
    except ValueError:
        now = None
    return Live(jobs, now)


def _job(where: str, fields: Mapping[str, Any]) -> LiveJob:
    state = STATES[_state(fields)]
    runs = state == "running"
    node_list = _text(fields, "nodes")
    total = _text(fields, "tres_alloc_str") or _text(fields, "tres_req_str")
    # how many nodes a waiting job will have is estimated; what it asked for at least is among its resources
    least = int(resources(total).get("node", 0.0)) or int(_number(fields, "node_count") or 1)
    nodes = max(count_hosts(node_list) if runs else least, 1)
    cpus, tasks = int(_number(fields, "cpus") or 1), int(_number(fields, "tasks") or 0)
    each = int(_number(fields, "cpus_per_task") or 0)
    if runs:  # it may have more processors than it asked for
        tasks, each = cpus, 1
    elif not each:  # versions differ
        each = cpus // tasks if tasks else 1
    each = max(each, 1)
    tasks = max(tasks or cpus // each, nodes, 1)
    most = int(_number(fields, "max_nodes") or 0)
    per = {unit: _text(fields, f"tres_per_{unit}") for unit in ("node", "job", "task")}
    return LiveJob(
        id=_name_in_json(fields),
        state=state,
        where=where,
        user=_text(fields, "user_name"),
        account=_text(fields, "account"),
        qos=_text(fields, "qos"),
        partitions=listed(_text(fields, "partition")),
        priority=0 if _text(fields, "state_reason") == NEVER else int(_number(fields, "priority") or 0),
        time_limit=_time_limit(fields),
        started=_number(fields, "start_time") or None,
        eligible=_number(fields, "eligible_time") or None,
        nodes=nodes,
        most_nodes=max(most, nodes) if most and not runs else None,
        tasks=tasks,
        cpus_per_task=each,
        tasks_per_node=None if runs else int(_number(fields, "tasks_per_node") or 0) or None,
        node_list=node_list if runs else _text(fields, "required_nodes"),
        exclude="" if runs else _text(fields, "excluded_nodes"),
        memory_per_cpu=int(_number(fields, "memory_per_cpu") or 0),
        memory_per_node=int(_number(fields, "memory_per_node") or 0),
        licences=licences(_text(fields, "licenses")),
        one_switch=_number(fields, "required_switches") == 1,
        **resources_asked(per, total, nodes, tasks, runs),
        features=_text(fields, "features"),
        dependency=re.sub(r"\([^)]*\)", "", _text(fields, "dependency")),
        reservation=_text(fields, "resv_name"),
        exclusive="none" in _words(fields.get("shared")) or "true" in _words(fields.get("exclusive")),
        name=_text(fields, "name"),
        array_id=f"{array:.0f}" if (array := _number(fields, "array_job_id")) else "",
        array=_array_in_json(fields),
    )


def _state(fields: Mapping[str, Any]) -> str:
    """The first word of the state."""
    words = _words(fields.get("job_state"))
    if not words:
        raise ValueError("tells no job_state")
    return words[0].upper()


def _words(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(each) for each in values if each not in (None, "")]


def _name_in_json(fields: Mapping[str, Any]) -> str:
    """The number of a job; tasks of arrays have the form ``ARRAY_TASK`` or ``ARRAY_[TASKS]``."""
    array, tasks = _number(fields, "array_job_id"), _tasks(fields)
    if array and tasks:
        return task_id(f"{array:.0f}", tasks)
    job = _number(fields, "job_id")
    if job is None:
        raise ValueError("tells no job_id")
    return f"{job:.0f}"


def _tasks(fields: Mapping[str, Any]) -> str:
    """The tasks of an array that a record is about, if it is about any."""
    task = _number(fields, "array_task_id")
    if not _number(fields, "array_job_id"):
        return ""
    return _text(fields, "array_task_string") or ("" if task is None else f"{task:.0f}")


def _array_in_json(fields: Mapping[str, Any]) -> str:
    tasks, limit = _tasks(fields), _number(fields, "array_max_tasks")
    return tasks if "%" in tasks or not (tasks and limit) else f"{tasks}%{limit:.0f}"


def _number(fields: Mapping[str, Any], name: str) -> float | None:
    """A number; none if it is not set, or infinite."""
    value = fields.get(name)
    if isinstance(value, Mapping):
        if value.get("infinite") or not value.get("set", True):
            return None
        value = value.get("number")
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise ValueError(f"{name}: {shown(value)} is not a number of at least 0")
    return float(value)


def _time_limit(fields: Mapping[str, Any]) -> float | None:
    """In seconds; none if it is that of the partition."""
    if _state(fields) == ENDING:
        return 0.0
    value = fields.get("time_limit")
    if isinstance(value, Mapping) and value.get("infinite"):
        return inf
    minutes = _number(fields, "time_limit")
    return None if minutes is None else minutes * 60.0


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        return ""
    return "" if value in ("(null)", "N/A") else value
