"""Users with batches: examples by hand, and a replay of the recorded schedule gives back the record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.users import USERS, User
from batsched_py.users.batches import DAY, HOUR, Activity, cut_batches
from batsched_py.workload.model import Workload
from batsched_py.workload.sessions import Delimiter, cut_workload
from tests.feedback import Record, replay, rows, static_replay, submissions, workload_of

SESSIONS = st.sampled_from(["arrival:0.05", "arrival:0.2", "last:0.05", "max:0.1", "arrival:60"])


def users(name: str, workload: Workload, sessions: str = "max:1", **options: str) -> list[User]:
    return USERS.create(name, {"sessions": sessions} | options).users(workload)


@st.composite
def logs(draw: st.DrawFn) -> list[Record]:
    """Logs in which no two things happen at one time: each job's times have a fraction of its own."""
    seconds = st.integers(0, 40)
    count = draw(st.integers(1, 15))
    drawn = [
        Record(draw(st.integers(1, 3)), draw(seconds) + n / 64, draw(seconds), draw(st.integers(1, 3)))
        for n in range(count)
    ]
    return sorted(drawn, key=lambda record: record.submit)


def recorded(log: list[Record], hosts: int, scheduler: str) -> Workload:
    """The log as that machine and that scheduler would have recorded it."""
    ran = rows(static_replay(workload_of(log), hosts, scheduler))
    waits = [float(ran[str(n)]["starting_time"]) - record.submit for n, record in enumerate(log, start=1)]
    return workload_of([record._replace(wait=wait) for record, wait in zip(log, waits, strict=True)])


@pytest.mark.parametrize("scheduler", ["easy", "fcfs"])
@pytest.mark.parametrize("name", ["adjusted", "fluid", "distribution"])
@given(log=logs(), sessions=SESSIONS)
def test_the_recorded_machine_and_scheduler_give_back_the_recorded_submissions(
    name: str, scheduler: str, log: list[Record], sessions: str
) -> None:
    workload = recorded(log, 4, scheduler)
    again = submissions(replay(users(name, workload, sessions), 4, scheduler))
    assert again == pytest.approx({job.name: job.submission_time for job in workload.jobs}, abs=1e-6)


