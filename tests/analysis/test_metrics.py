"""Metrics, computed by hand and compared with what Batsim says of its own schedules."""

from __future__ import annotations

import csv
from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from batsched_py.analysis.metrics import METRICS, explain, measure, measure_users
from batsched_py.analysis.outcome import Outcome, Summary, queue_length, read_summary
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.user_metrics import job_lateness, noted_submissions, recorded_submissions
from batsched_py.errors import InputError
from batsched_py.testing import JobSpec
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from tests.reference_schedulers import jobs_csv

GOLDEN = Path(__file__).parents[1] / "data" / "golden"

#: On 4 hosts: 1 runs at once, 2 waits for it and is killed at its walltime, 3 is too wide, 4 has no length.
JOBS = [
    JobSpec("1", 10, 3, 20, 100),
    JobSpec("2", 14, 2, 9, 4),
    JobSpec("3", 20, 5, 1, 1),
    JobSpec("4", 24, 1, 0, 1),
]
STARTS = {"1": 10, "2": 30, "4": 25}

#: number, submit, wait, run time, processors and user; job 5 has no processors
RECORDS = [
    (5, 90, 0, 1, 0, 7),
    (1, 100, 0, 20, 3, 7),
    (2, 101, 0, 9, 2, 8),
    (3, 109, 0, 1, 5, 7),
    (4, 110, 0, 0, 1, 7),
]


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    path = tmp_path / "jobs.csv"
    path.write_text(jobs_csv(JOBS, STARTS, hosts=4))
    return Outcome(read_schedule(path), nb_hosts=4)


@pytest.fixture
def log(tmp_path: Path) -> SwfLog:
    path = tmp_path / "log.swf"
    path.write_text(
        "".join(f"{n} {a} {w} {r} {p}{' -1' * 6} {u}{' -1' * 6}\n" for n, a, w, r, p, u in RECORDS)
    )
    return read_swf(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nb_jobs", 4),
        ("nb_jobs_finished", 3),
        ("nb_jobs_success", 2),
        ("nb_jobs_killed", 1),
        ("nb_jobs_rejected", 1),
        ("makespan", 34 - 10),
        ("mean_waiting_time", (0 + 16 + 1) / 3),
        ("max_waiting_time", 16),
        ("mean_turnaround_time", (20 + 20 + 1.00001) / 3),
        ("max_turnaround_time", 20),
        ("mean_slowdown", (20 / 20 + 20 / 4 + 1.00001 / 0.00001) / 3),
        ("max_slowdown", 100001),
        ("mean_bounded_slowdown", (1 + 20 / 10 + 1) / 3),
        ("max_bounded_slowdown", 2),
        ("mean_stretch", (1 + 5 + 100001) / 3),
        ("max_stretch", 100001),
        ("p50_waiting_time", 1),
        ("p95_waiting_time", 1 + 0.9 * (16 - 1)),
        ("p99_waiting_time", 1 + 0.98 * (16 - 1)),
        ("p50_turnaround_time", 20),
        ("p95_turnaround_time", 20),
        ("p99_turnaround_time", 20),
        ("p50_slowdown", 5),
        ("p95_slowdown", 5 + 0.9 * (100001 - 5)),
        ("p99_slowdown", 5 + 0.98 * (100001 - 5)),
        ("p50_bounded_slowdown", 1),
        ("p95_bounded_slowdown", 1 + 0.9 * (2 - 1)),
        ("p99_bounded_slowdown", 1 + 0.98 * (2 - 1)),
        ("share_of_top_percent", 2 / (1 + 2 + 1)),
        ("mean_per_processor_slowdown", (1 + 1 + 1) / 3),
        ("area_weighted_turnaround_time", (60 * 20 + 8 * 20 + 1e-5 * 1.00001) / (60 + 8 + 1e-5)),
        ("utilization", (3 * 20 + 2 * 4) / (4 * 24)),
        ("offered_load", (3 * 20 + 2 * 4) / (4 * (24 - 10))),
        ("throughput", 3 / 24 * 86400),
        ("mean_queue_length", (16 + 1) / 24),
        ("max_queue_length", 2),
    ],
)
def test_a_schedule_measured_by_hand(outcome: Outcome, name: str, value: float) -> None:
    assert measure(outcome)[name] == pytest.approx(value, rel=1e-12)


