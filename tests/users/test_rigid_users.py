"""Rigid users against the simulator's own submissions."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batsched_py.users.rigid import Rigid
from tests.feedback import Arbitrary, Record, records, replay, rows, static_replay, submissions, workload_of


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
@given(log=records(st.integers(1, 5), st.just(0)))
def test_the_schedule_is_that_of_the_static_replay(scheduler: str, log: list[Record]) -> None:
    """To the row, so simultaneous jobs come in the same order; only the notes are more."""
    workload = workload_of(log)
    static = rows(static_replay(workload, 4, scheduler))
    rigid = rows(replay(Rigid().users(workload), 4, scheduler))
    assert list(rigid) == list(static)
    for number, row in static.items():
        assert rigid[number] | {"metadata": ""} == row


def test_jobs_come_at_their_times_whatever_happens_to_others() -> None:
    workload = workload_of([Record(1, 0, 9, size=5), Record(1, 9, 100), Record(1, 10, 1), Record(2, 11, 1)])
    assert submissions(replay(Rigid().users(workload), 1, Arbitrary())) == {"1": 0, "2": 9, "3": 10, "4": 11}


def test_the_note_tells_user_and_recorded_submission() -> None:
    workload = workload_of([Record(7, 0, 1), Record(7, 2.5, 1)])
    notes = [row["metadata"] for row in rows(replay(Rigid().users(workload), 1)).values()]
    assert notes == ["user=7 recorded=0", "user=7 recorded=2.5"]


def test_a_job_without_a_user_has_one_nevertheless() -> None:
    workload = workload_of([Record(7, 0, 1)])
    workload.jobs = [replace(workload.jobs[0], extra={})]
    (user,) = Rigid().users(workload)
    assert user.next_time() == 0
    assert [submission.note for submission in user.submit(0.0)] == ["recorded=0"]
    assert user.next_time() == inf
