"""Whole simulations of a few jobs, their schedules, and a policy that gets into the way of another."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pandas as pd

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Policy as Promise
from batsched_py.analysis.validator import validate
from batsched_py.decision.observers import DATA, MONITORS, AdditionalData, Monitor, ObservedProcess
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.submissions import FailureRule
from batsched_py.engines.python import Batsim, simulate
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Known
from batsched_py.protocol.events import Event, Settings
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous, HomogeneousTotal
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import UsersOf
from batsched_py.users.rigid import Rigid
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED


@dataclass(frozen=True)
class JobSpec:
    """A job to be simulated: what it asks for, and how long it would run if it were never killed."""

    id: str
    submission: float
    size: int
    run_time: float
    walltime: float = inf
    user: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    """What it asks of nodes, as in a workload file; without it, single cores anywhere."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields, as in a workload file: ``after``, ``array``, ``sizes``, ``malleable``."""

    @property
    def duration(self) -> float:
        """How long it runs: until it ends by itself or is killed at its walltime."""
        return min(self.run_time, self.walltime)


def job(
    name: str,
    size: int = 1,
    walltime: float = inf,
    submission: float = 0.0,
    user: str | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Job:
    """A job as a policy sees it, which does not know how long it will run.

    Its further ``fields`` are those of a workload file, like ``{"after": "afterok:a"}``.
    """
    extra = {**(fields or {}), **({} if user is None else {"user": user})}
    return Job(f"w0!{name}", float(submission), size, float(walltime), "p", extra)


def workload_of(jobs: Sequence[JobSpec]) -> Workload:
    """The jobs as a workload; those without a user belong to three users in turn."""
    return Workload(
        name="w0",
        jobs=[
            Job(
                f"w0!{spec.id}",
                float(spec.submission),
                spec.size,
                float(spec.walltime),
                _profile_name(spec),
                {"user": str(number % 3) if spec.user is None else spec.user}
                | ({"request": dict(spec.request)} if spec.request else {})
                | dict(spec.fields),
            )
            for number, spec in enumerate(jobs)
        ],
        profiles={_profile_name(spec): _profile(spec) for spec in jobs},
    )


def _profile_name(spec: JobSpec) -> str:
    return f"run_{spec.run_time}" + (f"_shared_by_{spec.size}" if "sizes" in spec.fields else "")


def _profile(spec: JobSpec) -> Homogeneous:
    """What a job does; one with several sizes divides it among its hosts."""
    work = spec.run_time * LOG_SPEED
    return HomogeneousTotal(work * spec.size) if "sizes" in spec.fields else Homogeneous(work)


#: A name as on the command line, or whatever makes a fresh policy, such as its class.
Policy: TypeAlias = str | Callable[[], Scheduler]


def new(policy: Policy) -> Scheduler:
    """A fresh policy, which has seen nothing yet."""
    return SCHEDULERS.create(policy, {}) if isinstance(policy, str) else policy()


class Meddler(Scheduler):
    """Lets another policy decide, but rejects every so-manieth job and kills every so-manieth that runs.

    So a policy is tested that has no such decisions itself: it must not lose its head when jobs vanish.
    """

    name = "meddler"
    narrows_the_machine = True

    def __init__(self, policy: Scheduler, rejects: int = 4, kills: int = 3) -> None:
        self.policy = policy
        self.rejects, self.kills = rejects, kills
        self.selection, self.selection_seed = policy.selection, policy.selection_seed
        self.allocator = policy.allocator
        self._met: dict[str, int] = {}
        self._killed: set[str] = set()

    def begin(self, cluster: Cluster) -> None:
        """The other policy's beginning."""
        self.policy.begin(cluster)

    def estimate(self, job: Job) -> float:
        """The other policy's estimate."""
        return self.policy.estimate(job)

    def schedule(self, cluster: Cluster) -> None:
        """Meddle, then let the other policy decide."""
        for job in cluster.queue:
            if self._met.setdefault(job.id, len(self._met)) % self.rejects == self.rejects - 1:
                cluster.reject(job)
        for running in list(cluster.running):
            job = running.job
            if (
                self._met[job.id] % self.kills == self.kills - 1
                and running.start < cluster.now < running.start + job.walltime
                and job.id not in self._killed
            ):
                self._killed.add(job.id)
                cluster.kill(job)
        self.policy.schedule(cluster)


def schedule_of(
    policy: Scheduler | Decides,
    jobs: Sequence[JobSpec] | Workload,
    hosts: int | Platform,
    outages: Sequence[Event] = (),
    closures: Sequence[Closure] = (),
    kills: bool = False,
    monitors: Sequence[str | Monitor] = (),
    data: Sequence[str | AdditionalData] = (),
) -> pd.DataFrame:
    """The schedule of a whole simulation, in which hosts may go, come back, and be closed.

    Jobs go on when their hosts go, as in Batsim; or, with ``kills``, they are killed and submitted again.
    Monitors hear what happens, and the policy sees additional data.
    """
    with jobs_csv(policy, jobs, hosts, outages, closures, kills, monitors, data) as file:
        return read_schedule(file)


def rows_of(
    policy: Scheduler | Decides, jobs: Sequence[JobSpec] | Workload, hosts: int | Platform
) -> list[dict[str, str]]:
    """The rows of its ``jobs.csv`` as they are written, which is less work."""
    with jobs_csv(policy, jobs, hosts) as file:
        return rows_in(file)


def starts(policy: Scheduler | Decides, jobs: Sequence[JobSpec], hosts: int) -> dict[str, float]:
    """When each job starts, if it does, in the order of starts."""
    rows = rows_of(policy, jobs, hosts)
    begun = [(float(row["starting_time"]), row["job_id"]) for row in rows if row["starting_time"]]
    return {job_id: time for time, job_id in sorted(begun)}


def rows_in(file: Path) -> list[dict[str, str]]:
    """The rows of a ``jobs.csv``, each cell as it is written."""
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@contextmanager
def jobs_csv(
    policy: Scheduler | Decides,
    jobs: Sequence[JobSpec] | Workload,
    hosts: int | Platform,
    outages: Sequence[Event] = (),
    closures: Sequence[Closure] = (),
    kills: bool = False,
    monitors: Sequence[str | Monitor] = (),
    data: Sequence[str | AdditionalData] = (),
) -> Iterator[Path]:
    """Simulate; the ``jobs.csv`` is there for a while."""
    platform = Platform.homogeneous(hosts) if isinstance(hosts, int) else hosts
    workload = jobs if isinstance(jobs, Workload) else workload_of(jobs)
    if isinstance(policy, Scheduler):
        users = UsersOf(Rigid(), [workload]) if kills else ()
        rule = FailureRule() if kills else None
        process: Decides = process_of(policy, closures, monitors, data, users, rule)
    else:
        process = policy
    setup = Setup(
        platform,
        () if kills else [workload],
        process.needs if kills and isinstance(process, DecisionProcess) else Settings(),
        events=[outages] if outages else [],
    )
    with TemporaryDirectory() as folder:
        simulate(Batsim(setup, Outputs(f"{folder}/out")), process)
        yield Path(folder, "out_jobs.csv")


def process_of(
    policy: Scheduler,
    closures: Sequence[Closure] = (),
    monitors: Sequence[str | Monitor] = (),
    data: Sequence[str | AdditionalData] = (),
    users: UsersOf | tuple[()] = (),
    on_failure: FailureRule | None = None,
) -> DecisionProcess:
    """A decision process with this policy, which knows of closures, and with those who look on."""
    known = Known(closures=tuple(closures)) if closures else None
    return ObservedProcess(
        policy,
        users,
        on_failure=on_failure,
        outlook=None if known is None else lambda hosts: known,
        monitors=list(map(MONITORS.instance, monitors)),
        data=list(map(DATA.instance, data)),
    )


def assert_valid(
    schedule: pd.DataFrame,
    hosts: int,
    jobs: Sequence[JobSpec] | None = None,
    promise: Promise | None = None,
) -> None:
    """The schedule breaks no rule of the validator.

    With ``jobs``, none of them may be missing or other than described; with a ``promise``, that of the policy
    of this name must be kept.
    """
    workloads = [] if jobs is None else [workload_of(jobs)]
    violations = validate(schedule, hosts, workloads, promise)
    assert not violations, "\n".join(map(str, violations))
