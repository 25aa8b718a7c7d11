"""When each waiting job of a live cluster will start: by time limits, and by how much of them jobs use."""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis import pages
from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.conf import Cluster, read_cluster
from batsched_py.slurm.forecast.backtest import settled
from batsched_py.slurm.forecast.live import LiveJob, RunTime, completed, limit_of, pinned, workload_of
from batsched_py.slurm.forecast.squeue_table import read_live
from batsched_py.slurm.jobs import task_names
from batsched_py.slurm.prepared import Prepared
from batsched_py.slurm.reading import Clock, Findings, time_limit
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE, configured, platform_text
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of, zone_named
from batsched_py.workload.swf.log import Floats

#: A user with fewer jobs in the log is taken to be like all users.
ENOUGH = 30


class Accuracy(Struct, frozen=True):
    """The shares of their time limits that jobs used."""

    all: Floats
    by_user: dict[str, Floats]

    @classmethod
    def of_log(cls, path: Path, zone: str) -> Accuracy:
        """What the jobs of a log of ``sacct`` used."""
        log = read_log(path, "sacct", {"zone": zone})
        known = (log.requested_time > 0) & (log.run_time > 0) & ~log.never_started
        if not known.any():
            raise InputError(f"{path}: no job of this log has a time limit and a run time")
        shares = np.minimum(log.run_time[known] / log.requested_time[known], 1.0)
        users = names_of(log, "user")[known]
        names, counts = np.unique(users, return_counts=True)
        often = [str(name) for name, count in zip(names, counts, strict=True) if name and count >= ENOUGH]
        return cls(shares, {name: shares[users == name] for name in often})

    def drawn(self, seed: int) -> RunTime:
        """How long a job may run that has run for so long, drawn from jobs alike."""
        random = np.random.default_rng(seed)

        def run_time(job: LiveJob, ran: float) -> float:
            limit, shares = limit_of(job), self.by_user.get(job.user, self.all)
            possible = shares[shares * limit > ran]
            return limit if not len(possible) else float(random.choice(possible)) * limit

        return run_time


#: The interval leaves out this share of the repetitions at each end.
TAIL = 0.1

#: A running job starts within so many seconds of the simulation, unless it does not fit.
SETTLED = 60.0


class Start(Struct, frozen=True, kw_only=True):
    """When a job will start, in seconds from now."""

    by_limits: float | None
    """If every job runs as long as it may; none if the job does not start."""
    median: float | None = None
    """Over run times that are like those of a log, as the two others."""
    early: float | None = None
    late: float | None = None


class Expected(Struct, frozen=True, kw_only=True):
    """What is expected for a job that waits."""

    id: str
    user: str
    account: str
    partition: str
    nodes: int
    cpus: int
    time_limit: float
    priority: int
    start: Start


class Forecast(Struct, frozen=True, kw_only=True):
    """All waiting jobs, those that start first come first."""

    now: str
    """The date and time in UTC."""
    running: int
    held: int
    repetitions: int
    """How many times run times were drawn; 0 without a log."""
    jobs: list[Expected]
    instead: Expected | None = None
    """The job that was asked about, if it asked for less."""
    misplaced: int = 0
    """Running jobs that do not fit on their nodes, as it seems; they wait there until they do."""
    not_modelled: list[str] = []
    """What was left out or assumed, each with its place."""


class Wish(Struct, frozen=True):
    """What a job might ask for instead."""

    job: str
    time: float | None = None
    nodes: int | None = None

    def applied(self, jobs: Sequence[LiveJob]) -> list[LiveJob]:
        """The jobs, with this one changed."""
        found = [job for job in jobs if job.id == self.job and job.state == "waiting"]
        if not found:
            raise InputError(f"there is no waiting job {self.job!r}")
        if found[0].is_held:
            raise InputError(f"job {self.job!r} is held, and has no forecast")
        job, (least, most) = found[0], found[0].nodes
        changed = replace(job, time=self.time or job.time)
        if self.nodes is not None:
            tasks = job.tasks if most is None else job.tasks * self.nodes // least
            changed.nodes, changed.tasks = (self.nodes, self.nodes), max(tasks, self.nodes)
        return [changed if each is job else each for each in jobs]


