"""Listings of jobs, of any kind; and the tables that ``squeue`` prints, as far as their headers tell.

Columns have bars between them, or blanks. With blanks a cell may be empty, or touch the next one; a name may
have blanks itself, and a long time limit moves the rest of its row. A row becomes the fields that ``scontrol
show job`` prints of a job.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import pairwise
from math import isnan
from pathlib import Path
from zoneinfo import ZoneInfo

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.forecast.live import NEVER, OVER, STATES, Live, check_state
from batsched_py.slurm.forecast.scontrol import NOTHING, moment_of, printed_job, read_scontrol, read_squeue
from batsched_py.slurm.reading import Findings, read_text
from batsched_py.slurm.reading import number as number_of
from batsched_py.workload.sources.accounting import duration, written_duration
from batsched_py.workload.sources.slurm_fields import resources

BAR = "|"

#: The column of the names of jobs.
NAME = "NAME"

_WORD = re.compile(r"\S+")
_DIGITS = re.compile(r"[0-9]{1,18}")


class Cutter:
    """Cuts the rows of a table into cells."""

    def __init__(self, header: str, rows: Sequence[str]) -> None:
        self._has_bars = BAR in header
        words = list(_WORD.finditer(header))
        self.names = header.split(BAR) if self._has_bars else [word[0] for word in words]
        self._gaps = [range(before.end(), after.start()) for before, after in pairwise(words)]
        self._starts = [gap.stop for gap in self._gaps]
        self._begins_below_words = all(map(self._is_left_aligned, rows))
        self._blanks = [
            max(gap, key=lambda place: sum(_is_blank(row, place) for row in rows)) for gap in self._gaps
        ]
        """Between the words of the header, where most rows have a blank."""

    def cells(self, row: str) -> list[str]:
        """One text for each column; raises ``ValueError`` if that cannot be told."""
        if self._has_bars:
            found = [cell.strip() for cell in row.split(BAR)]
        elif self._begins_below_words:
            found = _cut(row, self._starts)
        elif all(_is_blank(row, place) for place in self._blanks):
            found = _cut(row, self._blanks)
        else:
            found = self._words(row)
        if len(found) != len(self.names):
            raise ValueError(f"has {len(found)} columns, and the header has {len(self.names)}")
        return found

    def _is_left_aligned(self, row: str) -> bool:
        """Whether each cell begins below the word of the header, after a blank unless columns are wide."""
        cells = _cut(row, self._starts)[1:]
        return all(
            (not cell or not _is_blank(row, gap.stop)) and (len(gap) > 1 or _is_blank(row, gap.start))
            for cell, gap in zip(cells, self._gaps, strict=True)
        )

    def _words(self, row: str) -> list[str]:
        """The words of a row; those of a reason in parentheses, and of the name of a job, are one."""
        words, count = row.split(), len(self.names)
        reason = next((place for place in range(count - 1, len(words)) if words[place][0] == "("), None)
        if reason is not None:
            words[reason:] = [" ".join(words[reason:])]
        surplus = len(words) - count
        if surplus > 0 and NAME in self.names:
            name = self.names.index(NAME)
            words[name : name + surplus + 1] = [" ".join(words[name : name + surplus + 1])]
        return words


def _is_blank(row: str, place: int) -> bool:
    return not row[place : place + 1].strip()


def _cut(row: str, places: Sequence[int]) -> list[str]:
    return [row[begin:end].strip() for begin, end in pairwise([0, *places, len(row) + 1])]


JOB_ID = "JOBID"

#: The columns of ``squeue``, and the fields of ``scontrol show job`` that tell the same.
_FIELDS = {
    JOB_ID: "JobId", "ARRAY_JOB_ID": "ArrayJobId", "ARRAY_TASK_ID": "ArrayTaskId", "PARTITION": "Partition",
    "NAME": "JobName", "USER": "UserId", "ACCOUNT": "Account", "QOS": "QOS", "ST": "JobState",
    "STATE": "JobState", "TIME": "RunTime", "TIME_LIMIT": "TimeLimit", "TIME_LEFT": "TimeLeft",
    "NODES": "NumNodes", "NODELIST": "NodeList", "NODELIST(REASON)": "NodeList", "REASON": "Reason",
    "CPUS": "NumCPUs", "TASKS": "NumTasks", "CPUS_PER_TASK": "CPUs/Task", "PRIORITY": "Priority",
    "START_TIME": "StartTime", "ELIGIBLE_TIME": "EligibleTime", "DEPENDENCY": "Dependency",
    "FEATURES": "Features", "RESERVATION": "Reservation", "LICENSES": "Licenses",
    "REQ_NODES": "ReqNodeList", "EXC_NODES": "ExcNodeList", "OVER_SUBSCRIBE": "OverSubscribe",
    "TRES_PER_NODE": "TresPerNode", "TRES_PER_JOB": "TresPerJob", "TRES_PER_TASK": "TresPerTask",
    "TRES_ALLOC": "TRES", "NTASKS_PER_NODE": "NtasksPerN:B:S:C",
}  # fmt: skip

#: Short words for states.
_STATES = {
    "PD": "PENDING", "R": "RUNNING", "CF": "CONFIGURING", "CG": "COMPLETING", "S": "SUSPENDED",
    "RQ": "REQUEUED", "RH": "REQUEUE_HOLD", "RD": "RESV_DEL_HOLD", "RS": "RESIZING", "SI": "SIGNALING",
    "ST": "STOPPED", "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "DL": "DEADLINE", "F": "FAILED",
    "NF": "NODE_FAIL", "OO": "OUT_OF_MEMORY", "OOM": "OUT_OF_MEMORY", "PR": "PREEMPTED", "RV": "REVOKED",
    "SE": "SPECIAL_EXIT", "SO": "STAGE_OUT", "TO": "TIMEOUT",
}  # fmt: skip

#: Why jobs wait that nobody has released; reasons may be cut.
_HELD = ("JobHeld", "JobHold", "launch failed requeued held", "BadConstraints")

#: What is printed in place of a time.
_NO_TIME = ("NOT_SET", "INVALID")

#: Reasons of which another field tells more.
_TOLD_BY = {"Dependency": "Dependency", "BeginTime": "EligibleTime"}

_ARRAY = re.compile(r"([0-9]+)_(?:\[([0-9,:%-]+)\]|([0-9]+))")
_THOUSANDS = re.compile(r"([0-9]{1,9})([KM])")
_WHOLE = 0xFFFFFFFF
"""What a priority is a part of that is told as a number below 1."""


def read_table(path: Path, lines: Sequence[str], zone: str, moment: float | None, findings: Findings) -> Live:
    """The jobs of a table, which was printed at a moment unless it tells one itself."""
    header = next(place for place, line in enumerate(lines) if is_header(line))
    cutter = Cutter(lines[header], [line for line in lines[header + 1 :] if line.strip()])
    columns = [_column(name) for name in cutter.names]
    if {"ST", "STATE"}.isdisjoint(columns):
        findings.mistake(f"{path}, line {header + 1}", "has no column ST or STATE, which tells what jobs do")
        return Live([], None)
    rows: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines[header + 1 :], start=header + 2):
        if not line.strip() or line == lines[header]:
            continue
        where = f"{path}, line {number}"
        with findings.noting(where):
            fields = _fields(zip(columns, cutter.cells(line), strict=True))
            if check_state(fields["JobState"], where, findings) is not None:
                rows[where] = fields
    _put_limits_on_arrays(rows.values())
    _count_unclear(rows.values(), path, findings)
    now = _printed(lines[0], rows.values(), zone)
    now = moment if now is None else now
    jobs = []
    for place, (where, fields) in enumerate(rows.items()):
        fields.setdefault("Priority", str(len(rows) - place))  # those that come first have the highest
        job = printed_job(where, fields, zone, findings)
        if job is not None:
            ran = _seconds(fields, "RunTime")
            if job.runs and job.started is None and now is not None and ran is not None:
                job.started = now - ran
            jobs.append(job)
    return Live(jobs, now, frozenset(columns))


def _count_unclear(rows: Collection[Mapping[str, str]], path: Path, findings: Findings) -> None:
    """Say for how many jobs a reason is told that another column would tell more of."""
    for reason, column in (("Dependency", "DEPENDENCY"), ("BeginTime", "START_TIME")):
        if count := sum(_is_unclear(fields, reason) for fields in rows):
            what = f"no column {column} tells more of the reason {reason}: no forecast ({count} x)"
            findings.left_out(str(path), what)


def is_header(line: str) -> bool:
    """Whether a line is the header of a table."""
    return not {JOB_ID, "ARRAY_JOB_ID"}.isdisjoint(re.split(r"[\s|]+", line))


def _column(word: str) -> str:
    """The column that a word of the header means, which may be cut; nothing if it is none that counts."""
    known = [word] if word in _FIELDS else [name for name in _FIELDS if word and name.startswith(word)]
    return known[0] if len(known) == 1 else ""


def _fields(cells: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The fields of a job; raises ``ValueError`` if something essential is missing or cut."""
    fields: dict[str, str] = {}
    for column, text in cells:
        if not column or text in NOTHING:
            continue
        if column == "NODELIST(REASON)" and text.startswith("("):
            fields.setdefault("Reason", text.strip("()"))
        elif column == JOB_ID and len(text) > len(fields.get("JobId", "")):
            fields["JobId"] = text
        else:
            fields.setdefault(_FIELDS[column], text)
    _name_tasks(fields)
    fields["JobState"] = _state(fields.get("JobState", ""))
    for name in ("NumNodes", "NumCPUs", "NumTasks"):
        if match := _THOUSANDS.fullmatch(fields.get(name, "")):
            fields[name] = str(int(match[1]) * {"K": 1024, "M": 1024**2}[match[2]])
    _take_total(fields)
    _take_limit(fields)
    _take_priority(fields)
    return fields


