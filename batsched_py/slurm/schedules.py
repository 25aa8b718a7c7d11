"""When jobs were submitted, started and ended, recorded or simulated, as a table.

The columns are ``submit``, ``eligible`` (when a job was not held by itself any more), ``start``, ``end`` and
``size``, and as texts ``partition``, ``account`` and ``user``, empty where nothing tells them. The names of
jobs are the index.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from batsched_py.analysis.absences import held_beside
from batsched_py.analysis.schedule import read_schedule, started
from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.shown import shown
from batsched_py.slurm.policy.job import fields_of
from batsched_py.slurm.policy.slurm import REQUEUED
from batsched_py.workload.batsim_json import read_batsim_json
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import count_hosts, names_of

#: The columns of a recorded scenario.
RECORDED = ("number", "submit", "eligible", "start", "end", "state", "nodes")

_TIMES = ("submit", "eligible", "start", "end")

_TEXTS = ("partition", "account", "user")


def read_jobs(path: Path, zone: str) -> pd.DataFrame:
    """The jobs that ran, of a recorded ``.csv``, a log of ``sacct``, a ``jobs.csv`` or a folder with one."""
    if path.is_dir():
        found = sorted(path.glob("*jobs.csv"))
        if len(found) != 1:
            raise InputError(f"{path}: there is not one jobs.csv here, but {len(found)}; name the file")
        path = found[0]
    try:
        head = read_input(path)[:4096].decode(errors="replace").partition("\n")[0].strip()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if set(RECORDED) <= set(head.split(",")):
        return _read_recording(path)
    if "job_id" in head.split(","):
        held = {name.rpartition("!")[2]: job.eligible for name, job in held_beside(path).items()}
        return simulated_jobs(read_schedule(path), held)
    return _read_log(path, zone)


def _read_recording(path: Path) -> pd.DataFrame:
    """What was recorded of a real Slurm; jobs that never ran are left out."""
    rows = []
    reader = csv.DictReader(StringIO(read_input(path).decode(errors="replace")))
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise InputError(f"{where}: has another number of fields than the first line")
        if not row["start"] or not row["end"] or not row["nodes"]:
            continue
        try:
            times = [float(row[name] or row["submit"]) for name in _TIMES]
        except ValueError:
            raise InputError(f"{where}: submit, eligible, start and end are not all numbers") from None
        rows.append((row["number"], *times, max(count_hosts(row["nodes"]), 1)))
    if not rows:
        raise InputError(f"{path}: no job of this recording ran")
    names = [row[0] for row in rows]
    table = pd.DataFrame([row[1:] for row in rows], index=names, columns=[*_TIMES, "size"])
    return _unique(table.assign(**dict.fromkeys(_TEXTS, "")), path)


def simulated_jobs(schedule: pd.DataFrame, held: Mapping[str, float | None]) -> pd.DataFrame:
    """The jobs of a simulation; some were held until a time.

    Times are whole seconds, rounded down as Slurm does. Of a job that went back into the queue, the last
    execution counts, as in a log of ``sacct``; it is not eligible at once.
    """
    ran = started(schedule)
    again = ran["metadata"].str.contains(r"(?:^| )restart=")
    ids = ran["job_id"].astype(str)
    firsts = ids.where(~again, ids.str.rpartition("#")[0])
    requeued = set(firsts[ran["metadata"].str.contains(r"(?:^| )requeued=")])
    is_last = ~firsts.duplicated(keep="last")
    ran, names = ran[is_last], firsts[is_last].tolist()
    submit = ran["submission_time"].tolist()
    table = pd.DataFrame(
        {
            "submit": submit,
            "eligible": [
                time + REQUEUED if name in requeued else held.get(name) or time
                for name, time in zip(names, submit, strict=True)
            ],
            "start": ran["starting_time"].to_numpy(),
            "end": ran["finish_time"].to_numpy(),
            "size": ran["requested_number_of_resources"].to_numpy(),
        },
        index=names,
    )
    table[[*_TIMES]] = np.floor(table[[*_TIMES]])
    return table.assign(**dict.fromkeys(_TEXTS, ""))


def _read_log(path: Path, zone: str) -> pd.DataFrame:
    """The jobs of a log of ``sacct``, named as the importer names them."""
    log = read_log(path, "sacct", {"zone": zone})
    submit = log.submit - log.submit.min()
    account = log.more.get("account")
    table = pd.DataFrame(
        {
            "submit": submit,
            "eligible": submit + log.more.get("eligible", 0.0),
            "start": submit + log.wait,
            "end": submit + log.wait + log.run_time,
            "size": log.processors,
            "partition": names_of(log, "partition"),
            "account": "" if account is None else account.astype(str),
            "user": names_of(log, "user"),
        },
        index=log.job_number.astype(str).tolist(),
    )
    return table[(log.wait >= 0) & ~log.never_started]


def with_workload(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table with what a workload says of its jobs: sizes, partitions, accounts and users."""
    known = {job.name: _told(job) for job in read_batsim_json(path, "w0").jobs}
    told = pd.DataFrame.from_dict(known, orient="index", columns=["begin", "size", *_TEXTS])
    told = told.reindex(table.index)
    told = told.where(told.notna() & (told != ""))
    eligible = np.maximum(table["eligible"], table["submit"] + told.pop("begin").fillna(0.0).astype(float))
    return table.assign(
        eligible=eligible, **{name: told[name].fillna(table[name]) for name in told.columns}
    ).astype({"size": np.int64})


def _told(job: Job) -> tuple[float, int, str, str, str]:
    fields = fields_of(job)
    partitions = ",".join(job.extra.get("request", {}).get("partitions", ()))
    return fields.begin, job.size, partitions, fields.account, job.user or ""


def _unique(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    if not table.index.is_unique:
        twice = table.index[table.index.duplicated()][0]
        raise InputError(f"{path}: there are two jobs called {shown(str(twice))}")
    return table
