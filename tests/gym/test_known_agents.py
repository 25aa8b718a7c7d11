"""Agents whose choices are those of a known policy: the same jobs at the same times, to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import batsched_py as bp
from batsched_py.gym import Backfill, ChoosePolicy, PickJob, SchedulingEnv, Task
from batsched_py.schedulers.conservative import Conservative
from batsched_py.schedulers.easy import Easy
from tests.gym.agents import Act, Trained, always, head, play, shortest

HOSTS = 64

#: More slots than jobs ever wait, so that the shortest is among those that are seen.
ALL = 512

THINK_TIME: dict[str, Any] = {"users": "think-time", "user_options": {"sessions": "arrival:60"}}

CASES = {
    "the head is FCFS": (PickJob(), head, "fcfs", {}),
    "the head that stays picked is FCFS": (PickJob(committed=True), head, "fcfs", {}),
    "the shortest is SJF": (PickJob(slots=ALL), shortest, "sjf", {}),
    "with backfilling, the head is EASY": (PickJob(backfilling=True), head, "easy", {}),
    "backfilling the first is EASY": (Backfill(slots=ALL), head, "easy", {}),
    "backfilling the shortest is EASY": (Backfill(slots=ALL), shortest, "easy", {"backfill": "shortest"}),
    "backfilling nobody is FCFS": (Backfill(slots=8), always(8), "fcfs", {}),
    "always the same policy is that policy": (ChoosePolicy(), always(1), "easy", {"order": "shortest"}),
    "even one that plans": (ChoosePolicy([Easy(), Conservative()]), always(1), "conservative", {}),
}


def rows(prefix: Path) -> bytes:
    return Path(f"{prefix}_jobs.csv").read_bytes()


@pytest.mark.parametrize("users", [{}, THINK_TIME], ids=["rigid", "think-time"])
@pytest.mark.parametrize(("task", "act", "scheduler", "options"), CASES.values(), ids=CASES)
def test_it_is_a_known_policy(
    tmp_path: Path,
    log: bp.Log,
    task: Task,
    act: Act,
    scheduler: str,
    options: dict[str, str],
    users: dict[str, Any],
) -> None:
    known = bp.simulate(log, scheduler, options=options, hosts=HOSTS, export=tmp_path / "known", **users)
    env = SchedulingEnv(task, log, hosts=HOSTS, **users)
    _, info = play(env, act, workload=log, export=tmp_path / "environment")
    trained = bp.simulate(log, Trained(task, act), hosts=HOSTS, export=tmp_path / "scheduler", **users)
    assert rows(tmp_path / "environment") == rows(tmp_path / "known")
    assert rows(tmp_path / "scheduler") == rows(tmp_path / "known")
    assert trained.validate() == []
    assert info["mean_bounded_slowdown"] == known.overview.mean_bounded_slowdown


def test_a_pick_that_stays_is_not_thought_over(tmp_path: Path, log: bp.Log) -> None:
    """In the paper a job that was picked is waited for, even if a shorter one comes meanwhile."""
    asked = []

    def count(observation: Any) -> int:
        asked.append(1)
        return shortest(observation)

    env = SchedulingEnv(PickJob(slots=ALL, committed=True), log, hosts=HOSTS)
    play(env, count, workload=log, export=tmp_path / "committed")
    bp.simulate(log, "sjf", hosts=HOSTS, export=tmp_path / "sjf")
    assert len(asked) == len(log)
    assert rows(tmp_path / "committed") != rows(tmp_path / "sjf")