def _name_tasks(fields: dict[str, str]) -> None:
    """Tell the tasks of an array by the number of the job, such as ``12_3`` or ``12_[3-8%2]``."""
    name = fields.setdefault("JobId", fields.get("ArrayJobId", ""))
    if "_" in name:
        match = _ARRAY.fullmatch(name)
        if match is None:
            raise ValueError(f"{JOB_ID} {shown(name)} is cut, or no job; print a wider column")
        fields["ArrayJobId"], fields["ArrayTaskId"] = match[1], match[2] or match[3]
    elif not name[:1].isdigit():
        raise ValueError(f"{JOB_ID} {shown(name)} is not the number of a job")


def _state(word: str) -> str:
    """The whole word for a state that is told in short, or cut."""
    if not word:
        raise ValueError("tells no state")
    return _STATES.get(word) or next((name for name in [*STATES, *OVER] if name.startswith(word)), word)


def _take_total(fields: dict[str, str]) -> None:
    """Take processors and memory from what a job has in all."""
    total = resources(fields.get("TRES", ""))
    cpus = int(total.get("cpu", 0))
    if cpus > 0:
        fields.setdefault("NumCPUs", str(cpus))
        if total.get("mem", 0.0) > 0:
            fields["MinMemoryCPU"] = f"{-(-int(total['mem']) // cpus)}K"


