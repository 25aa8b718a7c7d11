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
from batsched_py.slurm.forecast.live import STATES, Live, LiveJob, task_id
from batsched_py.slurm.values import names
from batsched_py.workload.sources.quantities import count_hosts
from batsched_py.workload.sources.slurm_fields import resources

_GPUS = re.compile(r"gpu(?:[:=][A-Za-z][A-Za-z0-9_.-]*)?[:=]([0-9]{1,6})")


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
            if _state(fields) in STATES:
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
    minutes = _number(fields, "time_limit")
    node_list = _text(fields, "nodes")
    nodes = count_hosts(node_list) if state == "running" else int(_number(fields, "node_count") or 1)
    cpus, tasks = int(_number(fields, "cpus") or 1), int(_number(fields, "tasks") or 0)
    each = int(_number(fields, "cpus_per_task") or 0)
    if not each:  # versions differ; a running job may have more processors than it asked for
        each = cpus // tasks if state == "waiting" and tasks else 1
    each = max(each, 1)
    tasks = tasks or cpus // each
    return LiveJob(
        id=_name(fields),
        state=state,
        where=where,
        user=_text(fields, "user_name"),
        account=_text(fields, "account"),
        qos=_text(fields, "qos"),
        partitions=names(_text(fields, "partition")),
        priority=int(_number(fields, "priority") or 0),
        time_limit=inf if not minutes else minutes * 60.0,
        started=_number(fields, "start_time") or None,
        eligible=_number(fields, "eligible_time") or None,
        nodes=max(nodes, 1),
        tasks=max(tasks, nodes, 1),
        cpus_per_task=each,
        node_list=node_list if state == "running" else _text(fields, "required_nodes"),
        memory_per_cpu=int(_number(fields, "memory_per_cpu") or 0),
        memory_per_node=int(_number(fields, "memory_per_node") or 0),
        gpus_per_node=_gpus(fields, max(nodes, 1)),
        features=_text(fields, "features"),
        dependency=re.sub(r"\([^)]*\)", "", _text(fields, "dependency")),
        reservation=_text(fields, "resv_name"),
        exclusive="none" in _words(fields.get("shared")) or "none" in _words(fields.get("exclusive")),
        name=_text(fields, "name"),
        array_id=f"{_number(fields, 'array_job_id') or 0:.0f}",
        array=_array(fields),
    )


def _state(fields: Mapping[str, Any]) -> str:
    """The first word of the state."""
    words = _words(fields.get("job_state"))
    if not words:
        raise ValueError("tells no job_state")
    return words[0].upper()


def _words(value: Any) -> list[str]:
    if isinstance(value, list):
        return [str(each) for each in value]
    return [str(value)] if value not in (None, "") else []


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


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        return ""
    return "" if value in ("(null)", "N/A") else value


def _gpus(fields: Mapping[str, Any], nodes: int) -> int:
    tres = resources(_text(fields, "tres_req_str") or _text(fields, "tres_alloc_str"))
    if "gres/gpu" in tres:
        return -(-int(tres["gres/gpu"]) // nodes)
    match = _GPUS.search(_text(fields, "tres_per_node"))
    return int(match[1]) if match else 0