def forecast(
    cluster: Cluster,
    jobs: Sequence[LiveJob],
    now: float,
    accuracy: Accuracy | None,
    repetitions: int,
    wish: Wish | None,
    findings: Findings,
) -> Forecast:
    """Simulate the queue from now on, by time limits and with run times like those of a log."""
    variants = [list(jobs)] + ([wish.applied(jobs)] if wish is not None else [])
    repetitions = 0 if accuracy is None else repetitions
    found: list[dict[str, float]] = []
    with (
        TemporaryDirectory(prefix="forecast-") as room,
        shown("simulations", lambda: (len(found), len(variants) * (1 + repetitions))),
    ):
        simulator = _Simulator(cluster, now, Path(room), findings)
        starts = []
        for variant in variants:
            first = len(found)
            found.append(simulator.starts(variant, lambda job, ran: limit_of(job)))
            for seed in range(repetitions):
                assert accuracy is not None
                found.append(simulator.starts(variant, accuracy.drawn(seed)))
            starts.append({job.id: _start(job.id, *found[first:]) for job in variant})
    waiting = [
        [_expected(job, of_jobs[job.id]) for job in variant if not job.runs and not job.is_held]
        for variant, of_jobs in zip(variants, starts, strict=True)
    ]
    expected = sorted(
        waiting[0], key=lambda job: (job.start.by_limits is None, job.start.by_limits or 0.0, job.id)
    )
    instead = None if wish is None else next(job for job in waiting[1] if job.id == wish.job)
    return Forecast(
        now=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        running=sum(job.runs for job in jobs),
        held=sum(job.is_held for job in jobs),
        repetitions=repetitions,
        jobs=expected,
        instead=instead,
        misplaced=simulator.misplaced,
    )


class _Simulator:
    """Simulates queues of a cluster from one moment on, under which all running jobs start at once."""

    def __init__(self, cluster: Cluster, now: float, room: Path, findings: Findings) -> None:
        self._machine: list[NodeKind] = pinned(cluster.machine)
        self._configuration = settled(cluster.configuration)
        self._now = now
        self._findings = findings
        self.misplaced = 0
        self._prepared = Prepared(room / PLATFORM, room / WORKLOAD_FILE, room / CONFIGURATION, room)
        self._prepared.platform.write_text(platform_text(self._machine, cluster.licences))
        self._prepared.configure(self._configuration)

    def starts(self, jobs: Sequence[LiveJob], run_time: RunTime) -> dict[str, float]:
        """When each job starts; of an array, its first task."""
        workload = workload_of(jobs, self._now, self._configuration, self._machine, run_time, self._findings)
        self._findings.check()
        self._prepared.submit(workload)
        table = self._prepared.simulated("rigid", {}).jobs.dropna(subset=["starting_time"])
        ids = {name: job.id for job in jobs if job.array for name in task_names(job.name, job.array)[0]}
        firsts = table["starting_time"].groupby([ids.get(name, name) for name in table["job_id"].astype(str)])
        found: dict[str, float] = firsts.min().to_dict()
        running = {job.id for job in jobs if job.runs}
        self.misplaced = max(self.misplaced, sum(found.get(name, inf) > SETTLED for name in running))
        return found


def _start(name: str, by_limits: dict[str, float], *drawn: dict[str, float]) -> Start:
    known = [starts[name] for starts in drawn if name in starts]
    early, median, late = np.quantile(known, (TAIL, 0.5, 1 - TAIL)).tolist() if known else (None,) * 3
    return Start(by_limits=by_limits.get(name), median=median, early=early, late=late)


def _expected(job: LiveJob, start: Start) -> Expected:
    return Expected(
        id=job.id,
        user=job.user,
        account=job.fields.get("account", ""),
        partition=",".join(job.partitions),
        nodes=job.nodes[0],
        cpus=job.tasks * job.cpus_per_task,
        time_limit=inf if job.time is None else job.time,
        priority=job.fields["priority"],
        start=start,
    )


class Question(Struct, frozen=True):
    """What is asked: the options of the command."""

    conf: Path
    listing: Path
    log: Path | None
    job: str | None
    time: str | None
    nodes: int | None
    moment: str | None
    repetitions: int
    accounting: tuple[Path, ...]
    reservations: tuple[Path, ...]
    zone: str


