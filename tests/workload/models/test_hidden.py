"""How hidden values are made and corrected, piece by piece, with numbers that were worked out by hand."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from batsched_py.workload.description.over_time import daily_work, variation
from batsched_py.workload.models import hidden as hd
from batsched_py.workload.models.hidden import Persistence

DAY = 86400.0
PARTS = Persistence(
    user=0.3, present=0.2, everyone=0.1, program=0.3, keeping=0.9, everyones_keeping=0.5, crowding=0.0
)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_successive_bags_are_alike_with_the_same_program_and_with_others() -> None:
    values = np.array([1.0, 2.0, 3.0, 5.0, 7.0])
    users = np.array([0, 0, 0, 0, 1])
    programs = np.array([0, 0, 1, 1, 2])
    assert hd._alike(values, users, programs, 1) == ((1 * 2 + 3 * 5) / 2, 2 * 3)
    assert hd._alike(values, users, programs, 2) == (0.0, (1 * 3 + 2 * 5) / 2)
    assert hd._alike(values, np.arange(5), programs, 1) == (0.0, 0.0)


def test_bags_half_of_a_users_bags_apart() -> None:
    values = np.array([1.0, 2.0, 3.0, 5.0, 7.0, 11.0, 13.0])
    users = np.array([0, 0, 0, 0, 1, 1, 1])
    programs = np.array([0, 1, 1, 0, 2, 3, 3])
    # of the first user 1 x 3 and 2 x 5; of the second 7 x 11, and 11 x 13 of one program
    assert hd._far(values, users, programs) == pytest.approx((3 + 10 + 77) / 3)


def test_how_slowly_things_change_is_what_explains_the_likeness() -> None:
    keeping = float(hd._KEEPING[30])
    assert hd._keeping(0.5, [10], [0.5 * keeping**9]) == keeping
    assert hd._keeping(0.5, [10, 100], [0.5 * keeping**9, 0.5 * keeping**99]) == keeping


def test_every_owner_has_a_level_and_by_their_jobs_they_have_the_variance_1() -> None:
    whose, weights = np.array([0, 1, 0, 2, 1]), np.array([5, 1, 5, 2, 1])
    found = hd.levels(whose, weights, rng())
    assert found[0] == found[2] and found[1] == found[4]
    assert len(np.unique(found)) == 3
    assert np.average(found, weights=weights) == pytest.approx(0)
    assert np.average(found**2, weights=weights) == pytest.approx(1)
    assert hd.levels(np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64), rng()) == pytest.approx(0)


def test_programs_of_a_user_are_as_alike_as_said() -> None:
    users = np.repeat(np.arange(2000), 2)
    programs, jobs = np.arange(4000), np.ones(4000, dtype=np.int64)
    for likeness in (0.0, 0.4, 1.0):
        values = hd.draw_program_values(likeness, users, programs, jobs, rng())
        assert np.corrcoef(values[::2], values[1::2])[0, 1] == pytest.approx(likeness, abs=0.05)
        assert values.std() == pytest.approx(1, abs=0.03)
        found = hd.likeness_of_programs(values, users, programs)
        assert found == pytest.approx(likeness, abs=0.05)
    twice = hd.draw_program_values(0.4, np.zeros(4, dtype=np.int64), np.array([0, 1, 0, 1]), jobs[:4], rng())
    assert len(twice) == 2


def test_normal_scores() -> None:
    found = hd.normal_scores(np.array([0.0, 0.5, 0.841344746, 1.0]))
    assert found == pytest.approx([NormalDist().inv_cdf(1e-6), 0, 1, -NormalDist().inv_cdf(1e-6)], abs=1e-6)


def test_what_changes_slowly_does_so_within_each_series() -> None:
    series = np.tile([0, 1], 20_000)
    values = hd._slowly(series, 0.9, rng())
    assert values.std() == pytest.approx(1, abs=0.05)
    for lag, expected in ((2, 0.9), (4, 0.81), (1, 0.0)):
        assert np.mean(values[lag:] * values[:-lag]) == pytest.approx(expected, abs=0.05)
    assert hd._slowly(np.array([3]), 0.9, rng()) == rng().standard_normal(1)


def test_the_week_around_a_day() -> None:
    found = hd._around(np.arange(10.0))
    assert found.tolist() == pytest.approx([1.5, 2, 2.5, 3, 4, 5, 6, 6.5, 7, 7.5])


def test_no_more_room_is_made_than_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step is halved three times: an eighth of it less would not have been enough."""
    starts = DAY * np.arange(8.0)
    whose, base = np.arange(8), np.array([10.0, 4.0, 12.0, 3.0, 9.0, 5.0, 11.0, 2.0])

    def weigh(values: np.ndarray) -> np.ndarray:
        return base * np.exp(values)

    def found(values: np.ndarray) -> float:
        return variation(daily_work(starts, weigh(values)))

    none = np.zeros(8)
    limit = hd._CLOSE * 0.3
    room = hd.make_room(none, whose, starts, 0.3, weigh)
    monkeypatch.setattr(hd, "_HALVINGS", 0)
    whole = hd.make_room(none, whose, starts, 0.3, weigh)
    monkeypatch.setattr(hd, "_MOST_STEPS", 1)
    steps = [none]
    while found(steps[-1]) > limit:
        monkeypatch.setattr(hd, "_MOST_STEPS", len(steps))
        steps.append(hd.make_room(none, whose, starts, 0.3, weigh))
    assert len(steps) > 2
    assert steps[-1] == pytest.approx(whole)
    step = steps[-1] - steps[-2]
    eighths = float(np.mean((room - steps[-2]) / step)) * 8
    assert eighths == pytest.approx(round(eighths))
    assert found(room) <= limit < found(room - step / 8)
    assert (hd.make_room(none, whose, starts, 5.0, weigh) == none).all()


