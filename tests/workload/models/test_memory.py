"""The parts of the model realistic that give jobs memory, each by itself."""

from __future__ import annotations

import numpy as np
import pytest

from batsched_py.workload.description.jobs import Bags
from batsched_py.workload.description.over_time import autocorrelation, daily_work, variation
from batsched_py.workload.models import Columns
from batsched_py.workload.models.arrivals import LargeBags, fit_large_bags, place_large_bags
from batsched_py.workload.models.hidden import (
    Persistence,
    calibrate,
    draw_values,
    fit_persistence,
    fullness_of_days,
    make_room,
)
from batsched_py.workload.models.owners import draw_steps, fit_recurrence
from batsched_py.workload.models.shapes import fit_spread, spread_out
from batsched_py.workload.swf.log import Integers

DAY = 86400.0


def recurring(count: int, random: np.random.Generator) -> Integers:
    """Labels of 20 kinds; each is the last with probability 0.5, that of two before with 0.3, else any."""
    labels = random.integers(0, 20, count)
    for place, chance in enumerate(random.random(count).tolist()):
        if place >= 2 and chance < 0.8:
            labels[place] = labels[place - (1 if chance < 0.5 else 2)]
    return labels


def same(labels: Integers, lag: int) -> float:
    return float(np.mean(labels[lag:] == labels[:-lag]))


def test_labels_recur_as_they_did() -> None:
    random = np.random.default_rng(1)
    labels, zeros = recurring(20_000, random), np.zeros(20_000, dtype=np.int64)
    recurrence = fit_recurrence(labels, zeros, zeros, 1, by_chance=1 / 20)
    of_few = fit_recurrence(labels[:3], zeros[:3], zeros[:3], 1)
    assert (of_few.new, len(of_few.others)) == (1.0, len(recurrence.others))
    steps = draw_steps(recurrence, zeros, random).tolist()
    again = random.integers(0, 20, len(labels))
    for place, step in enumerate(steps):
        if 0 < step <= place:
            again[place] = again[place - step]
    for lag in (1, 2, 10, 20, 100):
        assert same(again, lag) == pytest.approx(same(labels, lag), abs=0.05)


def test_parts_of_hidden_values_are_found_again() -> None:
    random = np.random.default_rng(1)
    users = np.repeat(random.integers(0, 300, 3000), 10)
    programs = 5 * users + np.repeat(random.integers(0, 5, 6000), 5)
    parts = Persistence(
        user=0.3, present=0.2, everyone=0.1, program=0.3, keeping=0.95, everyones_keeping=0.5, crowding=0.1
    )
    fullness = random.standard_normal(len(users))
    values = draw_values(parts, users, programs, np.ones_like(users), fullness, random)
    found = fit_persistence(values, users, programs, fullness)
    assert found.user == pytest.approx(0.3, abs=0.06)
    assert found.present == pytest.approx(0.2, abs=0.06)
    assert found.program == pytest.approx(0.3, abs=0.06)
    assert found.crowding == pytest.approx(0.1, abs=0.02)


def test_where_memory_is_missing_the_parts_that_last_least_give_way() -> None:
    random = np.random.default_rng(1)
    lasting = np.exp(np.repeat(random.standard_normal(10), 300))
    parts = Persistence(
        user=0.3, present=0.2, everyone=0.1, program=0.3, keeping=0.9, everyones_keeping=0.5, crowding=0.0
    )
    told: list[tuple[int, int]] = []

    def forgetful(parts: Persistence, seed: int) -> Columns:
        return {"run_time": np.exp(random.standard_normal(3000)), "user": np.ones(3000)}

    found = calibrate(parts, lasting, 1.0, forgetful, lambda done, total: told.append((done, total)))
    assert (found.program, found.present, found.everyone) == (0, 0, 0)
    assert found.user == pytest.approx(0.99)
    assert found.everyones_keeping > 0.99
    assert told == [(done, 6) for done in range(1, 7)]


