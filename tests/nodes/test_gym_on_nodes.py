"""What an agent sees of a machine of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="agents need gymnasium")

from batsched_py.decision.process import DecisionProcess
from batsched_py.gym import AgentScheduler, Backfill, PickJob, SchedulingEnv, Task
from batsched_py.gym.features import JOB, MACHINE, fits
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.setup import Setup
from tests.nodes.test_explain_on_nodes import MACHINE as TOML
from tests.nodes.test_one_core_nodes import ENGINES
from tests.nodes.test_reference import Random, as_platform, as_workload, random_jobs, random_machine
from tests.nodes.test_views_of_nodes import WORKLOAD
from tests.test_engines import run


def test_that_an_environment_shows_what_is_free_and_who_fits(tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text(TOML)
    env = SchedulingEnv(PickJob(slots=4), lambda random: WORKLOAD, platform=machine)
    seen, _ = env.reset(seed=1)
    assert env.observation_space.contains(seen)
    assert seen["machine"][len(MACHINE) :].tolist() == [1, 1, 1]
    assert seen["jobs"][0, JOB.index(fits)] == 1
    seen, *_ = env.step(0)
    assert env.observation_space.contains(seen)
    assert seen["machine"][len(MACHINE) :] == pytest.approx([6 / 8, 9 / 16, 1])
    assert seen["jobs"][0, JOB.index(fits)] == 0


class First(AgentScheduler):
    """Takes the first job that it is offered."""

    name = "first"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def task(self) -> Task:
        return Backfill(slots=64)

    def act(self, observation: Any) -> int:
        self.seen.append(observation["machine"].tolist())
        return int(np.flatnonzero(observation["action_mask"])[0])


def test_that_taking_the_first_offer_is_easy_on_nodes_too(tmp_path: Path) -> None:
    """In both engines, which show the agent the same."""
    for seed in range(4):
        random = Random(seed)
        nodes, licences = random_machine(random)
        platform = as_platform(nodes, licences)
        workload = as_workload(random_jobs(random, 30), len(platform.hosts))
        easy = run(
            "python",
            Setup(platform, [workload]),
            DecisionProcess(SCHEDULERS.create("easy", {})),
            str(tmp_path / "easy"),
        )
        seen = []
        for engine in ENGINES:
            agent = First()
            files = run(engine, Setup(platform, [workload]), DecisionProcess(agent), str(tmp_path / "agent"))
            assert files[0] == easy[0]
            seen.append(agent.seen)
        assert seen[0] == seen[-1]
