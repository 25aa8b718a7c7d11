"""The other families of statistics, on logs that can be read at a glance."""

from __future__ import annotations

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.workload.description import describe, quality, traits
from batsched_py.workload.description.jobs import (
    characterised,
    correlation,
    distribution,
    distributions,
    pearson,
)
from batsched_py.workload.description.over_time import arrival_hurst, cycles, load
from batsched_py.workload.description.users import flurries, locality, users
from batsched_py.workload.models.arrivals import fractional_gaussian_noise
from tests.logs import log_of

WEEK = 7 * 86400
HOUR = 3600


def test_a_log_is_characterised_by_jobs_that_completed_however_short() -> None:
    log = log_of(run_time=[10, 0, 10, 10], status=[1, 1, 0, 1], requested_processors=[4, 4, 4, -1])
    assert characterised(log).job_number.tolist() == [1, 2]


def test_a_log_without_completed_jobs_is_taken_without_those_that_never_started() -> None:
    log = log_of(run_time=[10, 0, 0], status=[-1, -1, 5], allocated_processors=-1)
    assert characterised(log).job_number.tolist() == [1, 2]


def test_jobs_of_0_seconds_are_like_others_in_every_comparison() -> None:
    run_times = np.tile([0, 0, 1, 3000], 60)
    found = traits(log_of(submit=np.arange(240) * 50, run_time=run_times))
    assert np.isfinite(found.quantities["run times, 1 job apart"])
    assert np.mean(found.samples["run times"] == 0) == 0.5


def test_a_log_in_which_nothing_ran_cannot_be_described() -> None:
    with pytest.raises(InputError, match=r"small.swf: no job ran"):
        describe(log_of(run_time=[0, 0]))


def test_load_is_work_over_what_the_machine_can_do() -> None:
    log = log_of(
        {"MaxProcs": "4"}, submit=[0, 50, 100], run_time=[50, 50, 100], allocated_processors=[4, 2, 2]
    )
    found = load(log)
    assert found.machine == 4
    assert found.work == 500
    assert found.load == 500 / (4 * 100)
    assert found.utilization == 500 / (4 * 200)


def test_weeks_have_the_load_that_is_submitted_and_the_utilization_of_what_runs() -> None:
    log = log_of(
        {"MaxProcs": "2"}, submit=[0, WEEK - HOUR], run_time=[HOUR, 2 * HOUR], allocated_processors=[2, 1],
        user=[1, 2],
    )  # fmt: skip
    (week,) = load(log).weeks
    assert (week.jobs, week.users) == (2, 2)
    assert week.load == pytest.approx(4 * HOUR / (2 * WEEK))
    assert week.utilization == pytest.approx(3 * HOUR / (2 * WEEK))


def test_the_utilization_of_a_long_job_is_spread_over_its_weeks() -> None:
    log = log_of({"MaxProcs": "1"}, submit=[0, 2.5 * WEEK], run_time=[2.5 * WEEK, 1], allocated_processors=1)
    assert [week.utilization for week in load(log).weeks] == pytest.approx([1, 1, 0.5], abs=1e-5)


def test_cycles_are_on_the_wall_clock_of_the_machine() -> None:
    monday = 1704067200  # 2024-01-01T00:00Z
    header = {"UnixStartTime": str(monday), "TimeZoneString": "Europe/Stockholm"}
    found = cycles(log_of(header, submit=[0, 10 * HOUR, 5 * 24 * HOUR]))
    assert [hour for hour, jobs in enumerate(found.by_hour_of_week) if jobs] == [1, 11, 5 * 24 + 1]
    assert found.working_hours == pytest.approx(1 / 3)
    assert found.weekend == pytest.approx(1 / 3)


def test_nobody_knows_working_hours_without_a_beginning() -> None:
    found = cycles(log_of(submit=[0, 10 * HOUR, 5 * 24 * HOUR]))
    assert (found.known, found.working_hours, found.weekend) == (False, None, None)


def test_sessions_are_separated_by_an_hour_of_silence() -> None:
    log = log_of(submit=[0, 1800, 1800 + 3599, 1800 + 3599 + 3600, 100], user=[1, 1, 1, 1, 2])
    found = users(log)
    assert found is not None
    assert found.sessions == 3
    assert found.jobs_per_session.percentiles[-1] == 3
    assert found.breaks is not None and found.breaks.percentiles[0] == 3600
    assert found.half_of_jobs == 1
    assert [(user.user, user.jobs) for user in found.busiest] == [(1, 4), (2, 1)]