def test_how_full_days_are() -> None:
    starts = np.array([0.0, 5.0, DAY, 2 * DAY + 1])
    full = fullness_of_days(starts, np.array([4, 4, 8, 2]))
    assert full[:3] == pytest.approx([0.5774] * 3, abs=1e-4)
    assert full[3] == pytest.approx(-1.7321, abs=1e-4)
    assert fullness_of_days(starts[:2], np.array([1, 2])).tolist() == [0, 0]


def test_large_bags_take_the_place_of_as_many_arrivals() -> None:
    submit = np.floor(np.cumsum(np.random.default_rng(1).exponential(300, 3000)))
    large = LargeBags(jobs=3000, sizes=[40, 500], durations=[390.0, 250.0])
    moved, planned = place_large_bags(large, submit, 100.0, np.random.default_rng(2))
    assert np.bincount(planned)[1:].tolist() == [500, 40]
    assert (np.diff(moved) >= 0).all()
    for number in (1, 2):
        assert np.diff(moved[planned == number]).max() <= 100
    assert (moved[planned == 0] == submit[planned == 0]).all()


def test_the_largest_bags_are_learned() -> None:
    sizes = np.array([1] * 700 + [30, 50])
    submit = np.arange(float(sizes.sum()))
    large = fit_large_bags(submit, Bags(np.arange(len(submit)), sizes))
    assert (large.sizes, large.durations) == ([30, 50], [29.0, 49.0])


def test_the_mean_of_a_bag_stays_when_its_jobs_differ() -> None:
    random = np.random.default_rng(1)
    bags = Bags(np.arange(2100), np.repeat([1, 10], [100, 200]))
    run_times = np.exp(np.repeat(random.normal(7, 1, 300), bags.sizes) + random.normal(0, 0.5, 2100))
    means = bags.means(run_times)
    again = spread_out(fit_spread(run_times, bags), means, bags, random)
    assert bags.means(again) == pytest.approx(means)
    assert bags.deviations(again).mean() == pytest.approx(bags.deviations(run_times).mean(), rel=0.3)


def test_busy_days_get_shorter_jobs_until_work_varies_as_wanted() -> None:
    random = np.random.default_rng(1)
    starts = np.sort(np.floor(random.random(3000) ** 3 * 60) * DAY)
    lengths = np.sort(random.lognormal(7, 1.5, 3000))

    def run_times(values: np.ndarray) -> np.ndarray:
        return lengths[np.argsort(np.argsort(values))]

    values = random.standard_normal(3000)
    before = variation(daily_work(starts, run_times(values)))
    moved = make_room(values, np.arange(3000), starts, 0.8, run_times)
    after = variation(daily_work(starts, run_times(moved)))
    assert before > 1.2 * 0.8 * 1.05
    assert after <= 1.2 * 0.8


def test_programs_of_busy_days_get_smaller_sizes_until_processors_vary_as_wanted() -> None:
    random = np.random.default_rng(2)
    starts = np.sort(np.floor(random.random(3000) ** 3 * 60) * DAY)
    programs = np.unique(starts // DAY * 50 + random.integers(0, 50, 3000), return_inverse=True)[1]
    sizes = np.sort(2.0 ** random.integers(0, 8, int(programs.max()) + 1))

    def processors(values: np.ndarray) -> np.ndarray:
        return sizes[np.argsort(np.argsort(values))][programs]

    values = random.standard_normal(len(sizes))
    moved = make_room(values, programs, starts, 0.8, processors)
    assert len(moved) == len(sizes)
    assert variation(daily_work(starts, processors(values))) > 1.2 * 0.8 * 1.05
    assert variation(daily_work(starts, processors(moved))) <= 1.2 * 0.8


def test_autocorrelation_by_hand() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert autocorrelation(values, 1) == pytest.approx((1.5 * 0.5 - 0.5 * 0.5 + 0.5 * 1.5) / 3 / 1.25)
    assert autocorrelation(values, 4) is None
    assert autocorrelation(np.ones(5), 1) is None
