"""Hostile users: one line that names them, or right results; the same in both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import PolicyError
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import Behaviour, UsersOf
from batsched_py.workload.model import Workload
from tests.hostile.outcomes import JOBS, PROFILES, needs_both, outcome_of_users, same_outcomes, simulate
from tests.hostile.users import USERS, Hostile


@needs_both
def test_no_user_does_harm(tmp_path: Path) -> None:
    found = same_outcomes(USERS, lambda engine, make: outcome_of_users(engine, [make()], tmp_path))
    unblamed = [
        (name, outcome)
        for name, outcome in found.items()
        if "\n" not in outcome
        and not outcome.startswith(("user ", "a user of kind ", "scheduler 'fcfs' or a user "))
    ]
    assert unblamed == []


def test_there_are_many_hostile_users() -> None:
    assert len(USERS) > 300


class Odd(Behaviour):
    """Makes something else than users."""

    name = "odd"

    def __init__(self, made: Any) -> None:
        self.made = made

    def users(self, workload: Workload) -> Any:
        return self.made() if callable(self.made) else self.made


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (None, "users 'odd' failed before time 0: TypeError: 'NoneType' object is not iterable ("),
        (5, "users 'odd' failed before time 0: TypeError: 'int' object is not iterable ("),
        (["u1"], "'u1' is not a user: users are objects of subclasses of User"),
        ([Hostile], "is not a user: users are objects of subclasses of User"),
        (lambda: 1 / 0, "users 'odd' failed before time 0: ZeroDivisionError: division by zero ("),
        (lambda: exit(0), "users 'odd' failed before time 0: SystemExit: 0 ("),
    ],
)
def test_a_behaviour_that_makes_no_users_is_named(made: Any, error: str) -> None:
    process = DecisionProcess(Fcfs(), UsersOf(Odd(made), [Workload("w0", JOBS, PROFILES)]))
    setup = Setup(Platform.homogeneous(4), (), process.needs)
    with pytest.raises(PolicyError) as raised:
        simulate("python", setup, process, Outputs(None))
    assert error in str(raised.value)
