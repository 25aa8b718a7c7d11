"""What an agent sees of failures, closures, prices and jobs of several sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="agents need gymnasium")

import batsched_py as bp
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator.rules import into_closures
from batsched_py.errors import InputError
from batsched_py.gym import (
    JOB,
    MACHINE,
    AgentScheduler,
    Backfill,
    Failures,
    OutsideFiles,
    PickJob,
    QueueObservation,
    SchedulingEnv,
    Task,
    fits,
)
from batsched_py.gym.features import away, largest_size, least_size
from batsched_py.outside.closures import read_closures
from batsched_py.protocol.jobs import Host, Job
from batsched_py.protocol.profiles import Delay
from batsched_py.testing import JobSpec, workload_of
from batsched_py.workload.model import Workload

JOBS = [JobSpec(str(number), 10.0 * number, 2, 30.0, 40.0) for number in range(8)]


def outside_files(folder: Path) -> OutsideFiles:
    """Hosts 2 and 3 are closed from 50 to 200; a price rises at 60."""
    closures, price = folder / "closures.csv", folder / "price.csv"
    closures.write_text("start,end,hosts\n50,200,2-3\n")
    price.write_text("time,value\n0,0.1\n60,0.3\n")
    return OutsideFiles(closures=str(closures), price=str(price))


def first_of(env: SchedulingEnv) -> list[Any]:
    """What an agent sees that takes the first job it is offered."""
    seen, over = [env.reset(seed=1)[0]], False
    while not over:
        assert env.observation_space.contains(seen[-1])
        after, _, over, _, _ = env.step(int(np.flatnonzero(seen[-1]["action_mask"])[0]))
        seen.append(after)
    return seen


def test_that_closures_and_prices_are_shown(tmp_path: Path) -> None:
    env = SchedulingEnv(
        PickJob(4), lambda random: workload_of(JOBS), hosts=4, outside=outside_files(tmp_path)
    )
    first, *_, last = [each["machine"][len(MACHINE) :] for each in first_of(env)]
    until = np.log1p([50.0, 60.0]) / np.log1p(28 * 86400)
    assert first == pytest.approx([1, 0, until[0], 0, until[1]])
    assert last[3:] == pytest.approx([1, 1])


def test_that_no_job_fits_that_would_run_into_a_closure(tmp_path: Path) -> None:
    jobs = [JobSpec("long", 0.0, 4, 30.0, 60.0), JobSpec("short", 0.0, 4, 30.0, 40.0)]
    env = SchedulingEnv(
        PickJob(2), lambda random: workload_of(jobs), hosts=4, outside=outside_files(tmp_path)
    )
    seen, _ = env.reset(seed=1)
    assert seen["jobs"][:, JOB.index(fits)].tolist() == [0, 1]


class First(AgentScheduler):
    """Takes the first job that it is offered, and keeps what it sees."""

    name = "first"
    seen: list[Any]

    def task(self) -> Task:
        return Backfill(slots=4)

    def act(self, observation: Any) -> int:
        self.seen.append(observation["machine"].tolist())
        return int(np.flatnonzero(observation["action_mask"])[0])


def test_that_a_trained_agent_sees_what_the_environment_shows(tmp_path: Path) -> None:
    """As a scheduler of ``simulate``, which is given the same files."""
    lines = "".join(
        f"{n + 1} {5 * n} -1 20 {n % 3 + 1} -1 -1 {n % 3 + 1} 30 -1 1 1 1 1 1 1 -1 -1\n" for n in range(30)
    )
    log = tmp_path / "log.swf"
    log.write_text(lines)
    outside = outside_files(tmp_path)
    env = SchedulingEnv(Backfill(4), str(log), hosts=4, outside=outside)
    shown = [each["machine"].tolist() for each in first_of(env)[:-1]]
    agent = First()
    agent.seen = []
    bp.simulate(log, agent, hosts=4, closures=outside.closures, price=outside.price)
    assert agent.seen == shown


def test_that_no_job_runs_into_a_closure(tmp_path: Path) -> None:
    outside = outside_files(tmp_path)
    env = SchedulingEnv(PickJob(4), lambda random: workload_of(JOBS), hosts=4, outside=outside)
    env.reset(seed=1, options={"export": str(tmp_path / "out")})
    while not env.step(0)[2]:
        pass
    assert outside.closures is not None
    closures = read_closures(outside.closures, [Host(number, f"h{number}") for number in range(4)])
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    assert list(into_closures(schedule, closures.all, [workload_of(JOBS)])) == []


def test_that_hosts_fail_and_jobs_come_back(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("hosts,down,up\n0-1,15,25\n")
    task = PickJob(4, observation=QueueObservation(machine=(away,)))
    env = SchedulingEnv(
        task, lambda random: workload_of(JOBS), hosts=4, failing=Failures(failure_trace=str(trace))
    )
    env.reset(seed=1, options={"export": str(tmp_path / "out")})
    shares, over = [], False
    while not over:
        seen, _, over, *_ = env.step(0)
        shares.append(float(seen["machine"][0]))
    assert 0.5 in shares
    assert shares[-1] == 0
    names = read_schedule(tmp_path / "out_jobs.csv")["job_id"].tolist()
    assert any("#1" in name for name in names)


def test_that_the_sizes_of_jobs_can_be_shown() -> None:
    jobs = [
        Job("w0!1", 0.0, 2, 60.0, "p", {"malleable": {"min": 1, "max": 4}}),
        Job("w0!2", 0.0, 2, 60.0, "p", {"sizes": {"2": 30, "3": 20}}),
        Job("w0!3", 0.0, 1, 60.0, "p"),
    ]
    task = PickJob(3, observation=QueueObservation(job=(least_size, largest_size)))
    env = SchedulingEnv(task, lambda random: Workload("w0", jobs, {"p": Delay(30.0)}), hosts=4)
    seen, _ = env.reset(seed=1)
    assert seen["jobs"].tolist() == [[0.25, 1], [0.5, 0.75], [0.25, 0.25]]


def test_that_closures_need_a_machine(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give hosts=N or platform=FILE"):
        SchedulingEnv(PickJob(4), lambda random: workload_of(JOBS), outside=outside_files(tmp_path))