def _take_limit(fields: dict[str, str]) -> None:
    """Take the time limit from what is left of it, or else from the partition."""
    ran, left = _seconds(fields, "RunTime"), _seconds(fields, "TimeLeft")
    if left is not None:
        fields.setdefault("TimeLimit", written_duration((ran or 0.0) + left))
    if fields.get("TimeLimit") in (None, *_NO_TIME):
        fields["TimeLimit"] = "Partition_Limit"


def _seconds(fields: Mapping[str, str], name: str) -> float | None:
    """A duration, if one is told."""
    text = fields.get(name)
    if text is None or text in _NO_TIME or (found := duration(text)) < 0:
        return None
    if isnan(found):
        raise ValueError(f"{shown(text)} is not a time like 1-02:03:04")
    return found


def _take_priority(fields: dict[str, str]) -> None:
    """A job that is held, or waits for something that is not told, has the priority 0."""
    reason = fields.get("Reason", "")
    if reason and NEVER.startswith(reason[:20]) and len(reason) > len("Dependency"):
        fields["Reason"] = NEVER
    if reason == "BeginTime" and "StartTime" in fields:
        fields.setdefault("EligibleTime", fields["StartTime"])
    if "." in fields.get("Priority", ""):
        fields["Priority"] = str(round(number_of(fields["Priority"]) * _WHOLE))
    is_held = reason.startswith(_HELD) or fields["JobState"].endswith("_HOLD")
    if is_held or any(_is_unclear(fields, each) for each in _TOLD_BY):
        fields["Priority"] = "0"