def answer(question: Question) -> Forecast:
    """The forecast."""
    zone_named(question.zone)
    findings = Findings()
    moment = time = None
    with findings.noting("--at"):
        if question.moment is not None:
            moment = Clock(0.0, question.zone).moment(question.moment)
    live = read_live(question.listing, question.zone, findings, moment)
    now = live.now if moment is None else moment
    with findings.noting("--time"):
        time = None if question.time is None else time_limit(question.time)
    if now is None:
        findings.mistake(str(question.listing), "does not tell when it was printed; give --at TIME")
    cluster = read_cluster(question.conf, findings)
    findings.check()
    assert now is not None
    clock = Clock(now, question.zone)
    configuration = configured(cluster, question.reservations, question.accounting, clock, findings)
    coming = [each for each in configuration.reservations if each.end > 0]
    cluster.configuration = replace(
        configuration, reservations=tuple(replace(each, start=max(each.start, 0.0)) for each in coming)
    )
    findings.check()
    accuracy = None if question.log is None else Accuracy.of_log(question.log, question.zone)
    wish = None if question.job is None else Wish(question.job, time, question.nodes)
    jobs = completed(live, question.listing, cluster, findings)
    findings.check()
    found = forecast(cluster, jobs, now, accuracy, question.repetitions, wish, findings)
    return replace(found, not_modelled=list(dict.fromkeys(map(str, findings.unmodelled))))


def write_forecast_page(path: str | Path, found: Forecast) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"When jobs will start, as of {found.now} UTC"
    note = "Nobody submits further jobs in a forecast."
    if found.repetitions:
        note += (
            f" Run times were drawn from a log {found.repetitions} times; intervals hold 80 % of the starts."
        )
    if found.misplaced:
        note += f" {found.misplaced} running jobs do not fit on their nodes, as it seems."
    shown = pages.tiles(
        [
            ("waiting", f"{len(found.jobs):,}", ""),
            ("running", f"{found.running:,}", ""),
            ("held", f"{found.held:,}", "they have no forecast"),
        ]
    )
    header = f'<h1>{html.escape(title)}</h1>\n<p class="note">{note}</p>\n<div id="tiles">{shown}</div>'

    def section(title: str, note: str, jobs: dict[str, Expected]) -> str:
        rows = [[*map(html.escape, (name, *forecast_cells(job, found)))] for name, job in jobs.items()]
        return pages.section(title, note, pages.table("", forecast_heads(found), rows), layout="wide")

    sections = []
    if found.instead is not None:
        sections.append(section(f"Job {html.escape(found.instead.id)}", "", as_it_is_and_instead(found)))
    figure = pages.figure("Waiting jobs that have started", "starts")
    sections += [
        pages.section("Starts", "", figure, layout="wide"),
        section("Jobs", "Those that start first come first.", {job.id: job for job in found.jobs}),
    ]
    pages.write_figures_page(path, title, header, "".join(sections), {"starts": _starts(found)})


def as_it_is_and_instead(found: Forecast) -> dict[str, Expected]:
    """The job that was asked about; nothing if none was."""
    if found.instead is None:
        return {}
    as_it_is = next(job for job in found.jobs if job.id == found.instead.id)
    return {"as it is": as_it_is, "instead": found.instead}


def forecast_heads(found: Forecast) -> list[str]:
    """The heads of the columns; the last ones are known with a log only."""
    heads = ["job", "user", "partition", "nodes", "cpus", "limit", "priority", "starts in, by limits"]
    return heads + (["starts in, likely", "80 % of the times"] if found.repetitions else [])


def forecast_cells(job: Expected, found: Forecast) -> list[str]:
    """The cells of a row behind the job's number."""
    start = job.start
    likely = [] if not found.repetitions else [_in(start.median), f"{_in(start.early)} to {_in(start.late)}"]
    return [
        job.user,
        job.partition,
        f"{job.nodes}",
        f"{job.cpus}",
        "none" if job.time_limit == inf else pages.time_text(job.time_limit),
        f"{job.priority}",
        _in(start.by_limits),
        *likely,
    ]


def _in(seconds: float | None) -> str:
    return "?" if seconds is None else pages.time_text(seconds)


def _starts(found: Forecast) -> pages.Figure | None:
    layers = []
    for place, (name, field) in enumerate((("by limits", "by_limits"), ("likely", "median"))):
        times = sorted(time for job in found.jobs if (time := getattr(job.start, field)) is not None)
        points = [
            pages.Point(time, number, pages.time_text(time), f"{name}: {number} jobs have started")
            for number, time in enumerate(times, start=1)
        ]
        if points:
            layers.append(pages.Layer("steps", points, place, name))
    if not layers:
        return None
    last = max(mark.x for layer in layers for mark in layer.marks if isinstance(mark, pages.Point))
    return pages.Figure(
        pages.Axis("time from now", "s", ends=(0, max(last, 60.0))),
        pages.Axis("jobs", ends=(0, max(len(found.jobs), 1))),
        layers,
    )