def test_what_is_missing_is_shared_out() -> None:
    assert hd._corrections(0.6, 0.5, 0.2) == pytest.approx([1.0, 0.4])  # 0.6 / (0.25 + 0.04 + 0.01)
    assert hd._corrections(-0.3, 0.5) == pytest.approx([-0.3 * 0.5 / 0.26])


def test_corrected_parts_leave_something_to_the_bag() -> None:
    changed = hd._corrected(PARTS, {"program": -0.4, "present": 0.1, "everyone": 0.0, "user": 0.05})
    assert (changed.program, changed.everyone) == (0.0, 0.1)
    assert (changed.present, changed.user) == (pytest.approx(0.3), pytest.approx(0.35))
    assert changed.keeping == 0.9
    too_much = hd._corrected(PARTS, {"program": 0.0, "present": 0.0, "everyone": 0.0, "user": 0.5})
    assert too_much.program == 0  # 1.4 in all is 0.41 too much: 0.3 is taken here, and 0.11 from the next
    assert too_much.present == pytest.approx(0.2 - 0.11)
    assert (too_much.everyone, too_much.user) == (0.1, 0.8)


def test_hidden_values_have_the_variance_1_and_fall_on_full_days() -> None:
    count = 30_000
    users, programs = rng().integers(0, 500, count), np.arange(count)
    fullness = np.random.default_rng(2).standard_normal(count)
    parts = Persistence(
        user=0.2, present=0.1, everyone=0.25, program=0.2, keeping=0.9, everyones_keeping=0.9, crowding=0.16
    )
    values = hd.draw_values(parts, users, programs, np.ones(count, dtype=np.int64), fullness, rng())
    assert values.std() == pytest.approx(1, abs=0.05)
    assert np.mean(values * fullness) == pytest.approx(-0.4, abs=0.03)


@pytest.mark.parametrize("count", [1, 2])
def test_a_log_of_few_jobs_corrects_nothing(count: int) -> None:
    assert hd.calibrate(PARTS, np.ones(count), 1.0, lambda parts, seed: {}, lambda done, total: None) is PARTS
