"""Arrivals from a cascade along the calendar."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.workload.description.jobs import Bags
from batsched_py.workload.description.over_time import temporal_entropy
from batsched_py.workload.models.arrivals import Cascade, fit_bag_cuts, fit_cascade, generate_arrivals

WEEK = 7 * 86400


def office_hours(weeks: int, seed: int = 0) -> np.ndarray:
    """Bursts of ten jobs within a minute, between 8:00 and 18:00 on working days."""
    random = np.random.default_rng(seed)
    days = random.integers(0, 5, 40 * weeks) + 7 * np.repeat(np.arange(weeks), 40)
    starts = days * 86400 + random.uniform(8, 18, len(days)) * 3600
    return np.sort((starts[:, None] + random.uniform(0, 60, (len(days), 10))).ravel())


@pytest.fixture(scope="module")
def learned() -> Cascade:
    return fit_cascade(office_hours(30))


def test_there_are_as_many_as_asked_for_in_order_and_in_whole_seconds(learned: Cascade) -> None:
    times = generate_arrivals(learned, 5000, np.random.default_rng(1))
    assert len(times) == 5000
    assert (np.diff(times) >= 0).all()
    assert np.array_equal(times, np.floor(times))


def test_more_jobs_take_longer(learned: Cascade) -> None:
    half, whole = (generate_arrivals(learned, jobs, np.random.default_rng(1))[-1] for jobs in (6000, 12000))
    assert half / WEEK == pytest.approx(15, abs=1)
    assert whole / WEEK == pytest.approx(30, abs=1)


def test_people_still_come_by_day_and_leave_for_the_weekend(learned: Cascade) -> None:
    times = generate_arrivals(learned, 12000, np.random.default_rng(1))
    hour = times % 86400 / 3600
    assert np.mean((hour >= 8) & (hour < 18.02)) == 1
    assert (times // 86400 % 7 < 5).all()


def test_bursts_stay_together(learned: Cascade) -> None:
    real = office_hours(30)
    times = generate_arrivals(learned, len(real), np.random.default_rng(2))
    for scale in (60, 900, 3600):
        assert temporal_entropy(times, scale) == pytest.approx(temporal_entropy(real, scale), abs=0.02)
    assert np.mean(np.diff(times) <= 60) == pytest.approx(np.mean(np.diff(real) <= 60), abs=0.03)


def test_the_same_seed_gives_the_same_arrivals(learned: Cascade) -> None:
    first, again, other = (
        generate_arrivals(learned, 1000, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_parameters_survive_as_json(learned: Cascade) -> None:
    again = msgspec.json.decode(msgspec.json.encode(learned), type=Cascade)
    assert np.array_equal(
        generate_arrivals(learned, 1000, np.random.default_rng(3)),
        generate_arrivals(again, 1000, np.random.default_rng(3)),
    )


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5 * WEEK), min_size=1, max_size=50), st.integers(1, 300))
def test_any_log_can_be_learned_from(arrivals: list[int], jobs: int) -> None:
    learned = fit_cascade(np.array(arrivals, dtype=float))
    times = generate_arrivals(learned, jobs, np.random.default_rng(0))
    assert len(times) == jobs and (times >= 0).all()


def test_chances_that_a_bag_ends_are_those_of_the_log_to_five_digits() -> None:
    """After two of its jobs, one of three bags ends; after one job none does."""
    bags = Bags(np.arange(8), np.array([2, 3, 3]))
    chances = np.array(fit_bag_cuts(np.arange(8.0), bags, most=3).chances)
    assert {0.0, 0.33333} <= {*chances[chances < 0.5].tolist()}
    assert np.array_equal(chances, np.round(chances, 5))
