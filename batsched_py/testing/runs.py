"""Whole simulations of a few jobs, and their schedules."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Policy as Promise
from batsched_py.analysis.validator import validate
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.restarts import FailureRule
from batsched_py.outside.closures import Closure
from batsched_py.outside.known import Known
from batsched_py.protocol.events import Event, Settings
from batsched_py.schedulers import Scheduler
from batsched_py.simulation import simulate
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing.jobs import JobSpec, workload_of
from batsched_py.users.base import UsersOf
from batsched_py.users.rigid import Rigid
from batsched_py.workload.model import Workload


def schedule_of(
    policy: Scheduler | Decides,
    jobs: Sequence[JobSpec] | Workload,
    hosts: int | Platform,
    outages: Sequence[Event] = (),
    closures: Sequence[Closure] = (),
    kills: bool = False,
) -> pd.DataFrame:
    """The schedule of a whole simulation, in which hosts may go, come back, and be closed.

    Jobs go on when their hosts go, as in Batsim; or, with ``kills``, they are killed and submitted again.
    """
    with jobs_csv(policy, jobs, hosts, outages, closures, kills) as file:
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
) -> Iterator[Path]:
    """Simulate; the ``jobs.csv`` is there for a while."""
    platform = Platform.homogeneous(hosts) if isinstance(hosts, int) else hosts
    workload = jobs if isinstance(jobs, Workload) else workload_of(jobs)
    process = _process(policy, workload, closures, kills) if isinstance(policy, Scheduler) else policy
    setup = Setup(
        platform,
        () if kills else [workload],
        process.needs if kills and isinstance(process, DecisionProcess) else Settings(),
        events=[outages] if outages else [],
    )
    with TemporaryDirectory() as folder:
        simulate(Batsim(setup, Outputs(f"{folder}/out")), process)
        yield Path(folder, "out_jobs.csv")


def _process(
    policy: Scheduler, workload: Workload, closures: Sequence[Closure], kills: bool
) -> DecisionProcess:
    known = Known(closures=tuple(closures)) if closures else None
    return DecisionProcess(
        policy,
        UsersOf(Rigid(), [workload]) if kills else (),
        on_failure=FailureRule() if kills else None,
        outlook=None if known is None else lambda hosts: known,
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
