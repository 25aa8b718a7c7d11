"""What the figures show, worked out by hand."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from batsched_py.analysis.plots.kinds.distributions import (
    job_classes,
    job_owners,
    measured,
    submission_differences,
)
from batsched_py.analysis.plots.kinds.gantt import busiest_users, rectangles
from batsched_py.analysis.plots.kinds.over_time import (
    cumulative_jobs,
    period_for,
    submissions_per_period,
    throughput_and_utilization,
)
from batsched_py.analysis.plots.kinds.submitters import (
    additional_lateness_by_size,
    graph_statistics,
    hours_of_week,
    submissions_by_hour_of_week,
    user_arrivals,
    user_lateness,
)
from batsched_py.analysis.plots.runs import read_run, recorded_run
from batsched_py.errors import InputError
from batsched_py.workload.sessions import Delimiter
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload
from tests.runs import Row, run_of, write_jobs, write_log

DAY = 86400.0


def noted(job: int, submitted: float, user: int, recorded: float) -> Row:
    note = f"user={user} session=0 recorded={recorded}"
    return Row(job, submitted, submitted, submitted + 10, "0", note=note)


def test_a_rectangle_for_each_interval_of_hosts(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 5, 9, "0-1 4"), Row(2, 0), Row(3, 0, 6, 8, "2")])
    assert rectangles(run).to_numpy().tolist() == [[0, 5, 9, 0, 2], [0, 5, 9, 4, 5], [2, 6, 8, 2, 3]]


def test_the_busiest_users_are_those_of_the_most_host_seconds(tmp_path: Path) -> None:
    rows = [
        Row(1, 0, 0, 100, "0", note="user=5 recorded=0"),
        Row(2, 0, 0, 60, "1-2", note="user=6 recorded=0"),
        Row(3, 0, 0, 30, "3", note="user=5 recorded=0"),
    ]
    assert busiest_users(run_of(tmp_path, rows)) == ["5", "6"]


def test_waits_turnarounds_and_slowdowns_of_executed_jobs(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 5, 7, "0"), Row(2, 0), Row(3, 10, 30, 50, "0-1")])
    assert measured(run, "wait").to_list() == [5, 20]
    assert measured(run, "turnaround").to_list() == [7, 40]
    assert measured(run, "slowdown").to_list() == [1, 2], "a job of 2 s counts as if it ran for 10 s"


def test_jobs_are_short_up_to_an_hour_and_narrow_up_to_eight_hosts(tmp_path: Path) -> None:
    rows = [
        Row(1, 0, 0, 3600, "0-7"),
        Row(2, 0, 0, 3601, "0-7"),
        Row(3, 0, 0, 1, "0-8"),
        Row(4, 0, 0, 7200, "0-8"),
    ]
    expected = ["short, narrow", "long, narrow", "short, wide", "long, wide"]
    assert job_classes(run_of(tmp_path, rows)).to_list() == expected


def test_all_but_the_busiest_users_are_others(tmp_path: Path) -> None:
    rows = [Row(n, 0, 0, 10 * n, "0", note=f"user={n} recorded=0") for n in range(1, 7)]
    owners = job_owners(run_of(tmp_path, rows)).to_list()
    assert owners == ["others", "others", "user 3", "user 4", "user 5", "user 6"]


def test_the_mean_number_of_waiting_jobs(tmp_path: Path) -> None:
    run = run_of(
        tmp_path, [Row(1, 0, 5, 20, "0"), Row(2, 5, 20, 30, "0"), Row(3, 10, 12, 30, "1"), Row(4, 1)]
    )
    assert run.waiting_jobs(np.array([0.0, 10.0, 20.0, 30.0])) == pytest.approx([1, 1.2, 0])


def test_mean_power_is_energy_by_time(tmp_path: Path) -> None:
    write_jobs(tmp_path / "run_jobs.csv", [Row(1, 0, 0, 20, "0")])
    lines = ["time,energy,event_type,wattmin,epower", "0,0,s,1,NA", "10,1000,e,1,100", "20,1500,e,1,50"]
    (tmp_path / "run_consumed_energy.csv").write_text("\n".join(lines) + "\n")
    run = read_run(tmp_path / "run_jobs.csv", "run")
    assert run.mean_power(np.array([0.0, 10.0, 20.0])).tolist() == [100, 50]


def test_submissions_are_counted_by_period(tmp_path: Path) -> None:
    a = run_of(tmp_path, [Row(1, 0, 0, 1, "0"), Row(2, 3599, 3599, 3600, "0"), Row(3, 3600)], "a")
    b = run_of(tmp_path, [Row(1, 8000, 8000, 8001, "0")], "b")
    counts = submissions_per_period([a, b], 3600)
    assert counts.index.to_list() == [0, 3600, 7200]
    assert counts["a"].to_list() == [2, 1, 0]
    assert counts["b"].to_list() == [0, 0, 1]


def test_longer_runs_are_counted_by_longer_periods() -> None:
    assert [period_for(days * DAY)[1] for days in (1, 30, 100, 5000)] == ["hour", "6 hours", "day", "week"]


def test_cumulated_jobs_are_those_so_far(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 5, 20, "0"), Row(2, 10, 20, 30, "0"), Row(3, 10)])
    times = np.array([0.0, 9.0, 10.0, 20.0, 99.0])
    assert cumulative_jobs([run], "submission_time", times)["run"].to_list() == [1, 1, 3, 3, 3]
    assert cumulative_jobs([run], "finish_time", times)["run"].to_list() == [0, 0, 0, 1, 2]


def test_lateness_of_each_user(tmp_path: Path) -> None:
    rows = [noted(1, 0, 7, 0), noted(2, 30, 7, 20), noted(3, 70, 7, 50), noted(4, 9, 12, 10)]
    users = user_lateness(run_of(tmp_path, rows))
    assert users.loc["7"].to_list() == [3, 10, 10]
    assert users.loc["12", ["jobs", "mean_lateness"]].to_list() == [1, -1]
    assert np.isnan(users.loc["12", "additional_lateness"])


def test_differences_are_between_equal_jobs(tmp_path: Path) -> None:
    a = run_of(tmp_path, [Row(1, 5, 5, 6, "0"), Row(2, 0), Row(3, 1, 1, 2, "0")], "a")
    b = run_of(tmp_path, [Row(2, 10, 10, 11, "0"), Row(1, 4, 4, 5, "0")], "b")
    assert submission_differences(a, b).to_dict() == {"1": 1, "2": -10}


def test_runs_without_a_common_job_cannot_be_compared(tmp_path: Path) -> None:
    a, b = (run_of(tmp_path, [Row(n, 0, 0, 1, "0")], label) for n, label in ((1, "a"), (2, "b")))
    with pytest.raises(InputError, match="a and b have no job in common"):
        submission_differences(a, b)


def test_a_job_number_that_stands_for_two_jobs_cannot_be_compared(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 0, 1, "0"), Row(1, 5, 5, 6, "0")])
    with pytest.raises(InputError, match="run: job 1 is there twice"):
        submission_differences(run, run)


@pytest.mark.parametrize(
    "moment", ["1996-09-23 14:00", "1996-10-27 23:30", "1997-03-30 04:00", "1997-08-29 10:55"]
)
def test_hours_of_the_week_are_those_of_the_clock_on_the_wall(tmp_path: Path, moment: str) -> None:
    """Summer time ended on 27 October 1996, and began on 30 March 1997."""
    zone = ZoneInfo("Europe/Stockholm")
    header = "; UnixStartTime: 843480000\n; TimeZone: 3600\n; TimeZoneString: Europe/Stockholm\n"
    log = read_swf(write_log(tmp_path / "log.swf", [(1, 60, 0, 1, 1, 1)], header))
    when = datetime.fromisoformat(moment).replace(tzinfo=zone)
    (hour,) = hours_of_week(np.array([when.timestamp() - 843480000 - 60]), log)
    assert hour == 24 * when.weekday() + when.hour


@pytest.mark.parametrize(("zone", "hour"), [("; TimeZone: -7200\n", 22 + 6 * 24), ("", 0)])
def test_without_a_named_zone_the_difference_counts_then_utc(tmp_path: Path, zone: str, hour: int) -> None:
    header = "; UnixStartTime: 1704067200\n" + zone
    log = read_swf(write_log(tmp_path / "log.swf", [(1, 0, 0, 1, 1, 1)], header))
    counts = submissions_by_hour_of_week([recorded_run(log)])["recorded"]
    assert counts[counts > 0].to_dict() == {hour: 1}


def test_a_log_that_hides_when_it_began_has_no_week(tmp_path: Path) -> None:
    log = read_swf(write_log(tmp_path / "log.swf", [(1, 0, 0, 1, 1, 1)]))
    with pytest.raises(InputError, match=r"log\.swf: .*UnixStartTime"):
        hours_of_week(np.zeros(1), log)


def test_throughput_and_utilization_are_those_of_the_window(tmp_path: Path) -> None:
    rows = [
        Row(1, 0, 0, 2 * DAY, "0-1"),
        Row(2, 0, 2 * DAY, 2.5 * DAY, "0"),
        Row(3, 0, 2 * DAY, 9 * DAY, "1"),
        Row(4, 0),
    ]
    run = run_of(tmp_path, rows, nb_hosts=4)
    table = throughput_and_utilization([run], skipped=1, windows=[4, 2, 4])
    assert table.to_numpy().tolist() == [
        ["run", 2, pytest.approx(2 / 2), pytest.approx((2 + 0.5 + 1) / 8)],
        ["run", 4, pytest.approx(2 / 4), pytest.approx((2 + 0.5 + 3) / 16)],
    ]


def test_a_window_beyond_the_end_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, [Row(1, 0, 0, 2 * DAY, "0")])
    with pytest.raises(
        InputError, match=r"run ends after 2\.0 days, before a window of 3 days from day 1 does"
    ):
        throughput_and_utilization([run], skipped=1, windows=[3])


def test_users_arrive_with_their_first_job(tmp_path: Path) -> None:
    rows = [noted(1, 50, 7, 0), noted(2, 30, 7, 0), noted(3, 10, 12, 0)]
    assert user_arrivals(run_of(tmp_path, rows)).to_dict() == {"12": 10, "7": 30}


def test_additional_lateness_by_the_number_of_jobs(tmp_path: Path) -> None:
    long = run_of(tmp_path, [noted(1, 0, 7, 0), noted(2, 8, 7, 5), noted(3, 19, 8, 10)], "easy")
    short = run_of(tmp_path, [noted(1, 0, 7, 0), noted(2, 8, 7, 5)], "easy")
    table = additional_lateness_by_size([long, short])
    expected = pd.DataFrame({"run": "easy", "jobs": [2, 3], "additional_lateness": [3.0, 4.0]})
    pd.testing.assert_frame_equal(table, expected)


def test_graphs_of_each_user_under_each_delimiter(tmp_path: Path) -> None:
    records = [(1, 0, 0, 60, 1, 7), (2, 100, 0, 60, 1, 7), (3, 110, 0, 60, 1, 7), (4, 0, 0, 9, 1, 12)]
    workload = swf_to_workload(read_swf(write_log(tmp_path / "log.swf", records)))
    table = graph_statistics(workload, [Delimiter.parse("arrival:0"), Delimiter.parse("arrival:60")])
    assert table.to_numpy().tolist() == [
        ["arrival:0", "7", 3, 2, 2],
        ["arrival:0", "12", 1, 1, 0],
        ["arrival:60", "7", 1, 1, 0],
        ["arrival:60", "12", 1, 1, 0],
    ]