def test_percentiles_and_frequent_values() -> None:
    found = distribution(np.array([1, 1, 2, 4, 1]))
    assert found is not None
    assert (found.count, found.mean, found.median) == (5, 1.8, 1)
    assert found.percentiles[0] == 1 and found.percentiles[100] == 4
    assert found.frequent == {"1": 0.6}


def test_sizes_and_accuracy() -> None:
    log = log_of(requested_processors=[1, 2, 3, 4], run_time=[5, 10, 10, 20], requested_time=[10, 10, -1, 10])
    found = distributions(log)
    assert found.serial == 0.25
    assert found.powers_of_two == pytest.approx(2 / 3)
    assert found.accuracy is not None
    assert found.accuracy.percentiles[::50] == [0.5, 1.0, 2.0]


def test_correlations() -> None:
    log = log_of(requested_processors=[1, 2, 3, 4], run_time=[1, 2, 3, 1000])
    found = correlation(log)
    assert found.pearson == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2, 3, 1000])[0, 1])
    assert found.spearman == pytest.approx(1)
    assert [each.size_from for each in found.by_size] == [1, 2, 4]
    assert pearson(np.ones(3), np.arange(3)) is None


def test_equal_values_share_their_ranks() -> None:
    log = log_of(requested_processors=[1, 1, 2, 2], run_time=[5, 5, 9, 9])
    assert correlation(log).spearman == pytest.approx(1)


def test_weeks_of_another_kind_are_far_from_the_whole() -> None:
    weeks = np.repeat(np.arange(10), 100)
    apart = locality(log_of(submit=weeks * WEEK, run_time=10 + weeks, user=weeks))
    assert apart.run_time.distance == pytest.approx(0.9)
    assert apart.run_time.by_chance < 0.2
    alike = locality(log_of(submit=weeks * WEEK, run_time=10 + np.arange(1000) % 10, user=1))
    assert alike.run_time.distance == pytest.approx(0)
    assert alike.user.distance == 0


def test_jobs_of_unknown_users_are_counted_and_left_out() -> None:
    log = log_of(submit=[0, 10, 20, 30], user=[-1, 1, -1, 2], requested_processors=4)
    found = users(log)
    assert found is not None
    assert (found.users, found.unknown, found.sessions) == (2, 2, 2)
    assert [(each.user, each.share_of_jobs) for each in found.busiest] == [(1, 0.5), (2, 0.5)]
    assert load(log).users == 2
    assert load(log).weeks[0].users == 2
    assert locality(log).repetition is None, "two jobs without a user are not those of one"
    assert list(flurries(log).weekly) == ["1", "2", "others"]


def test_repetition_compares_with_the_same_users_previous_job() -> None:
    log = log_of(user=[1, 2, 1, 2, 1], requested_processors=[4, 8, 4, 4, 2])
    assert locality(log).repetition == pytest.approx(1 / 3)


def test_suspicious_records_are_counted_by_kind() -> None:
    log = log_of(
        {"MaxProcs": "8"},
        run_time=[0, 1000, 10, 10],
        requested_time=[10, 100, 10, -1],
        requested_processors=[1, 1, 16, 1],
        allocated_processors=[1, 2, 16, -1],
        status=[1, 1, 5, -1],
        wait=0,
    )
    found = quality(log)
    assert found.suspicious == {
        "run time is 0": 1,
        "ran for over a minute more than requested": 1,
        "larger than the machine": 1,
        "allocated more processors than requested": 1,
        "cancelled or failed, yet ran": 1,
        "completed, yet never ran": 1,
    }
    assert found.unknown == {"requested time": 1, "status": 1, "executable": 4, "queue": 4}


@pytest.mark.parametrize("parameter", [0.6, 0.8])
def test_the_memory_of_arrivals_is_found_below_a_weekly_cycle(parameter: float) -> None:
    random = np.random.default_rng(5)
    noise = fractional_gaussian_noise(2**15, parameter, random)
    cycle = 10 * (1 + np.sin(2 * np.pi * np.arange(2**15) / 672))
    counts = np.maximum(np.rint(40 + cycle + 5 * noise), 0).astype(int)
    submit = np.repeat(np.arange(2**15) * 900.0, counts)
    found = arrival_hurst(submit)
    assert found is not None
    assert found.median == pytest.approx(parameter, abs=0.07)
