"""Simulating small workloads under a policy, for tests of policies."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from math import inf
from tempfile import TemporaryDirectory
from threading import Thread

import pandas as pd

from batsched_py.analysis.schedule import read_schedule
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.server import Server
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.simulation import Decides, simulate
from batsched_py.simulator.client import RemoteProcess
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import LOG_SPEED
from tests.processes import PATIENCE
from tests.reference_schedulers import RefJob


def policy(name: str, **options: str) -> Scheduler:
    """A policy of the registry."""
    return SCHEDULERS.create(name, options)


def workload_of(jobs: Sequence[RefJob], owners: Mapping[str, str] | None = None) -> Workload:
    """The jobs as a workload; they belong to these users, or to three in turn."""
    return Workload(
        name="w0",
        jobs=[
            Job(
                f"w0!{job.id}",
                float(job.submission),
                job.size,
                float(job.walltime),
                f"run_{job.run_time}",
                {"user": str(number % 3) if owners is None else owners[job.id]},
            )
            for number, job in enumerate(jobs)
        ],
        profiles={f"run_{job.run_time}": Homogeneous(job.run_time * LOG_SPEED) for job in jobs},
    )


def schedule_of(
    process: Decides,
    workload: Workload,
    hosts: int | Platform,
    outages: Sequence[ev.Event] = (),
) -> pd.DataFrame:
    """The rows of ``jobs.csv`` of a whole simulation."""
    platform = Platform.homogeneous(hosts) if isinstance(hosts, int) else hosts
    with TemporaryDirectory() as folder:
        outputs = Outputs(f"{folder}/out")
        simulate(Batsim(Setup(platform, [workload], events=[outages] if outages else []), outputs), process)
        return read_schedule(f"{folder}/out_jobs.csv")


def run(scheduler: Scheduler, jobs: Sequence[RefJob], hosts: int) -> pd.DataFrame:
    """The schedule that a policy makes of jobs."""
    return schedule_of(DecisionProcess(scheduler), workload_of(jobs), hosts)


class Starts:
    """Notes when a decision process starts which job."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.process = DecisionProcess(scheduler)
        self.starts: dict[str, float] = {}

    def react(self, request: ev.Message) -> ev.Message:
        reply = self.process.react(request)
        for decision in reply.events:
            if isinstance(decision, ev.ExecuteJob):
                self.starts[decision.job_id.partition("!")[2]] = decision.time
        return reply


def starts(
    scheduler: Scheduler, jobs: Sequence[RefJob], hosts: int, owners: Mapping[str, str] | None = None
) -> dict[str, float]:
    """When each job starts, if it does."""
    noted = Starts(scheduler)
    simulate(Batsim(Setup(Platform.homogeneous(hosts), [workload_of(jobs, owners)])), noted)
    return noted.starts


def over_zeromq(scheduler: Scheduler, workload: Workload, hosts: int | Platform) -> pd.DataFrame:
    """The schedule that a policy makes behind a socket."""
    with AnsweringEnd("tcp://127.0.0.1:*", PATIENCE) as here:
        thread = Thread(target=Server(here, lambda: DecisionProcess(scheduler)).serve)
        thread.start()
        with AskingEnd(here.endpoint, PATIENCE) as there:
            schedule = schedule_of(RemoteProcess(there), workload, hosts)
        thread.join(PATIENCE)
    return schedule


def text(schedule: pd.DataFrame) -> str:
    """A schedule to compare with another."""
    buffer = io.StringIO()
    schedule.to_csv(buffer)
    return buffer.getvalue()


class Meddler(Scheduler):
    """Lets another policy decide, but rejects every so-manieth job and kills every so-manieth that runs."""

    name = "meddler"

    def __init__(self, policy: Scheduler, rejects: int = 4, kills: int = 3) -> None:
        self.policy = policy
        self.rejects, self.kills = rejects, kills
        self.selection = policy.selection
        self._met: dict[str, int] = {}
        self._killed: set[str] = set()

    def begin(self, cluster: Cluster) -> None:
        self.policy.begin(cluster)

    def estimate(self, job: Job) -> float:
        return self.policy.estimate(job)

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.queue:
            if self._met.setdefault(job.id, len(self._met)) % self.rejects == self.rejects - 1:
                cluster.reject(job)
        for running in list(cluster.running):
            job = running.job
            if (
                self._met[job.id] % self.kills == self.kills - 1
                and running.start < cluster.now < min(running.start + job.walltime, inf)
                and job.id not in self._killed
            ):
                self._killed.add(job.id)
                cluster.kill(job)
        self.policy.schedule(cluster)
