"""The environments as gymnasium wants them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import batsched_py as bp
from batsched_py.errors import InputError, PolicyError
from batsched_py.gym import Backfill, PickJob, SchedulingEnv, Windows
from batsched_py.gym.environment import workload_of
from batsched_py.workload.model import Workload
from tests.gym.agents import head, play

IDS = ["PickJob", "ChoosePolicy", "Backfill"]


def make(name: str, log: bp.Log, **options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(f"batsched_py/{name}-v0", episodes=Windows(log, 40), hosts=64, **options)


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("users", [None, "think-time"])
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_has_no_complaints(log: bp.Log, name: str, users: str | None) -> None:
    options = {} if users is None else {"users": users, "user_options": {"sessions": "arrival:60"}}
    with warnings.catch_warnings(record=True) as complaints:
        check_env(make(name, log, **options).unwrapped)
    assert complaints == []


@pytest.mark.parametrize("name", IDS)
def test_what_is_observed_is_in_its_space_to_the_end(log: bp.Log, name: str) -> None:
    env = make(name, log)
    observation, _ = env.reset(seed=3)
    over = False
    while not over:
        assert env.observation_space.contains(observation)
        assert observation["action_mask"].any()
        action = env.action_space.sample(mask=observation["action_mask"])
        observation, _, over, _, info = env.step(action)
    assert env.observation_space.contains(observation)
    assert not observation["action_mask"].any()
    assert info["nb_jobs"] == 20 + 40 + 20  # those of the window, and half as many before and after


def test_the_same_seed_gives_the_same_window(log: bp.Log) -> None:
    env = SchedulingEnv(PickJob(), Windows(log, 40), hosts=64)
    first, again, other = (
        [play(env, head)[0], env.reset(seed=seed)[0]["machine"].tolist()] for seed in (1, 1, 2)
    )
    assert first == again
    assert first[1] != other[1]


def test_environments_of_one_file_share_its_jobs(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    text = (root / "workloads" / "sample.swf").read_text()
    file.write_text(text)
    first, second = workload_of(file), workload_of(os.path.relpath(file))
    assert first is second
    file.write_text("".join(text.splitlines(keepends=True)[:-5]))
    assert len(workload_of(file).jobs) == len(first.jobs) - 5


@pytest.mark.parametrize("vector", [SyncVectorEnv, AsyncVectorEnv])
def test_several_go_on_together(log: bp.Log, vector: Any) -> None:
    envs = vector([partial(make, "PickJob", log, task=PickJob(slots=16)) for _ in range(2)])
    observations, _ = envs.reset(seed=[1, 2])
    assert observations["jobs"].shape == (2, 16, 4)
    over = np.zeros(2, int)
    for _ in range(300):
        observations, _, ended, _, _ = envs.step(np.zeros(2, int))
        over += ended
    envs.close()
    assert (over > 0).all()


def test_environments_that_are_given_one_task_do_not_disturb_each_other(log: bp.Log) -> None:
    task = PickJob(committed=True)
    one, other = (SchedulingEnv(task, Windows(log, 40), hosts=64) for _ in range(2))
    alone = play(one, head)
    one.reset(seed=1)
    for _ in range(20):
        one.step(0)
    assert play(other, head) == alone


def test_a_new_episode_may_begin_before_the_last_is_over(log: bp.Log) -> None:
    env = SchedulingEnv(PickJob(), Windows(log, 40), hosts=64)
    whole = play(env, head)
    env.reset(seed=5)
    env.step(0)
    assert play(env, head) == whole


def test_an_episode_that_is_over_does_not_go_on(log: bp.Log) -> None:
    env = SchedulingEnv(PickJob(), Windows(log, 40), hosts=64)
    play(env, head)
    with pytest.raises(InputError, match=r"call reset\(\) first"):
        env.step(0)


def test_an_action_that_does_not_exist_is_refused(log: bp.Log) -> None:
    env = SchedulingEnv(PickJob(slots=16), Windows(log, 40), hosts=64)
    env.reset(seed=1)
    for action in (-1, 16):
        with pytest.raises(PolicyError, match=f"action is {action}, but they go from 0 to 15"):
            env.step(action)


def test_an_option_that_does_not_exist_is_refused(log: bp.Log) -> None:
    env = SchedulingEnv(PickJob(), Windows(log, 40), hosts=64)
    with pytest.raises(InputError, match="options workload and export, not exports"):
        env.reset(options={"exports": "out"})


def test_windows_in_which_nothing_is_asked_are_passed_over(log: bp.Log, workload: Workload) -> None:
    drawn = []

    def episodes(random: np.random.Generator) -> Workload:
        drawn.append(len(drawn))
        return Windows(workload, 1 if len(drawn) < 4 else 100)[0]

    env = SchedulingEnv(Backfill(), episodes, hosts=64)
    env.reset(seed=1)
    assert len(drawn) == 4
    with pytest.raises(InputError, match="nothing is asked"):
        SchedulingEnv(Backfill(), Windows(log, 1), hosts=64).reset(seed=1)


def test_nothing_is_written_unless_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: bp.Log
) -> None:
    monkeypatch.chdir(tmp_path)
    play(SchedulingEnv(PickJob(), Windows(log, 40), hosts=64), head)
    assert list(tmp_path.iterdir()) == []


def test_the_machine_is_the_recorded_one_unless_another_is_given(log: bp.Log) -> None:
    free = [
        SchedulingEnv(PickJob(), Windows(log, 40), **machine).reset(seed=1)[0]["jobs"][0, 2]
        for machine in ({}, {"hosts": 128})
    ]
    assert free[0] == 2 * free[1]


def test_without_gymnasium_one_line_says_what_to_install(root: Path) -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from batsched_py.errors import InputError\n"
        "try: import batsched_py.gym\n"
        "except InputError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert run.stdout == "learning agents need gymnasium; install it with: pip install 'batsched-py[rl]'\n"
