"""What rewards add up to over an episode."""

from __future__ import annotations

from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.gym import PerJob, PickJob, SchedulingEnv
from batsched_py.workload.model import Workload
from tests.gym.agents import head, play

SESSIONS = {"sessions": "arrival:60"}


def reward(log: bp.Log, workload: Workload, name: str | PerJob, users: str | None = None) -> float:
    options = SESSIONS if users == "think-time" else None
    env = SchedulingEnv(PickJob(), log, hosts=64, reward=name, users=users, user_options=options)
    return play(env, head, workload=workload)[0]


@pytest.mark.parametrize("users", [None, "think-time"])
def test_they_are_the_negative_means_of_the_results(
    log: bp.Log, workload: Workload, users: str | None
) -> None:
    result = bp.simulate(log, "fcfs", hosts=64, users=users, sessions=None if users is None else "arrival:60")
    expected = {
        "bounded-slowdown": result.overview.mean_bounded_slowdown,
        "waiting-time": result.jobs["waiting_time"].mean(),
        "turnaround-time": result.jobs["turnaround_time"].mean(),
        "lateness": result.jobs["lateness"].mean(),
    }
    assert {name: -reward(log, workload, name, users) for name in expected} == pytest.approx(expected)


def test_users_who_do_not_react_are_never_late(log: bp.Log, workload: Workload) -> None:
    assert reward(log, workload, "lateness", "rigid") == 0
    assert reward(log, workload, "lateness", "think-time") < 0


def test_energy_is_what_the_hosts_draw_in_kilowatt_hours(root: Path, log: bp.Log, workload: Workload) -> None:
    platform = root / "platforms" / "power64.xml"
    env = SchedulingEnv(PickJob(), log, platform=platform, energy=True, reward="energy")
    total, info = play(env, head, workload=workload)
    assert -total * 3.6e6 == pytest.approx(info["consumed_joules"], rel=1e-9)
    assert info["consumed_joules"] > 0


def test_one_of_your_own_is_a_function(log: bp.Log, workload: Workload) -> None:
    assert reward(log, workload, PerJob(lambda ended, now, recorded: 1.0)) == pytest.approx(-1.0)


def test_an_unknown_one_is_named(log: bp.Log) -> None:
    with pytest.raises(InputError, match="there is no reward 'fame'; known are bounded-slowdown, waiting-"):
        SchedulingEnv(PickJob(), log, reward="fame")