def _is_unclear(fields: Mapping[str, str], reason: str) -> bool:
    """Whether a job waits for this reason, and more is not told."""
    return fields.get("Reason") == reason and _TOLD_BY[reason] not in fields


def _put_limits_on_arrays(rows: Iterable[dict[str, str]]) -> None:
    """Tell the limit of an array, like ``%2``, of all its tasks; a table tells it of those that wait."""
    of_arrays = [fields for fields in rows if "ArrayTaskId" in fields]
    told = [(fields["ArrayJobId"], fields["ArrayTaskId"].partition("%")[2]) for fields in of_arrays]
    limits = {array: limit for array, limit in told if limit}
    for fields in of_arrays:
        if fields["ArrayJobId"] in limits:
            fields["ArrayTaskThrottle"] = limits[fields["ArrayJobId"]]


def _printed(first: str, rows: Iterable[Mapping[str, str]], zone: str) -> float | None:
    """When a table was printed: by its first line, or else by a job that runs."""
    with suppress(ValueError):
        date = datetime.strptime(first.strip(), "%a %b %d %H:%M:%S %Y")
        return date.replace(tzinfo=ZoneInfo(zone)).timestamp()
    moments = []
    for fields in rows:
        ran = _seconds(fields, "RunTime")
        with suppress(ValueError):
            start = moment_of(fields, "StartTime", zone)
            if fields["JobState"] == "RUNNING" and ran is not None and start is not None:
                moments.append(start + ran)
    return max(moments, default=None)


def read_live(path: Path, zone: str, findings: Findings, moment: float | None = None) -> Live:
    """The jobs that a file lists, which was printed at a moment unless it tells one itself."""
    text = read_text(path, findings)
    lines = text.splitlines()
    if text.lstrip().startswith("{"):
        live = read_squeue(path, text, findings)
    elif any(map(is_header, lines[:2])):
        live = read_table(path, lines, zone, moment, findings)
    else:
        live = read_scontrol(path, text, zone, findings)
    if not live.jobs and not findings.mistakes:
        findings.mistake(str(path), "there is no job that waits or runs")
    twice = [name for name, count in Counter(job.id for job in live.jobs).items() if count > 1]
    if twice:
        findings.mistake(str(path), f"there are two jobs {shown_name(twice[0])}")
    for job in live.jobs:
        with findings.noting(job.where, f"job {shown_name(job.id)}: "):
            expand(job.fields.get("node_list", ""))
            expand(job.fields.get("exclude", ""))
    # jobs that came before have lower numbers
    live.jobs.sort(key=lambda job: int(digits[0]) if (digits := _DIGITS.match(job.id)) else 0)
    return live