def test_every_metric_is_tried_by_hand(outcome: Outcome) -> None:
    (parameters,) = [
        mark for mark in test_a_schedule_measured_by_hand.pytestmark if mark.name == "parametrize"
    ]
    tried = {name for name, _ in parameters.args[1]}
    assert tried == {metric.name for metric in METRICS if metric.needs is None} == set(measure(outcome))


def test_the_bound_of_slowdowns_may_be_another_one(outcome: Outcome) -> None:
    figures = measure(replace(outcome, bound=1.0))
    assert figures["mean_bounded_slowdown"] == pytest.approx((1 + 5 + 1.00001) / 3)
    assert figures["mean_per_processor_slowdown"] == pytest.approx((1 + 20 / (4 * 2) + 1.00001) / 3)


def test_users_are_compared_by_their_mean_bounded_slowdowns(outcome: Outcome, log: SwfLog) -> None:
    figures = measure(replace(outcome, recorded=recorded_submissions(log)))
    assert figures["jain_index"] == pytest.approx((1 + 2) ** 2 / (2 * (1 + 4)))
    assert figures["gini_index"] == pytest.approx((2 - 1) / (2 * (1 + 2)))


def test_with_users_who_react_the_last_tenth_of_the_jobs_tells_nothing_of_the_utilization(
    tmp_path: Path,
) -> None:
    specs = [JobSpec(str(number), 10 * number, 2, 10, 100) for number in range(9)]
    jobs = [*specs, JobSpec("9", 1000, 2, 10, 100)]
    (tmp_path / "jobs.csv").write_text(jobs_csv(jobs, {job.id: job.submission for job in jobs}, hosts=4))
    schedule = read_schedule(tmp_path / "jobs.csv")
    rigid = measure(Outcome(schedule, nb_hosts=4))
    assert rigid["utilization"] == pytest.approx(2 * 100 / (4 * 1010))
    react = measure(Outcome(schedule.assign(metadata="user=1 session=0"), nb_hosts=4))
    assert react["utilization"] == pytest.approx(2 * 80 / (4 * 80))
    assert react["throughput"] == pytest.approx(7 / 80 * 86400)
    assert react["makespan"] == 1010
    assert react["offered_load"] == pytest.approx(2 * 90 / (4 * 80))


