"""When each waiting job will start: by time limits, and as likely as the accuracy of time limits makes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.progress import shown
from batsched_py.api.simulate import simulate
from batsched_py.errors import InputError
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.simulator.machine_files.nodes import NodeKind
from batsched_py.slurm.conf.read import Cluster
from batsched_py.slurm.configuration_text import configuration_text
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.forecast.accuracy import Accuracy
from batsched_py.slurm.forecast.live import LiveJob
from batsched_py.slurm.forecast.workload import RunTime, limit_of, pinned, workload_of
from batsched_py.slurm.jobs import task_names
from batsched_py.slurm.platform import platform_text
from batsched_py.slurm.scenario import CONFIGURATION, PLATFORM, WORKLOAD_FILE
from batsched_py.workload.batsim_json import write_batsim_json

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
        if not found[0].priority:
            raise InputError(f"job {self.job!r} is held, and has no forecast")
        return [self._changed(job) if job.id == self.job else job for job in jobs]

    def _changed(self, job: LiveJob) -> LiveJob:
        changed = replace(job, time_limit=self.time or job.time_limit)
        if self.nodes is None:
            return changed
        tasks = job.tasks if job.most_nodes is None else job.tasks * self.nodes // job.nodes
        return replace(changed, nodes=self.nodes, most_nodes=self.nodes, tasks=max(tasks, self.nodes))


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
    waiting = [job for job in jobs if job.state == "waiting" and job.priority]
    expected = [_expected(job, starts[0][job.id]) for job in waiting]
    expected.sort(key=lambda job: (job.start.by_limits is None, job.start.by_limits or 0.0, job.id))
    instead = None
    if wish is not None:
        changed = next(job for job in variants[1] if job.id == wish.job)
        instead = _expected(changed, starts[1][wish.job])
    return Forecast(
        now=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        running=sum(job.state == "running" for job in jobs),
        held=sum(job.state == "waiting" and not job.priority for job in jobs),
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
        ids = {name: job.id for job in jobs if job.array for name in task_names(job.array_id, job.array)[0]}
        for name, start in zip(table["job_id"].astype(str), table["starting_time"], strict=True):
            key = ids.get(name, name)
            found[key] = min(found[key], float(start))
        running = {job.id for job in jobs if job.state == "running"}
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
    if not known:
        return Start(by_limits=limit if np.isfinite(limit) else None)
    early, median, late = np.quantile(known, (TAIL, 0.5, 1 - TAIL)).tolist()
    return Start(by_limits=limit if np.isfinite(limit) else None, median=median, early=early, late=late)


def _expected(job: LiveJob, start: Start) -> Expected:
    return Expected(
        id=job.id,
        user=job.user,
        account=job.account,
        partition=",".join(job.partitions),
        nodes=job.nodes,
        cpus=job.tasks * job.cpus_per_task,
        time_limit=inf if job.time_limit is None else job.time_limit,
        priority=job.priority,
        start=start,
    )
