"""What ``scontrol show job`` prints, in paragraphs or, with ``-o``, one job a line, and ``squeue --json``.

Versions of Slurm differ in JSON: a number may stand alone or in an object that says whether it is set, and a
state may be a word or a list of words.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.forecast.live import ENDING, NEVER, STATES, Live, check_state, resources_asked
from batsched_py.slurm.reading import Findings, count, listed, megabytes, time_limit
from batsched_py.slurm.sbatch import Submission, licences
from batsched_py.workload.sources.accounting import count_hosts, duration, whole, written_duration
from batsched_py.workload.sources.slurm_fields import resources

_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z_/:]*)=(\S*)")
_BEGIN = re.compile(r"(JobId=\S+.*?) JobName=(.*?)(?:(\s+UserId=.*)|$)")
#: What stands for no value.
NOTHING = ("(null)", "N/A", "Unknown", "None", "n/a", "")


def read_scontrol(path: Path, text: str, zone: str, findings: Findings) -> Live:
    """The jobs of a listing; the moment at which it was printed is known from a job that runs."""
    jobs: list[Submission] = []
    now: float | None = None
    for where, fields in records(path, text, findings):
        if "JobState" not in fields:
            findings.mistake(where, "tells no JobState, as in a file that is cut short")
        elif check_state(fields["JobState"], where, findings) is not None and (
            job := printed_job(where, fields, zone, findings)
        ):
            jobs.append(job)
            ran = duration(fields.get("RunTime", ""))
            if fields["JobState"] == "RUNNING" and job.started is not None and ran >= 0:
                now = max(now or 0.0, job.started + ran)
    return Live(jobs, now)


def records(path: Path, text: str, findings: Findings) -> Iterator[tuple[str, dict[str, str]]]:
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


def printed_job(where: str, fields: Mapping[str, str], zone: str, findings: Findings) -> Submission | None:
    """The job that has these fields as they are printed, unless something is wrong with them."""
    with findings.noting(where, f"job {shown_name(fields['JobId'])}: "):
        started, eligible = (moment_of(fields, name, zone) for name in ("StartTime", "EligibleTime"))
        return job_of(where, fields, started, eligible)
    return None


def job_of(
    where: str, fields: Mapping[str, str], started: float | None, eligible: float | None
) -> Submission:
    """A job that has these fields, and was or will be started and eligible at these moments."""
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
    array = _array_of(fields)
    return Submission(
        id=job_id(fields),
        name=fields.get("ArrayJobId", "") if array else job_id(fields),
        state=state,
        where=where,
        user=fields.get("UserId", "").partition("(")[0],
        partitions=listed(fields.get("Partition", "")),
        time=None if limit == "Partition_Limit" else time_limit(limit),
        started=started,
        eligible=eligible,
        nodes=(nodes, max(most, nodes) if most and not runs else None),
        tasks=tasks,
        cpus_per_task=each,
        tasks_per_node=None if runs else (whole(per_node) or None),
        memory_per_cpu=megabytes(fields.get("MinMemoryCPU", "0")) or None,
        memory_per_node=megabytes(fields.get("MinMemoryNode", "0")) or None,
        licences=licences(fields.get("Licenses", "")),
        one_switch=fields.get("Switches", "").partition("@")[0] == "1",
        **resources_asked(per, total, nodes, tasks, runs),
        features=fields.get("Features", ""),
        dependency=re.sub(r"\([^)]*\)", "", fields.get("Dependency", "")),
        exclusive=fields.get("OverSubscribe") == "NO",
        array=array,
        fields=_told(fields, runs),
    )


def _array_of(fields: Mapping[str, str]) -> str:
    """The numbers of the tasks, and how many may run at once."""
    array, at_once = fields.get("ArrayTaskId", ""), fields.get("ArrayTaskThrottle", "")
    return f"{array}%{at_once}" if array and at_once and "%" not in array else array


def _told(fields: Mapping[str, str], runs: bool) -> dict[str, Any]:
    """What goes into the field ``slurm`` of a job."""
    names = {"Account": "account", "QOS": "qos", "Reservation": "reservation", "JobName": "name"}
    names |= {"NodeList": "node_list"} if runs else {"ReqNodeList": "node_list", "ExcNodeList": "exclude"}
    found: dict[str, Any] = {name: fields[printed] for printed, name in names.items() if fields.get(printed)}
    found["priority"] = 0 if fields.get("Reason") == NEVER else count(fields.get("Priority", "0"))
    return found


def _range(fields: Mapping[str, str], name: str, default: str = "1") -> tuple[int, int]:
    """A number, or the ends of a range like ``2-4``; the upper end is 0 if there is none."""
    least, _, most = fields.get(name, default).partition("-")
    try:
        return count(least), count(most or "0")
    except ValueError:
        raise ValueError(f"{name}={shown(fields[name])} is not a number") from None


def job_id(fields: Mapping[str, str]) -> str:
    """The number of a job; tasks of arrays have the form ``ARRAY_TASK`` or ``ARRAY_[TASKS]``."""
    if "ArrayJobId" not in fields or "ArrayTaskId" not in fields:
        return fields["JobId"]
    tasks = fields["ArrayTaskId"]
    return f"{fields['ArrayJobId']}_{tasks if tasks.isdigit() else f'[{tasks}]'}"


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
        with findings.noting(where):
            if check_state(_state(fields), where, findings) is not None:
                moments = [_number(fields, name) or None for name in ("start_time", "eligible_time")]
                jobs.append(job_of(where, _as_printed(fields), *moments))
    now = None
    with suppress(ValueError):
        now = _number({"now": content.last_update}, "now")
    return Live(jobs, now)


#: Texts in JSON, and the fields that ``scontrol show job`` prints of them.
_TEXTS = {
    "user_name": "UserId", "account": "Account", "qos": "QOS", "partition": "Partition", "name": "JobName",
    "state_reason": "Reason", "nodes": "NodeList", "required_nodes": "ReqNodeList",
    "excluded_nodes": "ExcNodeList", "resv_name": "Reservation", "tres_alloc_str": "AllocTRES",
    "tres_req_str": "ReqTRES",
    "tres_per_node": "TresPerNode", "tres_per_job": "TresPerJob", "tres_per_task": "TresPerTask",
    "licenses": "Licenses", "features": "Features", "dependency": "Dependency",
}  # fmt: skip

#: The same for whole numbers; those that are 0 tell nothing.
_NUMBERS = {
    "cpus": "NumCPUs", "tasks": "NumTasks", "tasks_per_node": "NtasksPerN:B:S:C", "priority": "Priority",
    "memory_per_cpu": "MinMemoryCPU", "memory_per_node": "MinMemoryNode", "required_switches": "Switches",
    "array_job_id": "ArrayJobId", "array_max_tasks": "ArrayTaskThrottle",
}  # fmt: skip


def _as_printed(fields: Mapping[str, Any]) -> dict[str, str]:
    """The fields that ``scontrol show job`` prints of a job in JSON."""
    found = {printed: _text(fields, name) for name, printed in _TEXTS.items()}
    found |= {printed: f"{int(_number(fields, name) or 0)}" for name, printed in _NUMBERS.items()}
    found = {name: text for name, text in found.items() if text not in ("", "0")}
    cpus, tasks = int(found.get("NumCPUs", "1")), int(found.get("NumTasks", "0"))
    each = int(_number(fields, "cpus_per_task") or 0) or (cpus // tasks if tasks else 1)  # versions differ
    least, most = (int(_number(fields, name) or 0) for name in ("node_count", "max_nodes"))
    found |= {
        "JobState": _state(fields),
        "NumNodes": f"{least or 1}-{most}",
        "CPUs/Task": f"{each}",
        "TimeLimit": _time_limit(fields),
    }
    task = _number(fields, "array_task_id")
    if "ArrayJobId" in found and (
        tasks_of := _text(fields, "array_task_string") or ("" if task is None else f"{task:.0f}")
    ):
        found["ArrayTaskId"] = tasks_of
    elif (job := _number(fields, "job_id")) is None:
        raise ValueError("tells no job_id")
    else:
        found["JobId"] = f"{job:.0f}"
    if "none" in _words(fields.get("shared")) or "true" in _words(fields.get("exclusive")):
        found["OverSubscribe"] = "NO"
    return found


def _state(fields: Mapping[str, Any]) -> str:
    """The first word of the state."""
    for word in _words(fields.get("job_state")):
        return word.upper()
    raise ValueError("tells no job_state")


def _words(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [str(each) for each in values if each not in (None, "")]


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


def _time_limit(fields: Mapping[str, Any]) -> str:
    """As it is printed; a job in JSON that has none has that of its partition."""
    value = fields.get("time_limit")
    if isinstance(value, Mapping) and value.get("infinite"):
        return "UNLIMITED"
    minutes = _number(fields, "time_limit")
    return "Partition_Limit" if minutes is None else written_duration(minutes * 60.0)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) and value not in ("(null)", "N/A") else ""
