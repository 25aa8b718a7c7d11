"""Runs and logs as the figures see them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from batsched_py.analysis.plots.runs import read_run, recorded_run
from batsched_py.errors import InputError
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from tests.runs import Row, run_of, write_jobs, write_log

ROWS = [
    Row(1, 0, 0, 100, "0-1", size=2),
    Row(2, 10, 50, 150, "2", size=1),
    Row(3, 20),
]


@pytest.fixture
def log(tmp_path: Path) -> SwfLog:
    records = [(1, 500, 5, 95, 2, 7), (2, 505, -1, 100, 1, 8), (3, 530, 0, 10, 9, 7), (4, 540, 0, 1, -1, 7)]
    return read_swf(write_log(tmp_path / "log.swf", records, "; MaxProcs: 12\n"))


def test_the_machine_is_as_large_as_its_summary_says(tmp_path: Path) -> None:
    assert run_of(tmp_path, ROWS, nb_hosts=16).hosts == 16


def test_without_a_summary_the_machine_ends_with_the_highest_host_in_use_and_it_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = run_of(tmp_path, ROWS)
    assert not caplog.records, "figures that have no use for it say nothing"
    assert (run.hosts, run.hosts) == (3, 3)
    (said,) = caplog.messages
    assert said.startswith("run: nothing tells how large the machine is: it is taken to have 3 hosts")


def test_a_log_without_a_header_has_the_processors_that_were_in_use_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    records = [(1, 0, 0, 100, 8, 1), (2, 0, 50, 10, 8, 1), (3, 200, 0, 10, 9, 1)]
    assert recorded_run(read_swf(write_log(tmp_path / "log.swf", records))).hosts == 16
    (said,) = caplog.messages
    assert said.startswith(
        "recorded: the log does not say how large its machine is: it is taken to have the 16"
    )


def test_a_summary_of_a_smaller_machine_is_not_believed(tmp_path: Path) -> None:
    assert run_of(tmp_path, ROWS, nb_hosts=2).hosts == 3


def test_rejected_jobs_hold_nothing(tmp_path: Path) -> None:
    run = run_of(tmp_path, ROWS)
    assert run.jobs["held"].to_list() == [2, 1, 0]
    assert run.executed["job_id"].to_list() == ["1", "2"]
    assert run.end == 150


def test_busy_hosts_are_means_over_time(tmp_path: Path) -> None:
    busy = run_of(tmp_path, ROWS).busy_hosts(np.array([0.0, 50.0, 125.0, 200.0]))
    assert busy == pytest.approx([2.0, (50 * 3 + 25 * 1) / 75, 25 / 75])


def test_the_log_tells_users_and_lateness(tmp_path: Path, log: SwfLog) -> None:
    run = read_run(write_jobs(tmp_path / "a_jobs.csv", ROWS), "a", log)
    assert run.replayed["user"].to_list() == ["7", "8", "7"]
    assert run.replayed["lateness"].to_list() == [0, 5, -10]


def test_so_do_the_notes_of_feedback_users(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 10, 10, 20, "0", note="user=4 session=0 recorded=7")])
    assert run.replayed[["user", "lateness"]].to_numpy().tolist() == [["4", 3.0]]


def test_users_that_nobody_told_are_missed_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"run: the schedule does not tell its users; .*--recorded LOG\.swf$"
    ):
        _ = run_of(tmp_path, ROWS).replayed


def test_another_log_is_noticed(tmp_path: Path, log: SwfLog) -> None:
    path = write_jobs(tmp_path / "a_jobs.csv", [Row(77, 0, 0, 1, "0")])
    with pytest.raises(InputError, match=r"a_jobs\.csv: no job of the schedule is in the recorded log"):
        read_run(path, "a", log)


def test_a_run_in_which_nothing_ran_is_refused(tmp_path: Path) -> None:
    path = write_jobs(tmp_path / "a_jobs.csv", [Row(1, 0)])
    with pytest.raises(InputError, match="no job was executed"):
        read_run(path, "a")


def test_a_log_is_a_run_too(log: SwfLog) -> None:
    run = recorded_run(log)
    assert (run.label, run.hosts) == ("recorded", 12)
    columns = ["job_id", "user", "submission_time", "starting_time", "finish_time", "held", "lateness"]
    assert run.jobs[columns].to_numpy().tolist() == [
        ["1", "7", 0, 5, 100, 2, 0],
        ["2", "8", 5, 5, 105, 1, 0],
        ["3", "7", 30, 30, 40, 9, 0],
    ]
