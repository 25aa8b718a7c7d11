"""Cutting recorded jobs into sessions."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.workload.model import Workload
from batsched_py.workload.sessions import Delimiter, Session, cut_sessions, cut_workload
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

MINUTE = 60


def jobs_at(*minutes: float) -> list[Job]:
    return [Job(f"w0!{i}", minute * MINUTE, 1, inf, "p") for i, minute in enumerate(minutes)]


def sizes(sessions: Sequence[Session]) -> list[int]:
    return [len(session.jobs) for session in sessions]


def cut(rule: str, submissions: list[float], finishes: list[float]) -> list[int]:
    """How many jobs each session has; all times in minutes."""
    jobs = jobs_at(*submissions)
    return sizes(cut_sessions(jobs, [f * MINUTE for f in finishes], Delimiter.parse(rule)))


@pytest.mark.parametrize("text", ["arrival:60", "last:20", "max:0.5", "arrival:0"])
def test_a_delimiter_reads_and_writes_the_same_text(text: str) -> None:
    assert str(Delimiter.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "arrival", "arrival:", "60", "arrivals:60", "last:-1", "max:inf", "max:nan", "arrival:1h"]
)
def test_a_bad_delimiter_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="arrival:MINUTES") as error:
        Delimiter.parse(text)
    assert "\n" not in str(error.value)


def test_arrival_opens_a_session_after_exactly_the_threshold() -> None:
    assert cut("arrival:60", [0, 59, 119, 178], [0, 0, 0, 0]) == [2, 2]


def test_arrival_does_not_look_at_finishes() -> None:
    assert cut("arrival:60", [0, 60], [500, 500]) == [1, 1]


def test_arrival_0_makes_every_job_a_session() -> None:
    assert cut("arrival:0", [0, 0, 5, 5], [9, 9, 9, 9]) == [1, 1, 1, 1]


def test_last_keeps_a_job_that_comes_exactly_the_threshold_after_the_previous_finish() -> None:
    assert cut("last:20", [0, 30, 61], [10, 40, 70]) == [2, 1]


def test_last_forgets_jobs_before_the_previous_one() -> None:
    assert cut("last:20", [0, 5, 40], [100, 10, 50]) == [2, 1]


def test_max_remembers_the_longest_job_of_the_session() -> None:
    assert cut("max:20", [0, 5, 40, 120, 141], [100, 10, 50, 120, 150]) == [4, 1]


def test_max_starts_afresh_with_every_session() -> None:
    assert cut("max:20", [0, 50, 75], [10, 51, 80]) == [1, 1, 1]


def test_a_session_spans_from_its_first_submission_to_its_latest_finish() -> None:
    jobs = jobs_at(1, 2, 3)
    (session,) = cut_sessions(jobs, [100.0, 900.0, 400.0], Delimiter("arrival", 60))
    assert (session.jobs, session.start, session.finish) == (jobs, 60.0, 900.0)


def test_no_jobs_make_no_sessions() -> None:
    assert list(cut_sessions([], [], Delimiter("max", 20))) == []


def workload_of(*submissions: tuple[str | None, float], finishes: list[float] | None = None) -> Workload:
    """Jobs of the named users at these times, numbered from 0."""
    jobs = [
        Job(f"w0!{i}", time, 1, inf, "p", {} if user is None else {"user": user})
        for i, (user, time) in enumerate(submissions)
    ]
    return Workload("w0", jobs, {}, finishes=finishes)


def test_every_user_has_sessions_of_their_own_in_the_order_of_their_numbers() -> None:
    workload = workload_of(
        ("10", 0.0), ("9", 1.0), ("10", 2.0), ("9", 9000.0), finishes=[5.0, 6.0, 7.0, 9005.0]
    )
    sessions = cut_workload(workload, Delimiter("arrival", 60))
    spans = [(user, [(s.start, s.finish) for s in cut]) for user, cut in sessions.items()]
    assert spans == [("9", [(1.0, 6.0), (9000.0, 9005.0)]), ("10", [(0.0, 7.0)])]


def test_jobs_are_cut_in_the_order_of_submission_wherever_they_stand() -> None:
    workload = workload_of(("1", 50.0), ("1", 0.0), finishes=[60.0, 10.0])
    sessions = cut_workload(workload, Delimiter("arrival", 0))
    assert [(s.start, s.finish) for s in sessions["1"]] == [(0.0, 10.0), (50.0, 60.0)]


def test_a_job_without_a_user_is_refused() -> None:
    with pytest.raises(InputError, match="w0!1 of w0 has no user"):
        cut_workload(workload_of(("1", 0.0), (None, 1.0), finishes=[0.0, 1.0]), Delimiter("arrival", 0))


def test_a_workload_without_recorded_finishes_is_refused() -> None:
    with pytest.raises(InputError, match="w0 does not say when its jobs had finished"):
        cut_workload(workload_of(("1", 0.0)), Delimiter("arrival", 0))


def test_recorded_finishes_are_those_of_the_jobs_that_are_kept(tmp_path: Path) -> None:
    """The first record has no processors, the last no wait; the clock starts with the first job kept."""
    records = [(1, 50, 0, 5, -1), (2, 100, 20, 300, 4), (3, 130, -1, 7, 1)]
    lines = [f"{n} {a} {w} {r} {p} -1 -1 -1 -1 -1 1 7 -1 -1 -1 -1 -1 -1" for n, a, w, r, p in records]
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    workload = swf_to_workload(read_swf(tmp_path / "log.swf"))
    assert [job.name for job in workload.jobs] == ["2", "3"]
    assert list(workload.finishes) == [320.0, 37.0]


def slow_borders(rule: str, threshold: float, submissions: list[int], finishes: list[int]) -> list[int]:
    """The definitions, word by word: the index of each job that opens a session."""
    borders: list[int] = []
    for i, submission in enumerate(submissions):
        if i == 0:
            opens = True
        elif rule == "arrival":
            opens = submission >= submissions[i - 1] + threshold
        elif rule == "last":
            opens = submission > finishes[i - 1] + threshold
        else:
            opens = all(submission > finishes[k] + threshold for k in range(borders[-1], i))
        if opens:
            borders.append(i)
    return borders


@given(
    st.sampled_from(["arrival", "last", "max"]),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 12)), max_size=30),
)
def test_cutting_agrees_with_the_definitions(rule: str, minutes: int, steps: list[tuple[int, int]]) -> None:
    submissions = [MINUTE * sum(gap for gap, _ in steps[: i + 1]) for i in range(len(steps))]
    finishes = [a + MINUTE * response for a, (_, response) in zip(submissions, steps, strict=True)]
    jobs = [Job(f"w0!{i}", float(a), 1, inf, "p") for i, a in enumerate(submissions)]

    sessions = cut_sessions(jobs, [float(f) for f in finishes], Delimiter.parse(f"{rule}:{minutes}"))

    assert [job for session in sessions for job in session.jobs] == jobs
    assert [int(s.jobs[0].name) for s in sessions] == slow_borders(
        rule, minutes * MINUTE, submissions, finishes
    )
    for session in sessions:
        indices = [int(job.name) for job in session.jobs]
        assert session.start == submissions[indices[0]]
        assert session.finish == max(finishes[i] for i in indices)
