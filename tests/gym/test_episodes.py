"""Windows of logs, and generated workloads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.gym import Generated, PickJob, SchedulingEnv, Windows
from batsched_py.workload.model import Workload
from batsched_py.workload.models import MODELS
from tests.gym.agents import head, play


def test_a_window_has_jobs_that_follow_each_other(log: bp.Log) -> None:
    windows = Windows(log, 100, around=0)
    assert len(windows) == len(log) - 99
    assert [job.name for job in windows[7].jobs] == log.jobs.index[7:107].tolist()


def test_a_window_has_the_profiles_of_its_jobs_and_no_others(workload: Workload) -> None:
    window = Windows(workload, 10, around=0)[3]
    assert window.profiles.keys() == {job.profile for job in window.jobs}


def test_a_window_of_unsorted_jobs_goes_by_time(root: Path) -> None:
    workload = Workload("w0", [], {})
    whole = Windows(root / "workloads" / "sample.swf", 50, around=0)[0]
    workload.jobs, workload.profiles = list(reversed(whole.jobs)), whole.profiles
    workload.finishes = [job.submission_time + 1 for job in workload.jobs]
    window = Windows(workload, 5, around=0)[10]
    assert [job.id for job in window.jobs] == [job.id for job in whole.jobs][10:15]
    assert window.finishes == [job.submission_time + 1 for job in window.jobs]


def test_every_window_comes_up(workload: Workload) -> None:
    windows, random = Windows(workload, len(workload.jobs) - 2, around=0), np.random.default_rng(0)
    assert {windows(random).jobs[0].id for _ in range(50)} == {job.id for job in workload.jobs[:3]}


def test_a_log_that_is_shorter_is_one_window(workload: Workload) -> None:
    assert len(Windows(workload, 10**6)) == 1


def test_an_empty_log_has_no_windows() -> None:
    with pytest.raises(InputError, match="hold none"):
        Windows(Workload("w0", [], {}))


def test_each_episode_can_be_generated() -> None:
    model = MODELS.create("lublin", {"processors": "64"})
    env = SchedulingEnv(PickJob(), Generated(model, 60))
    first, second = play(env, head), play(env, head)
    assert first == second  # by the seed of the environment
    env.reset()
    assert first[1]["nb_jobs"] == 60
    jobs = [Generated(model, 60)(np.random.default_rng(seed)).jobs for seed in (1, 2)]
    assert [job.size for job in jobs[0]] != [job.size for job in jobs[1]]


def test_jobs_around_a_window_are_simulated_and_not_measured(log: bp.Log) -> None:
    window = Windows(log, 100)[70]
    assert len(window.jobs) == 50 + 100 + 50
    assert window.measured == (50, 150)
    assert Windows(log, 100)[0].measured == (0, 100)


def test_a_reward_is_for_the_jobs_of_the_window(log: bp.Log) -> None:
    """The mean bounded slowdown of FCFS over them is what a whole simulation of these 200 jobs shows."""
    env = SchedulingEnv(PickJob(), Windows(log, 100), hosts=64)
    window = Windows(log, 100)[70]
    observation, _ = env.reset(options={"workload": window})
    total, over, info = 0.0, False, {}
    while not over:
        observation, reward, over, _, info = env.step(head(observation))
        total += reward
    assert info["nb_jobs"] == 200
    assert total == pytest.approx(-info["mean_bounded_slowdown"])
    names = [job.name for job in window.jobs[50:150]]
    same = bp.Log(log.columns.select(np.arange(20, 220)))
    alone = bp.simulate(same, "fcfs", hosts=64, progress=False).jobs.set_index("job_id").loc[names]
    slowdowns = (alone["turnaround_time"] / alone["execution_time"].clip(lower=10)).clip(lower=1)
    assert info["mean_bounded_slowdown"] == pytest.approx(slowdowns.mean())
