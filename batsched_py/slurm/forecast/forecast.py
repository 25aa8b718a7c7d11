"""When each waiting job of a live cluster will start: by time limits, and by how much of them jobs use."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis import pages
from batsched_py.api.simulate import simulate
from batsched_py.api.terminal import shown
from batsched_py.errors import InputError
from batsched_py.simulator.machine_files import NodeKind
from batsched_py.slurm.conf import Cluster, read_cluster
from batsched_py.slurm.forecast.live import LiveJob, RunTime, completed, limit_of, pinned, workload_of
from batsched_py.slurm.forecast.squeue_table import read_live
from batsched_py.slurm.jobs import task_names
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.reading import Clock, Findings, time_limit
from batsched_py.slurm.scenario import (
    CONFIGURATION,
    PLATFORM,
    WORKLOAD_FILE,
    configuration_text,
    configured,
    platform_text,
)
from batsched_py.workload.batsim_json import write_batsim_json
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

    def run_time(self, user: str, limit: float, ran: float, random: np.random.Generator) -> float:
        """How long a job with a time limit may run that has run for so long; drawn from jobs alike."""
        shares = self.by_user.get(user, self.all)
        possible = shares[shares * limit > ran]
        return limit if not len(possible) else float(random.choice(possible)) * limit


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
        return [self._changed(job) if job.id == self.job else job for job in jobs]

    def _changed(self, job: LiveJob) -> LiveJob:
        changed = replace(job, time=self.time or job.time)
        if self.nodes is not None:
            least, most = job.nodes
            tasks = job.tasks if most is None else job.tasks * self.nodes // least
            changed.nodes, changed.tasks = (self.nodes, self.nodes), max(tasks, self.nodes)
        return changed


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
    seeds = range(repetitions if accuracy is not None else 0)
    variants = [list(jobs)] + ([wish.applied(jobs)] if wish is not None else [])
    done: list[int] = []
    with (
        TemporaryDirectory(prefix="forecast-") as room,
        shown("simulations", lambda: (len(done), len(variants) * (1 + len(seeds)))),
    ):
        simulator = _Simulator(cluster, now, Path(room), findings)
        starts = []
        for variant in variants:
            by_limits = simulator.starts(variant, lambda job, ran: limit_of(job))
            done.append(1)
            drawn = []
            for seed in seeds:
                drawn.append(simulator.starts(variant, _drawn(accuracy, seed)))
                done.append(1)
            starts.append({job.id: _start(job.id, by_limits, drawn) for job in variant})
    waiting = [job for job in jobs if not job.runs and not job.is_held]
    expected = [_expected(job, starts[0][job.id]) for job in waiting]
    expected.sort(key=lambda job: (job.start.by_limits is None, job.start.by_limits or 0.0, job.id))
    instead = None
    if wish is not None:
        changed = next(job for job in variants[1] if job.id == wish.job)
        instead = _expected(changed, starts[1][wish.job])
    return Forecast(
        now=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        running=sum(job.runs for job in jobs),
        held=sum(job.is_held for job in jobs),
        repetitions=len(seeds),
        jobs=expected,
        instead=instead,
        misplaced=simulator.misplaced,
    )


class _Simulator:
    """Simulates queues of a cluster from one moment on."""

    def __init__(self, cluster: Cluster, now: float, room: Path, findings: Findings) -> None:
        self._machine: list[NodeKind] = pinned(cluster.machine)
        self._configuration = _from_now_on(cluster.configuration)
        self._now = now
        self._room = room
        self._findings = findings
        self.misplaced = 0
        (room / PLATFORM).write_text(platform_text(self._machine, cluster.licences))
        (room / CONFIGURATION).write_text(configuration_text(self._configuration))

    def starts(self, jobs: Sequence[LiveJob], run_time: RunTime) -> dict[str, float]:
        """When each job starts; of an array, its first task."""
        workload = workload_of(jobs, self._now, self._configuration, self._machine, run_time, self._findings)
        self._findings.check()
        write_batsim_json(self._room / WORKLOAD_FILE, workload)
        result = simulate(
            str(self._room / WORKLOAD_FILE),
            "slurm",
            options={"configuration_file": str(self._room / CONFIGURATION)},
            platform=str(self._room / PLATFORM),
            progress=False,
        )
        table = result.jobs.dropna(subset=["starting_time"])
        found: dict[str, float] = defaultdict(lambda: np.inf)
        ids = {name: job.id for job in jobs if job.array for name in task_names(job.name, job.array)[0]}
        for name, start in zip(table["job_id"].astype(str), table["starting_time"], strict=True):
            key = ids.get(name, name)
            found[key] = min(found[key], float(start))
        running = {job.id for job in jobs if job.runs}
        self.misplaced = max(self.misplaced, sum(found[name] > SETTLED for name in running))
        return dict(found)


def _from_now_on(configuration: Configuration) -> Configuration:
    """A configuration under which all running jobs start at once."""
    scheduling = replace(
        configuration.scheduling,
        default_queue_depth=1 << 30,
        partition_job_depth=0,
        sched_max_job_start=0,
        batch_sched_delay=0.0,
        defer=False,
    )
    return replace(configuration, scheduling=scheduling)


def _drawn(accuracy: Accuracy | None, seed: int) -> RunTime:
    """Run times that are drawn from those of a log."""
    random = np.random.default_rng(seed)

    def run_time(job: LiveJob, ran: float) -> float:
        assert accuracy is not None
        return accuracy.run_time(job.user, limit_of(job), ran, random)

    return run_time


def _start(name: str, by_limits: dict[str, float], drawn: Sequence[dict[str, float]]) -> Start:
    known = [starts[name] for starts in drawn if np.isfinite(starts.get(name, np.inf))]
    limit = by_limits.get(name, np.inf)
    early, median, late = np.quantile(known, (TAIL, 0.5, 1 - TAIL)).tolist() if known else (None,) * 3
    return Start(by_limits=limit if np.isfinite(limit) else None, median=median, early=early, late=late)


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
    """What is asked, in the order of the command's options."""

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
    heads = forecast_heads(found)
    sections = []
    if found.instead is not None:
        before = next(job for job in found.jobs if job.id == found.instead.id)
        rows = [["as it is", *_escaped(before, found)], ["instead", *_escaped(found.instead, found)]]
        sections.append(
            pages.section(
                f"Job {html.escape(found.instead.id)}", "", pages.table("", heads, rows), layout="wide"
            )
        )
    rows = [[html.escape(job.id), *_escaped(job, found)] for job in found.jobs]
    sections += [
        pages.section("Starts", "", pages.figure("Waiting jobs that have started", "starts"), layout="wide"),
        pages.section(
            "Jobs", "Those that start first come first.", pages.table("", heads, rows), layout="wide"
        ),
    ]
    pages.write_figures_page(path, title, header, "".join(sections), {"starts": _starts(found)})


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


def _escaped(job: Expected, found: Forecast) -> list[str]:
    return [html.escape(cell) for cell in forecast_cells(job, found)]


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
