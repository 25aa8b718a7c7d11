"""Who used a cluster, how long jobs waited, and what became of the rest of it: from a log of ``sacct``.

Hours count where they were used: those of a job that runs over the end of a month belong to both months.
Waits and slowdowns belong to the month in which a job was submitted. What a log cannot tell is unknown here,
and never zero.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.slurm.capacity import HOUR, Capacity, Level, Levels, Machine, down, reserved, spans_of
from batsched_py.slurm.comparison import read_jobs
from batsched_py.slurm.conf import read_cluster
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.sources.sacct import STEP
from batsched_py.workload.swf.log import Floats, SwfLog, start_of

_JOULES_OF_KWH: Final = 3.6e6

#: Run times below this count as this in slowdowns, in seconds.
BOUND: Final = 10.0

#: The ways in which jobs are grouped, beside months.
GROUPINGS: Final = ("partition", "account", "qos", "user")

#: How jobs end whose nodes failed, and how those that failed themselves.
_LOST: Final = ("NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED")
_FAILED: Final = ("FAILED", "OUT_OF_MEMORY")


class Use(Struct, frozen=True, kw_only=True):
    """What some jobs had, and how long they waited; times are in seconds, and None is unknown."""

    jobs: int
    core_hours: float
    gpu_hours: float
    failed_hours: float
    """Core hours of jobs that failed."""
    lost_hours: float
    """Core hours of jobs whose nodes failed."""
    mean_wait: float | None
    median_wait: float | None
    p95_wait: float | None
    median_slowdown: float | None
    p95_slowdown: float | None
    time_used: float | None
    """Of the core hours that were asked for, those that were used; of jobs with a time limit."""
    memory_used: float | None
    """Of the memory that was asked for, the largest that a task had: at least so much was used."""
    energy: float | None
    """In kWh, of the jobs that tell it."""
    energy_jobs: int
    """How many jobs tell their energy."""
    simulated_mean_wait: float | None = None
    simulated_median_wait: float | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """The use of a cluster."""

    log: str
    zone: str
    begin: str
    end: str
    cores: int
    cores_told: bool
    """Whether a ``slurm.conf`` tells how many cores there are; else they are the most in use at once."""
    gpus: bool
    """Whether any job had a GPU."""
    remarks: list[str]
    carbon_intensity: float | None
    """In grams of CO2 for each kWh."""
    all: Use
    capacity: Capacity
    months: dict[str, Use]
    month_capacity: dict[str, Capacity]
    groups: dict[str, dict[str, Use]]
    simulated: str = ""
    """What was simulated beside the log, if anything was."""


class Asked(Struct, frozen=True, kw_only=True):
    """What is to be told, and by which files."""

    zone: str = "UTC"
    conf: Path | None = None
    events: Path | None = None
    reservations: tuple[Path, ...] = ()
    beside: Path | None = None
    carbon_intensity: float | None = None


def usage_of(path: Path, asked: Asked) -> Usage:
    """The use of a cluster, of its log and of what else tells about it."""
    if asked.conf is None and (asked.events is not None or asked.reservations):
        raise InputError("how many cores nodes have is told by slurm.conf; give --conf, too")
    log = read_log(path, "sacct", {"zone": asked.zone})
    origin = start_of(log)
    assert origin is not None
    jobs = _jobs(log, float(origin))
    if not (jobs["end"] > jobs["start"]).any():
        raise InputError(f"{path}: no job of this log ran, so nothing was used")
    remarks = _remarks(log, jobs)
    machine, cores_told = _machine(asked.conf, jobs)
    span = float(jobs["submit"].min()), float(jobs["end"][jobs["ran"]].max())
    months = list(_months(*span, asked.zone))
    simulated = ""
    if asked.beside is not None:
        simulated, jobs = str(asked.beside), _with_simulated(jobs, asked.beside, asked.zone, remarks)
    ran = jobs[jobs["ran"]]
    clock = Clock(0.0, asked.zone)
    gone, kept = down(asked.events, clock), reserved(asked.reservations, clock, remarks)
    levels = Levels.of(
        ran,
        machine,
        None if gone is None else spans_of(gone, machine, "a down", remarks),
        None if kept is None else spans_of(kept, machine, "a reserved", remarks),
    )
    if levels.most_used > machine.cores:
        remarks.append(
            f"{levels.most_used:,.0f} cores were in use at once, and the machine of {asked.conf} has "
            f"{machine.cores:,}: shares of the machine are too large"
        )
    use = partial(_use, span=span)
    return Usage(
        log=str(path),
        zone=asked.zone,
        begin=_date(span[0], asked.zone),
        end=_date(span[1], asked.zone),
        cores=machine.cores,
        cores_told=cores_told,
        gpus=bool((jobs["gpus"] > 0).any()),
        remarks=remarks,
        carbon_intensity=asked.carbon_intensity,
        all=use(jobs),
        capacity=levels.within(*span),
        months={name: _use(_submitted(jobs, *ends), span=ends, ran=ran) for name, ends in months},
        month_capacity={name: levels.within(*ends) for name, ends in months},
        groups={
            grouping: _groups(jobs, grouping, use) for grouping in GROUPINGS if (jobs[grouping] != "").any()
        },
        simulated=simulated,
    )


def _jobs(log: SwfLog, origin: float) -> pd.DataFrame:
    """The jobs as a table; times are Unix times, and what is unknown is NaN."""
    submit = log.submit + origin
    start = submit + np.maximum(log.wait, 0.0)
    size, none = log.allocated_processors, np.zeros(len(log))
    asked_memory = log.requested_memory * log.requested_processors
    one_node = log.more["nodes"] == 1
    energy = log.more.get("energy", np.full(len(log), -1.0))

    def known(values: Floats) -> Floats:
        return np.where(values >= 0, values, np.nan)

    texts = {
        "partition": names_of(log, "partition"),
        "user": names_of(log, "user"),
        **{name: log.more.get(name, np.full(len(log), "")).astype(str) for name in ("account", "qos")},
    }
    return pd.DataFrame(
        {
            "submit": submit,
            "eligible": np.minimum(submit + log.more.get("eligible", none), start),
            "start": start,
            "end": start + log.run_time,
            "size": np.where(size > 0, size, log.requested_processors),
            "gpus": np.maximum(log.more.get("gpus", none), 0),
            "limit": known(log.requested_time),
            "asked_memory": np.where(one_node, known(asked_memory), np.nan),
            "used_memory": np.where(one_node, known(log.used_memory), np.nan),
            "energy": known(energy) / _JOULES_OF_KWH,
            "state": log.more["state"],
            "hosts": log.more["hosts"],
            "ran": ~log.never_started & (log.run_time > 0),
            "started": ~log.never_started,
            **texts,
        },
        index=log.job_number.astype(str),
    )


def _remarks(log: SwfLog, jobs: pd.DataFrame) -> list[str]:
    """What a reader has to know of the log."""
    told = [f"left out: {what} ({count:,} x)" for what, count in log.left_out.items() if what != STEP]
    guessed = {
        what: count for what, count in log.guessed.items() if not what.startswith("size of the machine")
    }
    told += [f"guessed: {what} ({count:,} x)" for what, count in guessed.items()]
    unlimited = int((jobs["ran"] & jobs["limit"].isna()).sum())
    if unlimited:
        told.append(f"{unlimited:,} jobs have no time limit, and do not count in the time used")
    return told


def _machine(conf: Path | None, jobs: pd.DataFrame) -> tuple[Machine, bool]:
    """The machine of a ``slurm.conf``; without one, the most cores that were in use at once."""
    if conf is None:
        ran = jobs[jobs["ran"]]
        most = Level.of(ran["start"], ran["end"], ran["size"]).highest
        return Machine(int(most)), False
    kinds = read_cluster(conf, Findings()).machine
    nodes = {name: kind.cores for kind in kinds for name in kind.names}
    return Machine(sum(nodes.values()), nodes), True


def _with_simulated(jobs: pd.DataFrame, path: Path, zone: str, remarks: list[str]) -> pd.DataFrame:
    """The jobs that ran in a simulation, too, with how long they waited there."""
    table = read_jobs(path, zone)
    waits = np.maximum(table["start"] - table["eligible"], 0.0)
    shared = jobs.index.intersection(waits.index)
    if shared.empty:
        raise InputError(f"{path}: none of its jobs is called as one of the log; was it made of this log?")
    lacking = int(jobs["started"].sum()) - len(shared)
    if lacking:
        remarks.append(f"{lacking:,} jobs of the log did not run when simulated")
    return jobs.assign(simulated_wait=waits[shared].reindex(jobs.index))


def _use(jobs: pd.DataFrame, *, span: tuple[float, float], ran: pd.DataFrame | None = None) -> Use:
    """What jobs had; ``ran`` are those whose hours within the span count, if they are others."""
    begun = jobs[jobs["started"]]
    there = jobs[jobs["ran"]] if ran is None else ran
    hours = np.clip(np.minimum(there["end"], span[1]) - np.maximum(there["start"], span[0]), 0, None) / HOUR
    wait = (begun["start"] - begun["eligible"]).to_numpy()
    run = (begun["end"] - begun["start"]).to_numpy()
    slowdown = np.maximum((wait + run) / np.maximum(run, BOUND), 1.0)
    limited = begun[begun["limit"].notna()]
    of_memory = begun[begun["used_memory"].notna() & (begun["asked_memory"] > 0)]
    energy = begun["energy"].dropna()
    simulated = begun["simulated_wait"].dropna() if "simulated_wait" in begun else pd.Series(dtype=float)
    return Use(
        jobs=len(jobs),
        core_hours=float((hours * there["size"]).sum()),
        gpu_hours=float((hours * there["gpus"]).sum()),
        failed_hours=float((hours * there["size"])[there["state"].isin(_FAILED)].sum()),
        lost_hours=float((hours * there["size"])[there["state"].isin(_LOST)].sum()),
        mean_wait=float(wait.mean()) if len(wait) else None,
        median_wait=_percentile(wait, 50),
        p95_wait=_percentile(wait, 95),
        median_slowdown=_percentile(slowdown, 50),
        p95_slowdown=_percentile(slowdown, 95),
        time_used=_share(
            (limited["end"] - limited["start"]) * limited["size"], limited["limit"] * limited["size"]
        ),
        memory_used=_share(of_memory["used_memory"], of_memory["asked_memory"]),
        energy=float(energy.sum()) if len(energy) else None,
        energy_jobs=len(energy),
        simulated_mean_wait=float(simulated.mean()) if len(simulated) else None,
        simulated_median_wait=_percentile(simulated.to_numpy(), 50),
    )


def _percentile(values: Floats, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None


def _share(part: pd.Series, whole: pd.Series) -> float | None:
    return float(part.sum() / whole.sum()) if len(whole) and whole.sum() > 0 else None


def _submitted(jobs: pd.DataFrame, begin: float, end: float) -> pd.DataFrame:
    """The jobs that were submitted in a span of time."""
    return jobs[(jobs["submit"] >= begin) & (jobs["submit"] < end)]


def _groups(jobs: pd.DataFrame, grouping: str, use: Callable[[pd.DataFrame], Use]) -> dict[str, Use]:
    """The use of each group, that of most core hours first."""
    found = {str(name): use(members) for name, members in jobs.groupby(grouping, sort=True)}
    return dict(sorted(found.items(), key=lambda item: -item[1].core_hours))


def _months(begin: float, end: float, zone: str) -> Iterator[tuple[str, tuple[float, float]]]:
    """The months of a span of time on the clock of a zone, with the part of each that is in the span."""
    first = pd.Timestamp(begin, unit="s", tz="UTC").tz_convert(zone).normalize().replace(day=1)
    while (moment := first.timestamp()) < end:
        following = first + pd.DateOffset(months=1)
        yield f"{first:%Y-%m}", (max(moment, begin), min(following.timestamp(), end))
        first = following


def _date(moment: float, zone: str) -> str:
    return f"{pd.Timestamp(moment, unit='s', tz='UTC').tz_convert(zone):%Y-%m-%d %H:%M}"
