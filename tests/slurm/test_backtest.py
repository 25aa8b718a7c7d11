"""How good forecasts are: what is drawn, how intervals are stretched, and what a replay of a log tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from batsched_py.slurm.forecast.history import History, Kind, Past
from batsched_py.slurm.forecast.intervals import Stretch
from batsched_py.workload.swf.log import DAY, HOUR, WEEK
from tests.processes import call_here


def history(weeks: int, run_times: np.ndarray | None = None) -> History:
    """A job every day at 8 and at 20 o'clock, of two users; the second runs for a tenth of its limit."""
    submit = np.sort(np.concatenate([np.arange(7 * weeks) * DAY + hour * HOUR for hour in (8, 20)]))
    user = np.arange(len(submit)) % 2
    limit = np.full(len(submit), 10 * HOUR)
    run = np.where(user == 1, HOUR, 10 * HOUR) if run_times is None else run_times
    one = np.ones(len(submit), dtype=np.int64)
    return History(
        submit=submit, start=submit, end=submit + run, limit=limit, size=one, user=user, name=one, ran=run
    )


def shares(past: Past, kind: Kind, ran: float, jobs: int = 1) -> list[float]:
    """What some draws say that jobs of a kind use of their limits, of which the first has run for a while."""
    drawn = [
        past.drawn(np.random.default_rng(seed), [(kind, ran), *[(kind, 0.0)] * (jobs - 1)])
        for seed in range(100)
    ]
    return [share for shares in drawn for share in shares]


def test_run_times_are_those_of_jobs_alike() -> None:
    past = history(10).before(10 * WEEK)
    assert np.mean(np.isclose(shares(past, (1, 1, 1, 10 * HOUR), 0.0), 0.1)) > 0.9
    assert np.mean(np.isclose(shares(past, (0, 1, 1, 10 * HOUR), 0.0), 1.0)) > 0.9
    assert set(shares(past, (1, 1, 1, 10 * HOUR), 2 * HOUR)) == {1.0}, (
        "it has run longer than the user's others"
    )


def test_jobs_that_nobody_has_had_are_like_those_of_the_user() -> None:
    past = history(10).before(10 * WEEK)
    of_user, of_anybody = (np.mean(np.isclose(shares(past, (user, 7, 1, HOUR), 0.0), 0.1)) for user in (1, 9))
    assert of_user > 0.6 and 0.3 < of_anybody < 0.7
    drawn = shares(past, (9, 7, 1, HOUR), 0.0, jobs=6)
    assert all(len(set(drawn[place : place + 6])) == 1 for place in range(0, 600, 6)), (
        "all like the same others"
    )


def test_jobs_that_still_run_tell_of_those_alike() -> None:
    """One of a new kind has run for half of its limit, so the others may run for long, too."""
    past = history(10).before(10 * WEEK)
    assert np.mean(np.array(shares(past, (9, 7, 1, HOUR), HOUR / 2, jobs=4)) == 1.0) > 0.9


def test_jobs_come_at_the_hours_of_past_weeks() -> None:
    past = history(10).before(8 * WEEK)
    for seed in range(10):
        jobs, at = past.coming(np.random.default_rng(seed), 2 * DAY)
        assert at.tolist() == [8 * HOUR, 20 * HOUR, 32 * HOUR, 44 * HOUR]
        assert (history(10).submit[jobs] < 8 * WEEK).all()


def test_a_short_log_is_drawn_by_days_and_an_empty_one_not_at_all() -> None:
    _, at = history(1).before(3 * DAY).coming(np.random.default_rng(0), DAY)
    assert at.tolist() == [8 * HOUR, 20 * HOUR]
    assert not len(history(1).before(9 * HOUR).coming(np.random.default_rng(0), DAY)[0])


def test_the_future_is_not_known() -> None:
    moment = 8 * WEEK + 9 * HOUR
    runs = history(10).ran
    other = np.where(history(10).end > moment, 3 * runs, runs)
    assert (other != runs).any()
    for user in (0, 1):
        kind = (user, 1, 1, 10 * HOUR)
        assert shares(history(10).before(moment), kind, 0.0) == shares(
            history(10, other).before(moment), kind, 0.0
        )
    jobs, _ = history(10).before(moment).coming(np.random.default_rng(2), DAY)
    assert len(jobs) and (history(10).submit[jobs] < moment).all()


