"""Accounting logs of PBS and Torque: one line for each event of a job."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.output_files import writing_text
from batsched_py.workload.sources import Source, accounting, count_lost, open_text
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.swf.conventions import CANCELLED, COMPLETED, FAILED
from batsched_py.workload.swf.log import SwfLog, on_clock, start_of

#: How a shell tells of a program that was ended by SIGTERM or SIGKILL; PBS adds 256 instead of 128.
_TERMINATED: Final = (256 + 15, 256 + 9, 128 + 15, 128 + 9)
_LINE: Final = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)")
#: Columns of the log that are names.
_NAMED: Final = ("user", "group", "executable", "queue")
#: Columns beside the log, and the fields that say them.
_KEPT: Final = {"account": "account", "priority": "Resource_List.priority", "reservation": "resvname"}
_PIECE: Final = 10_000
_LARGEST: Final = 2.0**53
_NEVER_STARTED: Final = "job was deleted before it started, which says nothing of its size"


@dataclass(frozen=True)
class Pbs(Source):
    """Accounting logs of PBS and Torque. Each record ``E``, the end of a job's execution, is a job.

    A job that was run again has an ``E`` record for each time, and the later one names the earlier one as its
    preceding job. Of jobs that were deleted before they started, the logs say too little. Beyond the format
    the log has the columns ``id``, ``exit_status``, ``gpus`` and ``nodes``, and ``account``, ``priority`` and
    ``reservation`` where the file says them.
    """

    name = "pbs"
    endings = (".pbs", ".acct")
    keeps_cancelled = False

    zone: Annotated[str, Meta(description="Time zone of the machine.")] = "UTC"

    def read(self, path: Path) -> SwfLog:
        """Read a log."""
        account = Account(path)
        with open_text(path) as file:
            lines = enumerate(file.read().split("\n"), start=1)
        found = (_record(text, line, account) for line, text in lines)
        records = [record for record in found if record is not None]
        if not records:
            return account.log({"submit": np.empty(0)}, {})
        columns = {name: np.array([record[name] for record in records]) for name in records[0]}
        columns |= {name: text.astype(object) for name, text in columns.items() if text.dtype.kind == "U"}
        origin = float(columns["submit"].min())
        columns["submit"] = columns["submit"] - origin
        named, names = accounting.named_columns({column: columns.pop(column) for column in _NAMED})
        more = {name: columns.pop(name) for name in ("id", "exit_status", "gpus", "nodes", *_KEPT)}
        more = {name: column for name, column in more.items() if name not in _KEPT or column.any()}
        starts = columns["submit"] + columns["wait"]
        sizes = columns["allocated_processors"]
        machine = max(accounting.most_in_use(starts, starts + columns["run_time"], sizes), int(sizes.max()))
        header = account.header("PBS", origin, self.zone, machine) | names
        columns["preceding_job"] = accounting.preceding_jobs(more["id"], columns["submit"])
        return account.log(columns | named, header, more=more)

    def write(self, path: Path, log: SwfLog) -> None:
        """Write an ``E`` record for each job that was executed."""
        log = log.select(~log.never_started)
        names = {column: accounting.names_of(log, column) for column in _NAMED}
        with writing_text(path) as file:
            for first in range(0, len(log), _PIECE):
                piece = np.arange(first, min(first + _PIECE, len(log)))
                named = {column: values[piece] for column, values in names.items()}
                file.writelines(self._lines(log.select(piece), named))

    def _lines(self, log: SwfLog, names: dict[str, NDArray[Any]]) -> list[str]:
        origin = start_of(log) or 0
        starts = origin + log.submit + np.maximum(log.wait, 0)
        ends = starts + log.run_time
        queued = (origin + log.submit).astype(np.int64)
        gpus = log.more.get("gpus", np.zeros(len(log), dtype=np.int64))
        statuses = np.select([log.status == COMPLETED, log.status == CANCELLED], [0, _TERMINATED[0]], 1)
        memory = log.requested_memory.tolist()
        fields: dict[str, list[Any]] = {
            "user": names["user"].tolist(),
            "group": names["group"].tolist(),
            "jobname": names["executable"].tolist(),
            "queue": names["queue"].tolist(),
            "ctime": queued.tolist(),
            "qtime": queued.tolist(),
            "etime": queued.tolist(),
            "start": starts.astype(np.int64).tolist(),
            "Resource_List.ncpus": log.requested_processors.tolist(),
            "Resource_List.walltime": [_clock(time) for time in log.requested_time.tolist()],
            "Resource_List.pmem": [f"{size:.0f}kb" if size > 0 else "" for size in memory],
            "Resource_List.ngpus": [count or "" for count in gpus.tolist()],
            "end": ends.astype(np.int64).tolist(),
            "Exit_status": statuses.tolist(),
            "resources_used.ncpus": log.processors.tolist(),
            "resources_used.walltime": [_clock(time) for time in log.run_time.tolist()],
        }
        texts = [[f"{key}={value}" * (value != "") for value in column] for key, column in fields.items()]
        clock = on_clock(np.round(ends), accounting.zone_named(self.zone)).astype("datetime64[s]")
        ids = log.more.get("id", log.job_number).tolist()
        return [
            f"{time[5:7]}/{time[8:10]}/{time[:4]} {time[11:]};E;{name};{' '.join(filter(None, row))}\n"
            for time, name, row in zip(clock.astype(str).tolist(), ids, zip(*texts, strict=True), strict=True)
        ]

    def lost(self, log: SwfLog) -> dict[str, int]:
        """What else was known."""
        columns = ("average_cpu_time", "used_memory", "partition", "think_time")
        return count_lost(log, columns, kept=("id", "exit_status", "gpus"))

    def recognises(self, beginning: bytes) -> bool:
        """The first line is a record."""
        return _LINE.match(beginning.split(b"\n")[0].decode(errors="replace")) is not None


def _record(text: str, line: int, account: Account) -> dict[str, Any] | None:
    """What an ``E`` record says; nothing for other lines."""
    if not text.strip():
        return None
    parts = _LINE.match(text.rstrip("\r"))
    if parts is None:
        account.reject(line, "not DATE TIME;TYPE;JOB;TEXT", "not a record")
        return None
    if parts[2] != "E":
        kind = _NEVER_STARTED if parts[2] == "D" and "Exit_status" not in text else "record that ends no job"
        account.left_out[kind] += 1
        return None
    try:
        return _job(parts[3], dict(pair.partition("=")[::2] for pair in parts[4].split()), account)
    except KeyError as error:
        account.reject(line, f"there is no {error}", "a field is missing")
    except ValueError as error:
        account.reject(line, str(error), "a field is no number")
    return None


def _job(name: str, fields: dict[str, str], account: Account) -> dict[str, Any]:
    """What the fields of an ``E`` record say; KeyError or ValueError where one is missing or no number."""
    start, end = _number(fields["start"]), _number(fields["end"])
    queued = _number(fields.get("qtime") or fields.get("ctime") or fields["etime"])
    requested = _requested(fields)
    slots = _exec_slots(fields.get("exec_host", ""))
    allocated = _known(fields.get("resources_used.ncpus")) or slots or requested
    if allocated <= 0:
        account.guessed["size of a job that says none: 1"] += 1
        allocated = requested = 1
    used = accounting.duration(fields.get("resources_used.walltime", ""))
    run_time = used if used >= 0 else end - start
    limit = accounting.duration(fields.get("Resource_List.walltime", ""))
    exit_status = int(_number(fields.get("Exit_status") or "0"))
    is_cancelled = exit_status in _TERMINATED and not 0 < limit <= run_time  # by a signal, before its limit
    unsuccessful = CANCELLED if is_cancelled else FAILED
    memory = accounting.memory(fields.get("Resource_List.pmem", ""))[0]
    memory_of_all = accounting.memory(fields.get("Resource_List.mem", ""))[0]
    return {
        "submit": queued,
        "wait": max(start - queued, 0.0),
        "run_time": max(run_time, 0.0),
        "allocated_processors": allocated,
        "average_cpu_time": _share(accounting.duration(fields.get("resources_used.cput", "")), allocated),
        "used_memory": _share(accounting.memory(fields.get("resources_used.mem", ""))[0], allocated),
        "requested_processors": requested if requested > 0 else allocated,
        "requested_time": limit if limit > 0 else -1.0,
        "requested_memory": memory if memory > 0 else _share(memory_of_all, requested or allocated),
        "status": COMPLETED if exit_status == 0 else unsuccessful,
        "user": fields.get("user", ""),
        "group": fields.get("group", ""),
        "executable": fields.get("jobname", ""),
        "queue": fields.get("queue", ""),
        "id": name,
        "exit_status": exit_status,
        "gpus": _known(fields.get("Resource_List.ngpus"))
        or _in_chunks(fields.get("Resource_List.select", ""), "ngpus"),
        "nodes": _known(fields.get("Resource_List.nodect")),
        **{name: fields.get(key, "").strip('"') for name, key in _KEPT.items()},
    }


def _number(text: str) -> float:
    number = float(text)
    if not abs(number) <= _LARGEST:
        raise ValueError(f"{text[:25]} is no number that a log has")
    return number


def _requested(fields: dict[str, str]) -> int:
    """Processors asked for, in the dialects there are: ``ncpus``, ``select`` of PBS, ``nodes`` of Torque."""
    if "Resource_List.select" in fields:
        return _in_chunks(fields["Resource_List.select"], "ncpus")
    if "Resource_List.nodes" in fields:
        return _in_chunks(fields["Resource_List.nodes"], "ppn")
    return _known(fields.get("Resource_List.ncpus") or fields.get("Resource_List.procs"))


def _in_chunks(text: str, key: str) -> int:
    """The sum over chunks like ``2:ncpus=8:ngpus=1+1``; one processor where nothing is said."""
    total = 0
    for chunk in filter(None, text.split("+")):
        count, *rest = chunk.split(":")
        values = dict(part.partition("=")[::2] for part in rest)
        otherwise = 0 if key == "ngpus" else 1
        each = accounting.whole(values[key]) if values.get(key) else otherwise
        if each is None:
            raise ValueError(f"{key}={values[key][:25]} is no number")
        total += each * (1 if (chunks := accounting.whole(count)) is None else chunks)
    return total


def _exec_slots(text: str) -> int:
    """Processors in ``n1/0+n1/1`` (one each) or ``n1/0*8+n2/0*8`` or ``n1/0-7``."""
    total = 0
    for place in filter(None, text.split("+")):
        slots = place.partition("/")[2]
        count = accounting.whole(slots.partition("*")[2])
        total += accounting.length_of(slots) if count is None else count
    return total


def _share(amount: float, size: int) -> float:
    return round(amount / size, 2) if amount >= 0 and size > 0 else -1.0


def _known(text: str | None) -> int:
    return accounting.whole(text or "") or 0


def _clock(seconds: float) -> str:
    if seconds < 0:
        return ""
    hours = int(seconds // 3600)
    return f"{hours:02}:{accounting.written_duration(seconds % 3600)[3:]}"
