"""What Slurm remembers of jobs: ``sacct --parsable2``, one line a job and one for each of its steps."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.sources.accounting import (
    Account,
    most_in_use,
    named_columns,
    names_of,
    zone_named,
)
from batsched_py.workload.sources.base import Source, lost_of, read_text
from batsched_py.workload.sources.quantities import (
    count_hosts,
    distinct_texts,
    duration,
    for_each,
    memory,
    written_duration,
)
from batsched_py.workload.swf import SwfLog
from batsched_py.workload.wall_clock import on_clock, start_of

if TYPE_CHECKING:
    import pandas as pd

Texts = NDArray[Any]

COMPLETED: Final = 1
FAILED: Final = 0
CANCELLED: Final = 5
#: The states of jobs that are over, and the status that the log gives them.
STATES: Final = {
    "COMPLETED": COMPLETED,
    "FAILED": FAILED,
    "TIMEOUT": FAILED,
    "OUT_OF_MEMORY": FAILED,
    "NODE_FAIL": FAILED,
    "BOOT_FAIL": FAILED,
    "DEADLINE": FAILED,
    "LAUNCH_FAILED": FAILED,
    "PREEMPTED": FAILED,
    "REQUEUED": FAILED,
    "CANCELLED": CANCELLED,
    "REVOKED": CANCELLED,
}
UNFINISHED: Final = ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "STOPPED")
NEEDED: Final = ("JobID", "Submit", "State")
_UNKNOWN_TIMES: Final = ("", "Unknown", "None", "N/A", "NONE")
_PENDING_TASKS: Final = re.compile(r"(\d+)_\[([\d,-]+)(?::\d+)?(?:%\d+)?\]")
_WRITTEN: Final = (
    "JobID", "User", "Group", "JobName", "Partition", "Submit", "Start", "End", "State", "ElapsedRaw",
    "Timelimit", "ReqCPUS", "AllocCPUS", "ReqMem", "AllocTRES",
)  # fmt: skip
_LENGTH_WITHOUT_ZONE: Final = len("2023-05-01T08:00:00")
_PIECE: Final = 10_000


@dataclass(frozen=True)
class Sacct(Source):
    """The text of Slurm's ``sacct --parsable2 --allusers --duplicates``, at least JobID, Submit and State.

    Better with User, Group, JobName, Partition, Start, End, ElapsedRaw, Timelimit, ReqCPUS, AllocCPUS,
    ReqMem, MaxRSS, TotalCPU, AllocTRES and NodeList, too. Each task of an array and each attempt of a job
    that was requeued is a job of its own; an attempt names the one before it as its preceding job. Steps only
    tell how much memory was used. A job that was cancelled before it started has a run time of 0 and waited
    until then. Beyond the format the log has the columns ``id``, ``state``, ``gpus``, ``nodes``, ``hosts``.
    """

    name = "sacct"
    endings = (".sacct", ".psv")

    zone: Annotated[str, Meta(description="Time zone of times that have none of their own.")] = "UTC"

    def read(self, path: Path) -> SwfLog:
        """Read a log."""
        account = Account(path)
        table = _jobs(_table(path, account), account)
        moments = {
            name: _moments(_column(table, name, "Unknown"), self.zone, account)
            for name in ("Submit", "Start", "End")
        }
        good = ~np.isnan(moments["Submit"])
        for row in np.flatnonzero(~good).tolist():
            text = _column(table, "Submit", "")[row]
            account.blame(
                int(table["line"].iloc[row]), f"Submit {text[:25]!r} is no time", "Submit is no time"
            )
        table = table[good]
        times = {name: column[good] for name, column in moments.items()}
        if not len(table):
            return account.log({"submit": np.empty(0)}, {})
        origin = float(np.floor(times["Submit"].min()))
        columns, more = self._columns(table, times, origin, account)
        named, names = named_columns(
            {
                "user": _column(table, "User", ""),
                "group": _column(table, "Group", ""),
                "executable": _column(table, "JobName", ""),
                "partition": _column(table, "Partition", ""),
            }
        )
        header = {
            "Version": "2.2",
            "Computer": "Slurm",
            "UnixStartTime": f"{origin:.0f}",
            "TimeZoneString": self.zone,
            "MaxProcs": str(self._machine(columns)),
            **names,
        }
        account.guessed["size of the machine: the most processors that were in use at once"] = 1
        return account.log(columns | named, header, more=more)

    def _columns(
        self, table: pd.DataFrame, times: dict[str, NDArray[Any]], origin: float, account: Account
    ) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
        """What the records say, as columns of a log and beyond."""
        submit, start, end = times["Submit"], times["Start"], times["End"]
        states = _states(table)
        elapsed = _elapsed(table, start, end)
        never_ran = (elapsed <= 0) & (np.isnan(start) | np.isin(states, ("CANCELLED", "REVOKED")))
        begun = np.where(never_ran, end, start)
        tres = _column(table, "AllocTRES", "")
        asked_tres = _column(table, "ReqTRES", "")
        requested = _first_known(
            _number(_column(table, "ReqCPUS", "")),
            for_each(asked_tres, lambda text: _tres(text).get("cpu", -1.0)),
        )
        allocated = _first_known(
            _number(_column(table, "AllocCPUS", "")),
            _number(_column(table, "NCPUS", "")),
            for_each(tres, lambda text: _tres(text).get("cpu", -1.0)),
        )
        unsized = (requested <= 0) & (allocated <= 0)
        account.guessed["size of a job that says none: 1"] += int(unsized.sum())
        requested = np.where(requested > 0, requested, np.where(allocated > 0, allocated, 1))
        allocated = np.where(never_ran, 0, np.where(allocated > 0, allocated, requested))
        hosts = _column(table, "NodeList", "")
        hosts = np.where(np.isin(hosts, ("None assigned", "(null)")), "", hosts)
        nodes = _first_known(_number(_column(table, "NNodes", "")), for_each(hosts, count_hosts))
        limit = for_each(_column(table, "Timelimit", ""), duration)
        minutes = _number(_column(table, "TimelimitRaw", ""))
        columns = {
            "submit": submit - origin,
            "wait": np.where(np.isnan(begun), -1.0, np.maximum(begun - submit, 0)),
            "run_time": np.where(never_ran, 0.0, np.maximum(elapsed, 0)),
            "allocated_processors": allocated,
            "average_cpu_time": _per(for_each(_column(table, "TotalCPU", ""), duration), allocated),
            "used_memory": table["MaxRSS of steps"].to_numpy(),
            "requested_processors": requested,
            "requested_time": _first_known(
                np.nan_to_num(limit, nan=-1.0), np.where(minutes >= 0, 60 * minutes, -1.0)
            ),
            "requested_memory": _requested_memory(_column(table, "ReqMem", ""), requested, nodes),
            "status": np.array([STATES[state] for state in states.tolist()]),
            "preceding_job": _preceding(table, submit),
        }
        gpus = for_each(np.where(tres == "", asked_tres, tres), _gpus)
        more = {
            "id": table["JobID"].to_numpy(dtype=str),
            "state": states,
            "gpus": gpus.astype(np.int64),
            "nodes": nodes.astype(np.int64),
            "hosts": hosts,
        }
        return columns, more

    def _machine(self, columns: dict[str, NDArray[Any]]) -> int:
        starts = columns["submit"] + columns["wait"]
        in_use = most_in_use(starts, starts + columns["run_time"], columns["allocated_processors"])
        return max(in_use, int(columns["requested_processors"].max()))

    def write(self, path: Path, log: SwfLog) -> None:
        """Write what sacct would have printed."""
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write("|".join(_WRITTEN) + "\n")
            file.writelines("\n".join(map("|".join, piece)) + "\n" for piece in self._lines(log))

    def _lines(self, log: SwfLog) -> Iterator[list[tuple[str, ...]]]:
        """The fields of each line, in pieces."""
        names = {column: names_of(log, column) for column in ("user", "group", "executable", "partition")}
        zone, origin = zone_named(self.zone), start_of(log) or 0
        for first in range(0, len(log), _PIECE):
            positions = np.arange(first, min(first + _PIECE, len(log)))
            part = log.select(positions)
            starts = part.submit + np.maximum(part.wait, 0)
            never_ran = (part.status == CANCELLED) & (part.run_time == 0)
            yield list(
                zip(
                    part.more.get("id", part.job_number).astype(str).tolist(),
                    names["user"][positions].tolist(),
                    names["group"][positions].tolist(),
                    names["executable"][positions].tolist(),
                    names["partition"][positions].tolist(),
                    _written_moments(origin + part.submit, zone),
                    np.where(never_ran, "None", _written_moments(origin + starts, zone)).tolist(),
                    _written_moments(origin + starts + part.run_time, zone),
                    _written_states(part),
                    [f"{seconds:.0f}" for seconds in part.run_time.tolist()],
                    _each(
                        part.requested_time, lambda time: written_duration(time) if time > 0 else "UNLIMITED"
                    ),
                    part.requested_processors.astype(str).tolist(),
                    part.allocated_processors.astype(str).tolist(),
                    [f"{size:.0f}Kc" if size > 0 else "" for size in part.requested_memory.tolist()],
                    [f"gres/gpu={count}" if count > 0 else "" for count in _gpus_of(part)],
                    strict=True,
                )
            )

    def lost(self, log: SwfLog) -> dict[str, int]:
        """Waits are kept as starts; names of hosts and what else was known are not."""
        return lost_of(log, ("average_cpu_time", "used_memory", "queue"), kept=("id", "state", "gpus"))

    def recognises(self, beginning: bytes) -> bool:
        """The first line names columns."""
        return set(beginning.split(b"\n")[0].strip().split(b"|")) >= {name.encode() for name in NEEDED}


def _table(path: Path, account: Account) -> pd.DataFrame:
    """The lines that have as many fields as the first, each with its number."""
    import pandas as pd

    lines = read_text(path).split("\n")
    names = lines[0].strip("\r\ufeff ").rstrip("|").split("|")
    missing = [name for name in NEEDED if name not in names]
    if missing:
        raise InputError(
            f"{path}: line 1: not the header of sacct --parsable2: there is no column {missing[0]}"
        )
    good, numbers = [], []
    for number, line in enumerate(lines[1:], start=2):
        text = line.rstrip("\r").removesuffix("|") if line.count("|") == len(names) else line.rstrip("\r")
        if text.count("|") == len(names) - 1:
            good.append(text)
            numbers.append(number)
        elif text.strip():
            fields = text.count("|") + 1
            account.blame(number, f"{fields} fields instead of {len(names)}", "another number of fields")
    records = StringIO("\n".join(["|".join(names), *good]))
    table = pd.read_csv(records, sep="|", dtype=object, keep_default_na=False, quoting=csv.QUOTE_NONE)
    return table.assign(line=numbers)


def _jobs(table: pd.DataFrame, account: Account) -> pd.DataFrame:
    """The records of finished jobs, with what their steps say, and one for each task of an array."""
    import pandas as pd

    ids = table["JobID"]
    steps = ids.str.contains(".", regex=False)
    peak = for_each(_column(table, "MaxRSS", ""), lambda text: memory(text)[0])
    told = np.flatnonzero(peak >= 0)
    used = pd.Series(peak[told]).groupby(ids.iloc[told].str.split(".").str[0].to_numpy()).max()
    jobs = table[~steps]
    jobs = jobs.assign(**{"MaxRSS of steps": jobs["JobID"].map(used).astype(float).fillna(-1.0)})
    account.left_out["step of a job"] += int(steps.sum())
    states = _states(jobs)
    for state in UNFINISHED:
        account.left_out[f"job is {state.lower()}"] += int((states == state).sum())
    known = np.isin(states, list(STATES))
    for row in np.flatnonzero(~known & ~np.isin(states, UNFINISHED)).tolist():
        state = jobs["State"].iloc[row]
        account.blame(int(jobs["line"].iloc[row]), f"State {state[:25]!r} is unknown", "State is unknown")
    jobs = jobs[known]
    for kind in [kind for kind, count in account.left_out.items() if not count]:
        del account.left_out[kind]
    tasks = [_tasks(name) for name in jobs["JobID"].tolist()]
    counts = [len(names) for names in tasks]
    if sum(counts) > len(counts):
        account.guessed["task of an array that was cancelled as a whole"] += sum(c for c in counts if c > 1)
        jobs = jobs.loc[jobs.index.repeat(counts)]
        jobs = jobs.assign(JobID=[name for names in tasks for name in names])
    return jobs.reset_index(drop=True)


def _tasks(name: str) -> list[str]:
    """The tasks that a record like ``12_[3-5,9]`` stands for; any other record stands for itself."""
    parts = _PENDING_TASKS.fullmatch(name)
    if parts is None:
        return [name]
    tasks = []
    for each in parts[2].split(","):
        first, _, last = each.partition("-")
        tasks += [f"{parts[1]}_{task}" for task in range(int(first), int(last or first) + 1)]
    return tasks


def _column(table: pd.DataFrame, name: str, otherwise: str) -> Texts:
    if name in table:
        return table[name].to_numpy(dtype=object)
    return np.full(len(table), otherwise, dtype=object)


def _states(table: pd.DataFrame) -> Texts:
    """The first word of each state: it may be ``CANCELLED by 1001``, and ``COMPLETED+`` when cut off."""
    codes, distinct = distinct_texts(_column(table, "State", ""))
    firsts = np.array([(text.split() or [""])[0].rstrip("+") for text in distinct], dtype=str)
    return firsts[codes] if len(distinct) else np.empty(0, dtype=str)


def _moments(texts: Texts, zone: str, account: Account) -> NDArray[np.float64]:
    """Unix times; NaN for what is unknown or no time. A number is one already; a zone may stand behind."""
    import pandas as pd

    series = pd.Series(texts, dtype=object)
    known = series.where(~series.isin(_UNKNOWN_TIMES), "").to_numpy()
    numbers = pd.to_numeric(pd.Series(known), errors="coerce").to_numpy(dtype=np.float64)
    zoned = series.str.len().to_numpy() > _LENGTH_WITHOUT_ZONE
    moments = numbers.copy()
    with_zone = np.isnan(numbers) & zoned
    if with_zone.any():
        moments[with_zone] = _seconds(
            pd.to_datetime(known[with_zone], utc=True, errors="coerce", format="ISO8601")
        )
    naive = np.isnan(numbers) & ~zoned
    if naive.any():
        local = pd.to_datetime(known[naive], errors="coerce", format="ISO8601")
        summer, winter = (
            local.tz_localize(
                zone_named(zone), ambiguous=np.full(len(local), first), nonexistent="shift_forward"
            )
            for first in (True, False)
        )
        account.guessed["time in the hour that comes twice when summer time ends"] += int(
            ((summer != winter) & ~local.isna()).sum()
        )
        moments[naive] = _seconds(summer)
    return moments


def _seconds(moments: pd.DatetimeIndex) -> NDArray[np.float64]:
    import pandas as pd

    naive = moments.tz_convert("UTC").tz_localize(None)
    return ((naive - pd.Timestamp(0)) / pd.Timedelta(seconds=1)).to_numpy(dtype=np.float64)


def _elapsed(table: pd.DataFrame, start: NDArray[Any], end: NDArray[Any]) -> NDArray[np.float64]:
    """How long each job ran: what is said, else from its start to its end."""
    said = _first_known(
        _number(_column(table, "ElapsedRaw", "")),
        np.nan_to_num(for_each(_column(table, "Elapsed", ""), duration), nan=-1.0),
    )
    return np.where(said >= 0, said, np.nan_to_num(end - start, nan=0.0))


def _number(texts: Texts) -> NDArray[np.float64]:
    return for_each(texts, lambda text: float(text) if text.isdigit() else -1.0)


def _first_known(*columns: NDArray[Any]) -> NDArray[Any]:
    """For each job the first value that is not negative, else -1."""
    known = columns[-1]
    for column in columns[-2::-1]:
        known = np.where(column >= 0, column, known)
    return known


def _tres(text: str) -> dict[str, float]:
    """The numbers in ``cpu=8,mem=4G,gres/gpu:a100=2``."""
    found = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        found[key] = float(value) if value.replace(".", "", 1).isdigit() else memory(value)[0]
    return found


def _gpus(text: str) -> float:
    """GPUs of any type; where types are told apart, they are not counted twice."""
    tres = _tres(text)
    if "gres/gpu" in tres:
        return tres["gres/gpu"]
    return sum(value for key, value in tres.items() if key.startswith("gres/gpu:"))


def _requested_memory(texts: Texts, sizes: NDArray[Any], nodes: NDArray[Any]) -> NDArray[np.float64]:
    """Kilobytes for each processor."""
    amounts = for_each(texts, lambda text: memory(text)[0])
    kinds = for_each(texts, lambda text: "cn".find(memory(text)[1] or " "))
    whole = np.where(kinds == 1, amounts * np.maximum(nodes, 1), amounts)
    return np.where(amounts <= 0, -1.0, np.where(kinds == 0, amounts, np.round(whole / np.maximum(sizes, 1))))


def _per(times: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.float64]:
    known = (times >= 0) & (sizes > 0)
    return np.where(known, times / np.where(known, sizes, 1), -1.0)


def _preceding(table: pd.DataFrame, submit: NDArray[Any]) -> NDArray[np.int64]:
    """For each attempt of a job but the first, the number that the attempt before it has in the log."""
    order = np.argsort(submit, kind="stable")
    codes, _ = distinct_texts(table["JobID"].to_numpy()[order])
    by_id = np.argsort(codes, kind="stable")
    again = codes[by_id][1:] == codes[by_id][:-1]
    before = np.full(len(codes), -1, dtype=np.int64)
    before[by_id[1:][again]] = by_id[:-1][again] + 1
    preceding = np.empty_like(before)
    preceding[order] = before
    return preceding


def _written_moments(moments: NDArray[Any], zone: tzinfo) -> list[str]:
    """Moments of Unix time on the clock of a zone, with its offset."""
    local = on_clock(np.round(moments), zone)
    texts = local.astype("datetime64[s]").astype(str).tolist()
    offsets = _each(local - np.round(moments), _written_offset)
    return [text + offset for text, offset in zip(texts, offsets, strict=True)]


def _each(numbers: NDArray[Any], write: Callable[[float], str]) -> list[str]:
    """Each number as text; each distinct one is written once."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    return np.array([write(number) for number in distinct.tolist()], dtype=object)[codes].tolist()


def _written_offset(seconds: float) -> str:
    hours, minutes = divmod(abs(int(seconds)) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}{minutes:02}"


def _written_states(log: SwfLog) -> list[str]:
    if "state" in log.more:
        return log.more["state"].tolist()
    names = {COMPLETED: "COMPLETED", FAILED: "FAILED", CANCELLED: "CANCELLED"}
    return [names.get(status, "COMPLETED") for status in log.status.tolist()]


def _gpus_of(log: SwfLog) -> list[int]:
    return log.more["gpus"].tolist() if "gpus" in log.more else [0] * len(log)