def held(shift: Callable[[int], float]) -> tuple[float, float]:
    """The share of starts in intervals that were drawn too short, of the later half: as drawn, stretched."""
    random, stretch = np.random.default_rng(0), Stretch()
    found = []
    for moment in range(400):
        median = random.uniform(1000, 50_000, 10)
        starts = median * random.lognormal(shift(moment), 0.7, 10)
        early, late = 0.9 * median, 1.1 * median
        low, _, high = stretch.intervals(moment * HOUR, starts, early, median, late)
        found.append(((starts >= early) & (starts <= late), (starts >= low) & (starts <= high)))
    drawn, stretched = np.mean(found[200:], axis=(0, 2)).tolist()
    return drawn, stretched


def test_stretched_intervals_hold_what_they_should() -> None:
    for shift in (lambda moment: 0.2, lambda moment: moment / 200):
        drawn, stretched = held(shift)
        assert 0.76 < stretched < 0.84, "even if starts are later and later"
        assert drawn < 0.3, "as they were drawn, they hold far less"


def test_nothing_is_learnt_of_starts_that_are_yet_to_come() -> None:
    stretch, one = Stretch(), np.ones(50)
    stretch.intervals(0.0, 7200 * one, 10 * one, 20 * one, 30 * one)
    _, _, high = stretch.intervals(3600.0, 7200 * one, 10 * one, 20 * one, 30 * one)
    assert high[0] < 120, "it is not over"
    _, _, high = stretch.intervals(7200.0, 7200 * one, 10 * one, 20 * one, 30 * one)
    assert high[0] > 7200


def test_intervals_shrink_to_a_twentieth_and_slowly_further() -> None:
    """All of fifty starts are the medians: a tenth of them should be outside, which is 0.005 * -5 once."""
    stretch, one = Stretch(), np.ones(50)
    stretch.intervals(0.0, 20 * one, 10 * one, 20 * one, 30 * one)
    low, _, high = stretch.intervals(60.0, 20 * one, 10 * one, 20 * one, 30 * one)
    half = (10 + 60 + 0.1 * 20) * 0.05 * np.exp(-0.025)
    assert (low[0], high[0]) == pytest.approx((20 - half, 20 + half))


def backtested(tmp_path: Path, *options: str) -> tuple[int, str, str]:
    """Six jobs an hour at once, on two processors: most of them wait."""
    rows = [
        f"{number} {number // 6 * 3600} -1 {(1800, 300, 900, 600)[number % 4]} "
        f"1 -1 -1 1 3600 -1 1 {number % 3} 1 1 1 1 -1 -1"
        for number in range(1, 72)
    ]
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 2\n" + "\n".join(rows) + "\n")
    return call_here(["slurm", "backtest", path, "--moments", "4", "--draws", "5", *options])


@pytest.mark.parametrize("policy", ["easy", "slurm"])
def test_a_log_is_replayed_and_asked_about(tmp_path: Path, policy: str) -> None:
    code, out, err = backtested(tmp_path, "-s", policy, "--json")
    assert code == 0, err
    found = json.loads(out)
    score = found["all"]
    assert found["policy"] == policy and score["asked"] == sum(
        each["asked"] for each in found["groups"].values()
    )
    assert score["covered"] + score["too_early"] + score["too_late"] == pytest.approx(1.0)
    assert score["median_error"] < score["median_error_by_limits"], "limits are twice the run times"
    assert backtested(tmp_path, "-s", policy, "--json")[1] == out


def test_a_page_and_a_table(tmp_path: Path) -> None:
    code, out, _ = backtested(tmp_path, "--output", str(tmp_path / "page.html"))
    assert code == 0 and "all jobs" in out and "4 moments" in out
    assert "in the 80 % interval" in (tmp_path / "page.html").read_text()


def test_what_cannot_be_replayed_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "conf.toml").write_text('[priority]\ntype = "multifactor"\nweight_fairshare = 5\n')
    code, _, err = backtested(tmp_path, "-s", "slurm", "-o", f"configuration_file={tmp_path / 'conf.toml'}")
    assert code != 0 and "weight_fairshare" in err.splitlines()[-1]
    (tmp_path / "idle.swf").write_text("; MaxProcs: 2\n1 0 -1 10 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n")
    code, _, err = call_here(["slurm", "backtest", tmp_path / "idle.swf"])
    assert code != 0 and "too few jobs wait" in err.splitlines()[-1]
