"""Sessions of simulated users, and what hosts draw around the windows of sober ones, by hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from batsched_py.analysis.metrics import measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.schedule import read_schedule
from batsched_py.testing import JobSpec
from tests.reference_schedulers import jobs_csv

MINUTE = 60


def schedule_of(tmp_path: Path, jobs: list[tuple[int, int]], notes: list[str]) -> pd.DataFrame:
    """Jobs, by submission and run time, that start at once on hosts of their own; notes as they end."""
    path = tmp_path / "jobs.csv"
    ref = [JobSpec(str(n), submit, 1, run, 10**6) for n, (submit, run) in enumerate(jobs, 1)]
    path.write_text(jobs_csv(ref, {job.id: job.submission for job in ref}, hosts=8))
    return read_schedule(path).assign(metadata=notes)


def test_a_session_ends_when_its_user_thinks_for_more_than_20_minutes(tmp_path: Path) -> None:
    jobs = [(0, 60 * MINUTE), (10 * MINUTE, MINUTE), (80 * MINUTE, MINUTE), (102 * MINUTE, MINUTE)]
    outcome = Outcome(schedule_of(tmp_path, jobs, ["user=7"] * 4))
    sessions = outcome.working_sessions
    assert sessions is not None
    assert sessions[["begin", "end", "nb_jobs"]].to_numpy().tolist() == [
        [0, 81 * MINUTE, 3],
        [102 * MINUTE, 103 * MINUTE, 1],
    ]
    figures = measure(outcome)
    assert (figures["nb_sessions"], figures["jobs_per_session"]) == (2, 2)
    assert figures["mean_session_length"] == 41 * MINUTE


def test_each_user_has_own_sessions(tmp_path: Path) -> None:
    schedule = schedule_of(tmp_path, [(0, 1), (1, 1), (2, 1)], ["user=7", "user=8", "session=1 user=7"])
    sessions = Outcome(schedule).working_sessions
    assert sessions is not None
    assert sessions[["user", "nb_jobs"]].to_numpy().tolist() == [["7", 2], ["8", 1]]


def test_without_users_there_are_no_sessions(tmp_path: Path) -> None:
    assert "nb_sessions" not in measure(Outcome(schedule_of(tmp_path, [(0, 1)], [""])))


def test_joules_are_told_apart_by_the_windows_of_sober_users(tmp_path: Path) -> None:
    """A job of 100 W for 60 s, of which 20 s lie in a window, and one of 50 W that begins 10 s after it."""
    notes = ["sober=as-recorded window=40.0:70.0", "user=7"]
    schedule = schedule_of(tmp_path, [(0, 60), (80, 30)], notes).assign(consumed_energy=[6000.0, 1500.0])
    figures = measure(Outcome(schedule))
    assert (figures["joules_in_windows"], figures["joules_after_windows"]) == pytest.approx((2000, 1500))


def test_what_was_drawn_in_the_next_window_is_not_after_the_first(tmp_path: Path) -> None:
    notes = ["sober=later window=0.0:10.0", "sober=later window=20.0:30.0"]
    schedule = schedule_of(tmp_path, [(5, 1), (5, 20)], notes).assign(consumed_energy=[0.0, 2000.0])
    figures = measure(Outcome(schedule))
    assert (figures["joules_in_windows"], figures["joules_after_windows"]) == pytest.approx((1000, 1000))
