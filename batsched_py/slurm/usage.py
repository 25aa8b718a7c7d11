"""Who used a cluster, how long jobs waited, and what became of the rest of it: from a log of ``sacct``.

Hours count where they were used: those of a job that runs over the end of a month belong to both months.
Waits and slowdowns belong to the month in which a job was submitted. What a log cannot tell is unknown here,
and never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown
from batsched_py.slurm.comparison import read_jobs
from batsched_py.slurm.conf import read_cluster
from batsched_py.slurm.reading import Clock, Findings, read_text
from batsched_py.slurm.reservations import read_reservations
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.swf.log import Floats, SwfLog, start_of

HOUR: Final = 3600.0
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


class Capacity(Struct, frozen=True, kw_only=True):
    """What became of a machine in a span of time, as shares of all its core hours; they add up to 1."""

    core_hours: float
    used: float
    down: float | None
    """Nodes that were down or drained; None where no listing tells of them, then they are among the idle."""
    reserved: float | None
    """Nodes that were reserved and idle; None where no listing tells of reservations."""
    idle_while_jobs_waited: float
    """For no waiting job fitted, or none was allowed to start: fragmentation, limits, priorities."""
    idle: float
    """While no job waited."""


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
    levels = Levels.of(ran, machine, _down(asked.events, clock), _reserved(asked.reservations, clock))
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
    told = [f"left out: {what} ({count:,} x)" for what, count in log.left_out.items() if "step" not in what]
    told += [f"guessed: {what} ({count:,} x)" for what, count in log.guessed.items() if "machine" not in what]
    unlimited = int((jobs["ran"] & jobs["limit"].isna()).sum())
    if unlimited:
        told.append(f"{unlimited:,} jobs have no time limit, and do not count in the time used")
    return told


class Machine(Struct, frozen=True):
    """How many cores there are, and how many each node has, as far as that is known."""

    cores: int
    nodes: dict[str, int] = {}


def _machine(conf: Path | None, jobs: pd.DataFrame) -> tuple[Machine, bool]:
    """The machine of a ``slurm.conf``; without one, the most cores that were in use at once."""
    if conf is None:
        ran = jobs[jobs["ran"]]
        most = _Level.of(ran["start"], ran["end"], ran["size"]).highest
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


class Away(Struct, frozen=True):
    """Nodes that are kept from jobs for a time."""

    nodes: tuple[str, ...]
    """None are all of them."""
    begin: float
    end: float


def _down(path: Path | None, clock: Clock) -> list[Away] | None:
    """The nodes that were down, of what ``sacctmgr -P show event`` printed."""
    if path is None:
        return None
    head, *lines = read_text(path, Findings()).splitlines() or [""]
    titles = [title.strip().lower() for title in head.split("|")]
    if not {"nodename", "timestart", "timeend"} <= set(titles):
        raise InputError(
            f"{path}: has no columns NodeName, TimeStart and TimeEnd; print it by sacctmgr -P show event"
        )
    found = []
    for number, line in enumerate(lines, start=2):
        row = dict(zip(titles, map(str.strip, line.split("|")), strict=False))
        if not row.get("nodename"):  # an event of the whole cluster, such as another number of processors
            continue
        try:
            begin = clock.moment(row["timestart"])
            end = np.inf if row["timeend"] in ("", "Unknown") else clock.moment(row["timeend"])
            found.append(Away(tuple(expand(row["nodename"])), begin, end))
        except (KeyError, ValueError):
            raise InputError(
                f"{path}, line {number}: {shown(line)} does not say which nodes, and when"
            ) from None
    return found


def _reserved(paths: Sequence[Path], clock: Clock) -> list[Away] | None:
    """The nodes that were reserved; reservations that name no nodes are not known of."""
    if not paths:
        return None
    findings = Findings()
    read = [each for path in paths for each in read_reservations(path, clock, findings)]
    findings.check()
    return [
        Away(() if each.nodes.upper() == "ALL" else tuple(expand(each.nodes)), each.start, each.end)
        for each in read
        if each.nodes
    ]


class _Level(Struct, frozen=True):
    """A number that changes over time: so much from each moment on."""

    moments: Floats
    values: Floats

    @classmethod
    def of(cls, begins: Iterable[float], ends: Iterable[float], amounts: Iterable[float]) -> _Level:
        """How much there is at once of what begins and ends."""
        begin, end = np.asarray(begins, float), np.asarray(ends, float)
        amount = np.asarray(amounts, float)
        moments, places = np.unique(np.concatenate([begin, end]), return_inverse=True)
        changes = np.zeros(len(moments))
        np.add.at(changes, places, np.concatenate([amount, -amount]))
        return cls(moments, np.cumsum(changes))

    @property
    def highest(self) -> float:
        """The most there is."""
        return float(self.values.max(initial=0.0))

    def at(self, moments: Floats) -> Floats:
        """How much there is from each of these moments on."""
        places = np.searchsorted(self.moments, moments, side="right") - 1
        return (
            np.where(places < 0, 0.0, self.values[np.maximum(places, 0)])
            if len(self.values)
            else 0.0 * moments
        )


class Levels(Struct, frozen=True):
    """How many cores are used, down, reserved and idle, and how many jobs wait, over time."""

    machine: Machine
    used: _Level
    waiting: _Level
    down: _Level | None
    kept: _Level | None
    """What is idle of reserved nodes."""

    @classmethod
    def of(
        cls, ran: pd.DataFrame, machine: Machine, down: list[Away] | None, reserved: list[Away] | None
    ) -> Levels:
        """The levels of the jobs that ran."""
        waited = ran[ran["start"] > ran["eligible"]]
        return cls(
            machine,
            _Level.of(ran["start"], ran["end"], ran["size"]),
            _Level.of(waited["eligible"], waited["start"], np.ones(len(waited))),
            None if down is None else _level_of(down, machine),
            None if reserved is None else _idle_of(reserved, ran, machine),
        )

    @property
    def most_used(self) -> float:
        """The most cores that were in use at once."""
        return self.used.highest

    def within(self, begin: float, end: float) -> Capacity:
        """What became of the machine in a span of time."""
        levels = [each for each in (self.used, self.waiting, self.down, self.kept) if each is not None]
        inside = [each.moments[(each.moments > begin) & (each.moments < end)] for each in levels]
        moments = np.unique(np.concatenate([[begin], *inside]))
        lengths = np.diff(np.append(moments, end))
        cores = float(self.machine.cores)
        left = cores - np.minimum(used := self.used.at(moments), cores)
        down = np.minimum(0 * left if self.down is None else self.down.at(moments), left)
        kept = np.minimum(0 * left if self.kept is None else self.kept.at(moments), left - down)
        idle = left - down - kept
        waits = self.waiting.at(moments) > 0
        whole = cores * (end - begin)

        def share(amount: Floats) -> float:
            return float((amount * lengths).sum() / whole)

        return Capacity(
            core_hours=whole / HOUR,
            used=share(used),
            down=None if self.down is None else share(down),
            reserved=None if self.kept is None else share(kept),
            idle_while_jobs_waited=share(np.where(waits, idle, 0.0)),
            idle=share(np.where(waits, 0.0, idle)),
        )


def _level_of(away: Sequence[Away], machine: Machine) -> _Level:
    """How many cores are away."""
    known = machine.nodes
    amounts = [
        machine.cores if not each.nodes else sum(known.get(name, 0) for name in each.nodes) for each in away
    ]
    return _Level.of([each.begin for each in away], [each.end for each in away], amounts)


def _idle_of(reserved: Sequence[Away], ran: pd.DataFrame, machine: Machine) -> _Level:
    """How many cores of reserved nodes no job has; a job has as many cores of each of its nodes."""
    kept = _level_of(reserved, machine)
    begins, ends, amounts = [], [], []
    for hosts, start, end, size in ran[["hosts", "start", "end", "size"]].itertuples(index=False):
        names = expand(hosts) if hosts else []
        for each in reserved:
            begin, over = max(start, each.begin), min(end, each.end)
            inside = len(names) if not each.nodes else len(set(names).intersection(each.nodes))
            if begin < over and inside:
                begins.append(begin)
                ends.append(over)
                amounts.append(size * inside / len(names))
    taken = _Level.of(begins, ends, amounts)
    moments = np.unique(np.concatenate([kept.moments, taken.moments]))
    return _Level(moments, np.maximum(kept.at(moments) - taken.at(moments), 0.0))
