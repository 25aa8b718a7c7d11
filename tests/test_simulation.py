"""Whole simulations, in one go and turn by turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate, turns
from batsched_py.errors import InputError, PolicyError, RuleBroken
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import SCHEDULERS, Cluster
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import USERS
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload

ROOT = Path(__file__).parents[1]
HOSTS = 64


@pytest.fixture
def log() -> Workload:
    """The first weeks of the sample."""
    workload = read_workload(ROOT / "workloads" / "sample.swf", "w0")
    workload.jobs = list(workload.jobs)[:600]
    return workload


def both_sides(
    log: Workload, prefix: Path, scheduler: str = "fcfs", users: str | None = None, **options: str
) -> tuple[Batsim, DecisionProcess]:
    behaviour = None if users is None else USERS.create(users, {"sessions": "arrival:60"})
    people = [] if behaviour is None else list(behaviour.users(log))
    process = DecisionProcess(SCHEDULERS.create(scheduler, options), people)
    setup = Setup(Platform.homogeneous(HOSTS), [] if people else [log], process.needs)
    return Batsim(setup, Outputs(str(prefix))), process


def rows(prefix: Path) -> bytes:
    return Path(f"{prefix}_jobs.csv").read_bytes()


@pytest.mark.parametrize("users", [None, "think-time"])
@pytest.mark.parametrize("scheduler", ["easy", "easy-sjbf", "conservative"])
def test_turn_by_turn_a_policy_decides_the_same(
    tmp_path: Path, log: Workload, scheduler: str, users: str | None
) -> None:
    simulate(*both_sides(log, tmp_path / "at-once", scheduler, users))
    batsim, process = both_sides(log, tmp_path / "in-turns", scheduler, users)
    for _ in turns(batsim, process):
        process.ask()
    assert rows(tmp_path / "in-turns") == rows(tmp_path / "at-once")


def head(cluster: Cluster) -> Job | None:
    return cluster.queue.head if cluster.queue else None


def shortest(cluster: Cluster) -> Job | None:
    return min(cluster.queue, key=lambda job: (job.walltime, job.submission_time), default=None)


@pytest.mark.parametrize("users", [None, "think-time"])
@pytest.mark.parametrize(("choose", "scheduler"), [(head, "fcfs"), (shortest, "sjf")])
def test_somebody_else_can_take_the_turns(
    tmp_path: Path,
    log: Workload,
    choose: Callable[[Cluster], Job | None],
    scheduler: str,
    users: str | None,
) -> None:
    simulate(*both_sides(log, tmp_path / "policy", scheduler, users))
    for cluster in turns(*both_sides(log, tmp_path / "other", "reject-all", users)):
        while (job := choose(cluster)) is not None and cluster.fits(job):
            cluster.start(job)
    assert rows(tmp_path / "other") == rows(tmp_path / "policy")


def test_a_simulation_that_is_left_leaves_no_complete_files(tmp_path: Path, log: Workload) -> None:
    batsim, process = both_sides(log, tmp_path / "left")
    going = turns(batsim, process)
    for _ in range(50):
        next(going)
        process.ask()
    going.close()
    assert not (tmp_path / "left_schedule.csv").exists()


def test_whoever_breaks_a_rule_in_a_turn_is_told_which_at_once(tmp_path: Path, log: Workload) -> None:
    going = turns(*both_sides(log, tmp_path / "out"))
    cluster = next(cluster for cluster in going if cluster.queue)
    job = cluster.queue.head
    cluster.start(job)
    with pytest.raises(RuleBroken, match="ExecuteJob w0!1: job w0!1 is running already"):
        cluster.start(job)
    with pytest.raises(PolicyError, match="broke a rule at time 0: ExecuteJob w0!1"):
        next(going)


def test_a_slow_scheduler_has_no_turns(tmp_path: Path, log: Workload) -> None:
    batsim, process = both_sides(log, tmp_path / "out")
    process.scheduling_delay = 1.0
    with pytest.raises(InputError, match="scheduling delay"):
        next(turns(batsim, process))