@pytest.mark.parametrize("name", ["power60_sleeper", "power60_energy_bf", "power60_energy_watcher"])
def test_the_energy_is_what_batsim_says(name: str) -> None:
    jobs = GOLDEN / name / "jobs.csv"
    with (GOLDEN / name / "schedule.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    summary = read_summary(jobs)
    assert summary.nb_hosts == int(row["nb_computing_machines"])
    figures = measure(Outcome(read_schedule(jobs), consumed_joules=summary.consumed_joules))
    assert figures["consumed_joules"] == float(row["consumed_joules"]) > 0


def test_energy_that_was_not_accounted_for_is_no_metric() -> None:
    jobs = GOLDEN / "rigid200_fcfs" / "jobs.csv"
    assert read_summary(jobs).consumed_joules is None
    assert "consumed_joules" not in measure(Outcome(read_schedule(jobs)))


@pytest.mark.parametrize("row", ["", "makespan\n1\n", "consumed_joules,nb_computing_machines\nmuch,many\n"])
def test_a_summary_may_say_nothing(tmp_path: Path, row: str) -> None:
    (tmp_path / "out_schedule.csv").write_text(row)
    assert read_summary(tmp_path / "out_jobs.csv") == Summary()
    assert read_summary(tmp_path / "other_jobs.csv") == Summary()


def test_without_its_size_a_machine_ends_at_the_highest_host_that_was_used(outcome: Outcome) -> None:
    assert Outcome(outcome.schedule).machine_size == 4
    assert Outcome(outcome.schedule[outcome.schedule["job_id"] == "1"]).machine_size == 3


def test_the_queue_length_over_time(outcome: Outcome) -> None:
    assert queue_length(outcome.schedule).to_dict() == {10: 0, 14: 1, 24: 2, 25: 1, 30: 0}


def test_a_schedule_of_rejected_jobs_has_no_length(outcome: Outcome) -> None:
    rejected = outcome.schedule[outcome.schedule["final_state"] == "REJECTED"]
    figures = measure(Outcome(rejected, nb_hosts=4))
    assert (figures["makespan"], figures["max_queue_length"]) == (0, 0)
    assert isnan(figures["utilization"])
    assert isnan(figures["mean_waiting_time"])


def test_a_schedule_without_jobs_has_no_means(outcome: Outcome) -> None:
    assert isnan(measure(Outcome(outcome.schedule.iloc[:0]))["mean_waiting_time"])


# --- Batsim's own figures ------------------------------------------------------------------------

SAME = [
    "nb_jobs",
    "nb_jobs_finished",
    "nb_jobs_success",
    "nb_jobs_killed",
    "nb_jobs_rejected",
    "mean_waiting_time",
    "max_waiting_time",
    "mean_turnaround_time",
    "max_turnaround_time",
    "mean_slowdown",
    "max_slowdown",
]


FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/jobs.csv"))


def figures_of_batsim(folder: Path) -> dict[str, str]:
    with (folder / "schedule.csv").open() as file:
        (figures,) = csv.DictReader(file)
    return figures


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_our_figures_are_those_of_the_real_batsim(folder: Path) -> None:
    theirs = figures_of_batsim(folder)
    ours = measure(Outcome(read_schedule(folder / "jobs.csv")))
    for name in ("mean_waiting_time", "mean_turnaround_time", "mean_slowdown"):  # Batsim divides by all jobs
        ours[name] = (
            ours[name] * ours["nb_jobs_finished"] / ours["nb_jobs"] if ours["nb_jobs_finished"] else 0
        )
    assert [ours[name] for name in SAME] == pytest.approx(
        [float(theirs[name]) for name in SAME], rel=1e-9, abs=1e-6
    )


@pytest.mark.parametrize(
    "folder",
    # a host that is taken away while it runs a job goes on computing, but Batsim counts it as unavailable
    [folder for folder in FOLDERS if folder.name != "outage_filler"],
    ids=lambda path: path.name,
)
def test_hosts_are_used_as_long_as_they_compute_for_the_real_batsim(folder: Path) -> None:
    outcome = Outcome(read_schedule(folder / "jobs.csv"))
    assert outcome.host_seconds == pytest.approx(float(figures_of_batsim(folder)["time_computing"]), abs=1e-4)


@pytest.mark.parametrize("name", ["rigid200_fcfs", "busy400_easy_bf", "kinds120_filler", "two_workloads"])
def test_our_makespan_begins_at_the_first_submission_and_batsims_at_zero(name: str) -> None:
    theirs = figures_of_batsim(GOLDEN / name)
    outcome = Outcome(read_schedule(GOLDEN / name / "jobs.csv"))
    first = outcome.schedule["submission_time"].min()
    assert outcome.makespan + first == pytest.approx(float(theirs["makespan"]), abs=1e-6)


# --- lateness ------------------------------------------------------------------------------------


def test_recorded_submissions_begin_at_zero_with_the_first_job_that_has_processors(log: SwfLog) -> None:
    recorded = recorded_submissions(log)
    assert recorded["submission_time"].to_dict() == {"1": 0, "2": 1, "3": 9, "4": 10}
    assert recorded["user"].to_dict() == {"1": "7", "2": "8", "3": "7", "4": "7"}


def test_lateness_measured_by_hand(outcome: Outcome, log: SwfLog) -> None:
    """The jobs are 10, 13, 11 and 14 seconds late; job 3, which was rejected, like the others."""
    replay = Outcome(outcome.schedule, 4, recorded_submissions(log))
    assert replay.lateness["lateness"].to_dict() == {"1": 10, "2": 13, "3": 11, "4": 14}
    figures = measure(replay)
    assert figures["mean_lateness"] == 12
    assert figures["relative_lateness"] == 1 + 12 / 10
    assert figures["additional_lateness"] == 2 * 12 / 3


def test_lateness_of_each_user_is_about_the_users_own_jobs(outcome: Outcome, log: SwfLog) -> None:
    users = measure_users(Outcome(outcome.schedule, 4, recorded_submissions(log)))
    assert list(users) == ["7", "8"]
    assert users["7"]["nb_jobs"] == 3
    assert users["7"]["mean_waiting_time"] == pytest.approx(1 / 2)
    assert users["7"]["mean_lateness"] == pytest.approx((10 + 11 + 14) / 3)
    assert users["7"]["relative_lateness"] == pytest.approx(1 + (10 + 11 + 14) / 3 / 10)
    assert users["7"]["additional_lateness"] == pytest.approx((10 + 11 + 14) / 3)


def test_a_single_job_has_neither_relative_nor_additional_lateness(outcome: Outcome, log: SwfLog) -> None:
    user = measure_users(Outcome(outcome.schedule, 4, recorded_submissions(log)))["8"]
    assert user["mean_lateness"] == 13
    assert isnan(user["relative_lateness"])
    assert isnan(user["additional_lateness"])


def test_users_come_in_the_order_of_their_numbers(outcome: Outcome, log: SwfLog) -> None:
    recorded = recorded_submissions(log)
    recorded["user"] = ["10", "9", "2", "2"]
    assert list(Outcome(outcome.schedule, 4, recorded).by_user()) == ["2", "9", "10"]


def test_what_feedback_users_note_is_as_good_as_the_log(outcome: Outcome, log: SwfLog) -> None:
    recorded = recorded_submissions(log).loc[outcome.schedule["job_id"]]
    noted = outcome.schedule.assign(
        metadata=[
            f"user={job.user} session=0 recorded={job.submission_time:g}" for job in recorded.itertuples()
        ]
    )
    pd.testing.assert_frame_equal(noted_submissions(noted), recorded, check_dtype=False)


def test_names_in_notes_are_unquoted(outcome: Outcome) -> None:
    noted = noted_submissions(outcome.schedule.assign(metadata="user=Ada%20L. recorded=0.5"))
    assert noted is not None
    assert set(noted["user"]) == {"Ada L."}
    assert set(noted["submission_time"]) == {0.5}


def test_a_single_job_without_a_note_leaves_all_to_the_log(outcome: Outcome) -> None:
    noted = outcome.schedule.assign(metadata="user=1 recorded=0")
    noted.loc[2, "metadata"] = "reserved=5 superuser=1"
    assert noted_submissions(noted) is None


def test_a_job_that_the_log_does_not_have_is_not_late(outcome: Outcome, log: SwfLog) -> None:
    """Users may submit jobs of their own, or a job again."""
    known = job_lateness(outcome.schedule, recorded_submissions(log))
    found = job_lateness(outcome.schedule, recorded_submissions(log).drop("2"))
    pd.testing.assert_frame_equal(found, known.drop("2"))


def test_it_counts_for_its_user_nevertheless(outcome: Outcome, log: SwfLog) -> None:
    schedule = outcome.schedule.assign(metadata="")
    schedule.loc[schedule["job_id"] == "2", "metadata"] = "user=99"
    users = measure_users(replace(outcome, jobs=schedule, recorded=recorded_submissions(log).drop("2")))
    assert users["99"]["nb_jobs"] == 1


def test_a_note_without_a_recorded_time_is_about_a_job_that_the_log_does_not_have(outcome: Outcome) -> None:
    schedule = outcome.schedule.assign(metadata="user=1 recorded=0")
    schedule.loc[schedule["job_id"] == "2", "metadata"] = "user=1 again=1"
    noted = noted_submissions(schedule)
    assert noted is not None
    assert "2" not in job_lateness(schedule, noted).index
    users = measure_users(replace(outcome, jobs=schedule, recorded=noted))
    assert users["1"]["nb_jobs"] == len(schedule)


def test_a_job_number_that_stands_for_two_jobs_is_named(outcome: Outcome, log: SwfLog) -> None:
    schedule = outcome.schedule.assign(job_id="1")
    with pytest.raises(InputError, match="job 1 is twice in the schedule"):
        job_lateness(schedule, recorded_submissions(log))


def test_users_are_not_known_without_a_log(outcome: Outcome) -> None:
    with pytest.raises(InputError, match="the schedule does not tell its users"):
        measure_users(outcome)


def test_a_rigid_replay_of_a_log_is_never_late(shared: Path) -> None:
    log = read_swf(shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz")
    recorded = recorded_submissions(log)
    assert len(recorded) == 28475
    assert recorded["user"].nunique() == 214
    schedule = recorded.reset_index()[["job_id", "submission_time"]]
    assert np.all(job_lateness(schedule, recorded)["lateness"] == 0)


# --- documentation -------------------------------------------------------------------------------


def test_every_metric_says_what_it_is() -> None:
    for metric in METRICS:
        assert metric.formula
        assert metric.counting.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_the_documentation_has_the_formulas(root: Path) -> None:
    assert explain() in (root / "docs" / "metrics.md").read_text()
