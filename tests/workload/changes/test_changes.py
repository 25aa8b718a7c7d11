"""What each change does to a log, and that it says so in the header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.workload.changes import CHANGES, HISTORY, change_log, parse_changes
from batsched_py.workload.changes.estimates import ROUND
from batsched_py.workload.changes.selecting import split
from batsched_py.workload.swf.log import SwfLog, write_swf
from batsched_py.workload.swf.reader import read_swf
from tests.logs import log_of

DAY = 86400
WEEK = 7 * DAY
MONDAY = 1704067200  # 2024-01-01T00:00Z
HEADER = {"UnixStartTime": str(MONDAY), "TimeZoneString": "UTC", "MaxProcs": "64"}


def numbers(log: SwfLog) -> list[int]:
    return log.job_number.tolist()


# --- how changes are written ---------------------------------------------------------------------


def test_words_with_an_equals_sign_are_options_of_the_change_before() -> None:
    steps = parse_changes("first jobs=5 users keep=1,2 load factor=2 by=sizes".split())
    assert [str(step) for step in steps] == ["first jobs=5", "users keep=1,2", "load factor=2.0 by=sizes"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobs=5", "'jobs=5': an option follows the name of its change"),
        ("first", "change 'first': Object missing required field `jobs`"),
        ("first jobs=0", "change 'first': Expected `int` >= 1"),
        ("first jobs=1 jobs=2", "change 'first': 'jobs' is given twice"),
        ("first job=1", "change 'first' has no option 'job' (did you mean 'jobs'?); it knows jobs"),
        ("load factor=2 by=magic", "choose among arrivals, run-times, sizes"),
        ("fold", "there is no change 'fold'; known are anonymise, "),
    ],
)
def test_a_mistake_is_told_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        change_log(log_of(submit=[0, 1]), [text])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_change_is_known_by_name() -> None:
    assert set(CHANGES.all()) == {
        "anonymise", "dominating", "estimates", "first", "flurries", "load", "merge", "part",
        "partitions", "period", "queues", "shake", "sizes", "users",
    }  # fmt: skip


def test_a_changed_log_tells_its_history_even_after_it_was_written(tmp_path: Path) -> None:
    log = log_of(HEADER | {"MaxJobs": "4"}, submit=[0, 1, 2, 3], user=[1, 2, 1, 2])
    changed = change_log(log, ["users keep=1", "first jobs=1"])
    write_swf(tmp_path / "changed.swf", changed)
    header = read_swf(tmp_path / "changed.swf").header
    assert header[HISTORY].split("\n") == [
        "users keep=1: 2 of 4 jobs kept",
        "first jobs=1: 1 of 2 jobs kept",
    ]
    assert header["MaxJobs"] == "1"


# --- cutting -------------------------------------------------------------------------------------


def test_first_keeps_the_first_jobs() -> None:
    assert numbers(change_log(log_of(submit=[0, 1, 2]), ["first jobs=2"])) == [1, 2]
    assert numbers(change_log(log_of(submit=[0, 1, 2]), ["first jobs=9"])) == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("period start=1d end=3d", [2, 3]),
        ("period start=2024-01-02 end=2024-01-04", [2, 3]),
        ("period start=2024-01-03T00:00", [3, 4]),
        ("period end=24h", [1]),
        ("period start=0d end=24h", [1]),
    ],
)
def test_a_period_is_given_by_dates_or_spans(text: str, kept: list[int]) -> None:
    log = log_of(HEADER, submit=np.arange(4) * DAY)
    assert numbers(change_log(log, [text])) == kept


def test_dates_are_on_the_wall_clock_of_the_log() -> None:
    log = log_of(HEADER | {"TimeZoneString": "Europe/Stockholm"}, submit=[0, 22 * 3600, 23 * 3600])
    assert numbers(change_log(log, ["period start=2024-01-02"])) == [3]


def test_a_date_needs_a_log_that_says_when_it_began() -> None:
    with pytest.raises(InputError, match=r"small.swf does not say when it began; write a span like 30d"):
        change_log(log_of(submit=[0, 1]), ["period start=2024-01-02"])


def test_a_period_without_jobs_is_refused() -> None:
    with pytest.raises(InputError, match=r"no job of small.swf is submitted in this period"):
        change_log(log_of(submit=[0, 1]), ["period start=3d"])


def test_weeks_begin_on_mondays_and_only_whole_ones_count() -> None:
    start = {"UnixStartTime": str(MONDAY + 2 * DAY), "TimeZoneString": "UTC"}  # a Wednesday
    log = log_of(start, submit=np.arange(0, 4 * WEEK, DAY))
    parts = split(log, "week")
    assert [part.submit[0] / DAY for part in parts] == [5, 12, 19]
    assert [len(part) for part in parts] == [7, 7, 7]


def test_months_are_those_of_the_calendar() -> None:
    log = log_of(HEADER, submit=np.arange(100) * DAY)
    assert [len(part) for part in split(log, "month")] == [31, 29, 31]


def test_parts_of_any_length_count_from_the_first_submission() -> None:
    log = log_of(HEADER, submit=100 + np.arange(60) * DAY)
    parts = split(log, "28d")
    assert [len(part) for part in parts] == [28, 28]
    assert parts[1].header[HISTORY].startswith("part number=2 every=28d: part 2 of 2, 28 of 60 jobs kept")


def test_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"small.swf has 2 parts of one 28d"):
        change_log(log_of(HEADER, submit=np.arange(60) * DAY), ["part number=3 every=28d"])


@given(st.lists(st.integers(0, 60 * DAY), min_size=30, max_size=200))
def test_parts_are_disjoint_and_in_order(submit: list[int]) -> None:
    log = log_of(HEADER, submit=np.sort(submit))
    parts = split(log, "week")
    together = [number for part in parts for number in numbers(part)]
    assert together == sorted(set(together))


# --- load ----------------------------------------------------------------------------------------


def work(log: SwfLog) -> float:
    return float(log.run_time @ log.processors)


def test_load_by_arrivals_shrinks_the_times_between_them() -> None:
    log = log_of(submit=[100, 160, 400], run_time=[1, 2, 3])
    changed = change_log(log, ["load factor=2"])
    assert changed.submit.tolist() == [100, 130, 250]
    assert work(changed) == work(log)
    assert "cycles are scaled, too" in changed.header[HISTORY]


def test_load_by_run_times_scales_estimates_with_them() -> None:
    log = log_of(submit=[0, 1], run_time=[10, 20], requested_time=[20, -1])
    changed = change_log(log, ["load factor=1.5 by=run-times"])
    assert changed.run_time.tolist() == [15, 30]
    assert changed.requested_time.tolist() == [30, -1]


@given(st.floats(0.3, 3), st.integers(0, 5))
def test_load_by_sizes_reaches_the_factor_on_average(factor: float, seed: int) -> None:
    sizes = 1 + np.arange(2000) % 16
    log = log_of({"MaxProcs": "64"}, allocated_processors=sizes, requested_processors=sizes)
    changed = change_log(log, [f"load factor={factor} by=sizes seed={seed}"])
    floor = np.maximum(sizes * factor, 1)
    assert work(changed) == pytest.approx(60 * floor.sum(), rel=0.03)
    assert changed.processors.min() >= 1


def test_sizes_are_limited_to_the_machine() -> None:
    log = log_of({"MaxProcs": "10"}, allocated_processors=[8, 2], requested_processors=[8, -1])
    changed = change_log(log, ["load factor=2 by=sizes"])
    assert changed.allocated_processors.tolist() == [10, 4]
    assert changed.requested_processors.tolist() == [10, -1]
    unlimited = change_log(replace(log, header={}), ["load factor=2 by=sizes"])
    assert unlimited.allocated_processors.tolist() == [16, 4]
    assert "the log tells of no machine, which would limit them" in unlimited.header[HISTORY]


# --- choosing jobs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("users keep=1,3", [1, 3, 4]),
        ("users drop=1", [2, 3]),
        ("queues keep=8", [2, 4]),
        ("queues drop=8", [1, 3]),
        ("partitions keep=8", [3, 4]),
        ("partitions drop=8", [1, 2]),
        ("sizes least=2 most=4", [2, 3]),
        ("sizes least=4", [3, 4]),
    ],
)
def test_jobs_are_chosen_by_user_queue_partition_or_size(text: str, kept: list[int]) -> None:
    log = log_of(
        submit=[0, 1, 2, 3],
        user=[1, 2, 3, 1],
        queue=[7, 8, 7, 8],
        partition=[7, 7, 8, 8],
        allocated_processors=[1, 2, 4, 8],
    )
    assert numbers(change_log(log, [text])) == kept


@pytest.mark.parametrize("text", ["users keep=9", "users drop=1", "sizes least=9"])
def test_nothing_to_choose_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"the number 9|no job is left"):
        change_log(log_of(submit=[0, 1]), [text])


def flurried() -> SwfLog:
    quiet = np.arange(1000) * (10 * WEEK / 1000)
    submit = np.concatenate([quiet, np.linspace(3.1, 3.9, 500) * WEEK])
    return log_of(submit=submit, user=np.concatenate([np.arange(1000) % 10, np.full(500, 99)]))


def test_flurries_are_removed_or_looked_at_alone() -> None:
    removed = change_log(flurried(), ["flurries"])
    assert len(removed) == 1000 and 99 not in removed.user
    assert "removed 500 of 1500 jobs (user 99 in weeks 3-3)" in removed.header[HISTORY]
    assert set(change_log(flurried(), ["flurries action=keep"]).user.tolist()) == {99}


def test_a_log_without_flurries_stays_as_it_is() -> None:
    changed = change_log(flurried(), ["flurries", "flurries"])
    assert changed.header[HISTORY].endswith("removed 0 of 1000 jobs (there is none)")


def test_dominating_users_are_removed() -> None:
    changed = change_log(flurried(), ["dominating"])
    assert "removed 500 of 1500 jobs (user 99 with 33% of all jobs)" in changed.header[HISTORY]


# --- shaking and estimates -----------------------------------------------------------------------


@given(st.integers(0, 100))
def test_a_shake_stays_within_its_bounds(seed: int) -> None:
    log = log_of(
        submit=np.arange(50) * 1000, run_time=500, requested_time=np.where(np.arange(50) % 2, 500, 900)
    )
    changed = change_log(log, [f"shake seed={seed} arrivals=30 run_times=0.1"])
    assert np.abs(changed.submit - log.submit).max() <= 30
    assert np.abs(changed.run_time - 500).max() <= 50
    assert (changed.run_time <= changed.requested_time).all()
    assert (np.diff(changed.submit) >= 0).all()


def test_another_seed_is_another_shake() -> None:
    log = log_of(submit=np.arange(50) * 1000)
    first, again, other = (change_log(log, [f"shake seed={seed}"]) for seed in (1, 1, 2))
    assert np.array_equal(first.submit, again.submit)
    assert not np.array_equal(first.submit, other.submit)


def test_estimates_are_exact_recorded_or_a_multiple() -> None:
    log = log_of(submit=[0, 1], run_time=[100, 200], requested_time=[3600, -1])
    assert change_log(log, ["estimates rule=exact"]).requested_time.tolist() == [100, 200]
    assert change_log(log, ["estimates rule=recorded"]).requested_time.tolist() == [3600, 200]
    assert change_log(log, ["estimates rule=factor factor=3"]).requested_time.tolist() == [300, 600]


def test_jobs_of_0_seconds_count_in_the_accuracy_of_estimates() -> None:
    log = log_of(run_time=[0, 100, 0], requested_time=[100, 200, -1])
    assert "run times are 25.0% of" in change_log(log, ["estimates rule=recorded"]).header["Change"]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=100), st.integers(0, 9))
def test_round_estimates_are_round_and_not_below_the_run_time(run_times: list[int], seed: int) -> None:
    log = log_of(submit=np.arange(len(run_times)), run_time=run_times)
    requested = change_log(log, [f"estimates rule=round seed={seed}"]).requested_time
    assert (requested >= log.run_time).all()
    assert all(value in ROUND or value % 3600 == 0 for value in requested.tolist())


def test_the_largest_round_estimate_is_the_most_popular() -> None:
    log = log_of(submit=np.arange(20_000), run_time=np.where(np.arange(20_000) == 0, 60_000, 1))
    requested = change_log(log, ["estimates rule=round"]).requested_time
    values, counts = np.unique(requested, return_counts=True)
    assert values[counts.argmax()] == values.max() == 18 * 3600


def test_round_estimates_are_those_of_the_log_dealt_out_anew() -> None:
    log = read_swf("workloads/sample.swf")
    for seed in (0, 1):
        changed = change_log(log, [f"estimates rule=round seed={seed}"])
        assert (changed.requested_time >= log.run_time).all()
        assert (changed.requested_time != log.requested_time).any()
        assert np.array_equal(np.sort(changed.requested_time), np.sort(log.requested_time))
        before, after = (np.mean(log.run_time / each.requested_time) for each in (log, changed))
        assert after == pytest.approx(before, abs=0.01)
    again = change_log(log, ["estimates rule=round seed=1"])
    assert np.array_equal(again.requested_time, changed.requested_time)


def test_round_estimates_have_a_maximum_and_so_many_values() -> None:
    log = log_of(
        submit=np.arange(6), run_time=[1, 1, 1, 1, 1, 5000], requested_time=[60, 60, 90, 90, 100, 9000]
    )
    requested = change_log(log, ["estimates rule=round values=2 maximum=80"]).requested_time
    assert sorted(requested.tolist()) == [60, 60, 60, 80, 80, 7200]


# --- merging and anonymity -----------------------------------------------------------------------


def test_merged_logs_begin_together_and_share_no_user(tmp_path: Path) -> None:
    write_swf(tmp_path / "other.swf", log_of({"MaxProcs": "16"}, submit=[1000, 1005], user=[1, 2]))
    log = log_of({"MaxProcs": "8"}, submit=[10, 20], user=[1, 5])
    merged = change_log(log, [f"merge file={tmp_path / 'other.swf'}"])
    assert merged.submit.tolist() == [10, 10, 15, 20]
    assert merged.user.tolist() == [1, 7, 8, 5]
    assert numbers(merged) == [1, 2, 3, 4]
    assert merged.machine_size == 24


def test_anonymous_users_are_new_numbers_and_nobody_is_named() -> None:
    header = {"User": "1 alice\n2 bob", "Queue": "1 secret", "MaxProcs": "4"}
    log = log_of(header, submit=[0, 1, 2, 3], user=[1, 2, 2, -1], queue=1)
    changed = change_log(log, ["anonymise seed=12345"])
    users = changed.user.tolist()
    assert users[1] == users[2] and users[3] == -1 and sorted(set(users)) == [-1, 1, 2]
    text = " ".join([*changed.header.values(), changed.path])
    assert not any(word in text for word in ("alice", "bob", "secret", "12345", "small.swf"))


def test_the_same_seed_gives_the_same_numbers() -> None:
    log = log_of(submit=np.arange(100), user=np.arange(100))
    first, again, other = (change_log(log, [f"anonymise seed={seed}"]).user for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
