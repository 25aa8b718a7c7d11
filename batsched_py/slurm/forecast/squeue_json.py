"""What ``squeue --json`` prints.

Versions of Slurm differ: a number may stand alone or in an object that says whether it is set, and a state
may be a word or a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from batsched_py.protocol.shown import shown
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
from batsched_py.slurm.values import listed
from batsched_py.workload.sources.quantities import count_hosts
from batsched_py.workload.sources.slurm_fields import resources


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
        id=_name(fields),
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
        array=_array(fields),
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


def _name(fields: Mapping[str, Any]) -> str:
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


def _array(fields: Mapping[str, Any]) -> str:
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