@pytest.mark.parametrize("name", ["adjusted", "distribution"])
@pytest.mark.parametrize("order", ["true", "false"])
@pytest.mark.parametrize("dependence", ["true", "false"])
@settings(max_examples=settings().max_examples // 3)
@given(log=logs(), sessions=SESSIONS)
def test_so_they_do_whatever_the_constraints_are(
    name: str, order: str, dependence: str, log: list[Record], sessions: str
) -> None:
    workload = recorded(log, 4, "easy")
    again = submissions(
        replay(users(name, workload, sessions, order=order, dependence=dependence), 4, "easy")
    )
    assert again == pytest.approx({job.name: job.submission_time for job in workload.jobs}, abs=1e-6)


def test_a_batch_are_jobs_that_overlapped() -> None:
    workload = workload_of([Record(1, 0, 10), Record(1, 5, 10), Record(1, 15, 1), Record(1, 20, 1)])
    (session,) = cut_workload(workload, Delimiter.parse("max:1"))["1"]
    assert workload.finishes is not None
    finishes = dict(zip((job.id for job in workload.jobs), workload.finishes, strict=True))
    batches = cut_batches(session, finishes)
    assert [[job.name for job in batch.jobs] for batch in batches] == [["1", "2"], ["3"], ["4"]]
    assert [batch.finish for batch in batches] == [15, 16, 21]


def test_think_times_between_batches_of_a_session_are_kept() -> None:
    """On hosts of half the speed: 20 s instead of 10, then 5 s of thought."""
    workload = workload_of([Record(1, 0, 10), Record(1, 15, 1)])
    assert submissions(replay(users("adjusted", workload), hosts=1, speed=0.5)) == {"1": 0, "2": 25}


def test_without_potential_dependence_a_session_begins_as_recorded() -> None:
    workload = workload_of([Record(1, 0, 10), Record(1, 100, 1), Record(1, 110, 1)])
    kept = submissions(replay(users("adjusted", workload, dependence="false"), hosts=1, speed=0.5))
    assert kept == {"1": 0, "2": 100, "3": 111}
    late = submissions(replay(users("adjusted", workload), hosts=1, speed=0.5))
    assert late == {"1": 0, "2": 110, "3": 121}


@pytest.mark.parametrize(("order", "third"), [("true", 501), ("false", 100)])
def test_with_an_order_nothing_overtakes(order: str, third: float) -> None:
    """Job 2 is late, as it waits for job 1; job 3 opens a session that waits for nothing."""
    workload = workload_of([Record(1, 0, 10), Record(1, 11, 1), Record(1, 100, 1)])
    late = users("adjusted", workload, "arrival:1", dependence="false", order=order)
    assert submissions(replay(late, hosts=9, speed=0.02)) == {"1": 0, "2": 501, "3": third}


def test_work_that_comes_too_late_for_its_session_waits_for_the_next() -> None:
    """Sessions were at 0 to 20 and at 1000 to 1010 s; job 2 is free at 105 s and goes with the second one."""
    log = [Record(1, 0, 10), Record(1, 20, 1), Record(1, 1000, 1), Record(1, 1010, 1)]
    late = submissions(replay(users("fluid", workload_of(log)), hosts=1, speed=0.1))
    assert (late["1"], late["2"], late["3"]) == (0, 1000, 1010)


def test_work_that_is_early_flows_into_an_earlier_session() -> None:
    """Recorded, the first session lasted until 50 s. On a faster machine all of it is over at 45.1 s."""
    workload = workload_of([Record(1, 0, 10), Record(1, 50, 500), Record(1, 5000, 1)])
    early = submissions(replay(users("fluid", workload, "arrival:10"), hosts=1, speed=100))
    assert early == pytest.approx({"1": 0, "2": 40.1, "3": 45.1})


def test_a_user_with_few_jobs_has_the_hours_of_the_population() -> None:
    """User 1 works from 0 to 1 h only; what is late is submitted in that hour of another day."""
    days = [Record(1, day * DAY + 60 * n, 3600) for day in range(7) for n in range(5)]
    workload = workload_of([*days, Record(2, 7 * DAY, 4 * HOUR), Record(2, 7 * DAY + 4 * HOUR + 60, 1)])
    late = submissions(replay(users("distribution", workload, "max:60", fewest="10"), hosts=99, speed=0.2))
    assert all(time % DAY < HOUR + 300 for number, time in late.items() if int(number) <= 35)


def test_an_hour_without_activity_is_left_for_one_with_it() -> None:
    activity = Activity([10.0, 7 * DAY + 2 * HOUR])
    random = np.random.default_rng(0)
    assert activity.next_time(5.0, random) == 5.0
    drawn = [activity.next_time(5 * HOUR, random) for _ in range(200)]
    assert {int(time // HOUR) for time in drawn} <= {
        week * 168 + hour for week in range(1, 4) for hour in (0, 2)
    }


@pytest.mark.parametrize(("session_end", "third"), [("submission", 1000), ("finish", 65)])
def test_a_session_is_over_with_its_last_submission_or_its_last_finish(
    session_end: str, third: float
) -> None:
    """The first session is from 0 to 20 s, or to 120 s; at twice the speed its jobs are over at 65 s."""
    workload = workload_of([Record(1, 0, 10), Record(1, 20, 100), Record(1, 1000, 1)])
    early = users("fluid", workload, session_end=session_end)
    assert submissions(replay(early, hosts=1, speed=2)) == {"1": 0, "2": 15, "3": third}


@pytest.mark.parametrize(("ended_before", "second"), [("submission", 50), ("start", 100)])
def test_a_batch_waits_for_what_had_ended_before_its_submission_or_its_start(
    ended_before: str, second: float
) -> None:
    """The second job was submitted at 50 s, when the first one ran, and started at 110 s."""
    workload = workload_of([Record(1, 0, 100), Record(1, 50, 1, wait=60)])
    waiting = users("adjusted", workload, "arrival:0.5", ended_before=ended_before)
    assert submissions(replay(waiting, hosts=9)) == {"1": 0, "2": second}


@given(log=logs(), sessions=SESSIONS)
@settings(max_examples=settings().max_examples // 3)
def test_who_waits_for_what_had_ended_before_the_start_submits_everything(
    log: list[Record], sessions: str
) -> None:
    workload = recorded(log, 4, "easy")
    found = submissions(replay(users("fluid", workload, sessions, ended_before="start"), 4, "easy"))
    assert len(found) == len(log)
