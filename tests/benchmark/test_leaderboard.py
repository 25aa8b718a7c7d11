"""The leaderboard, of results made by hand."""

from __future__ import annotations

from math import exp, log
from pathlib import Path

import pytest

from batsched_py.benchmark.results import Done, Identity, Policy, Result
from batsched_py.benchmark.table import ALL, COMPARED, drawn, leaderboard, markdown, write_leaderboard
from batsched_py.benchmark.tasks import Benchmark, Source, Task
from batsched_py.errors import InputError

LOGS = tuple(Source(name, name, "", 1, 1, (1, 2)) for name in ("a", "b", "c"))
TASKS = tuple(Task(log.name, week, load) for log in LOGS for week in log.weeks for load in (0.7, 0.9))
MADE = Benchmark("test", LOGS, TASKS)
SLOWDOWN, TURNAROUND = COMPARED


def result(name: str, *values: float, state: str = "ok") -> Result:
    """A policy with these values on the tasks, again and again."""
    policy = Policy.parse([name], {})
    what = Identity(benchmark="test", tasks_sha256="", policy=policy, code_sha256="", versions={})
    done = {
        task.name: Done("ok", "0", {SLOWDOWN: values[place % len(values)], TURNAROUND: 5.0})
        for place, task in enumerate(TASKS)
    }
    if state != "ok":
        done[TASKS[0].name] = Done(state)  # type: ignore[arg-type]
    return Result(what=what, tasks=done)


def test_gains_are_geometric_means_over_weeks() -> None:
    """At the two loads of each week the ratios are 1/2 and 1/8, but for small changes between weeks."""
    easy = result("easy", 8.0)
    better = result("sjf", 4.0, 1.0, 4.1, 1.1, 3.9, 0.9)
    found = leaderboard([easy, better], MADE)
    first, second = found.rows
    assert (first.name, second.name) == ("sjf", "easy")
    weeks = [(log(one / 8) + log(two / 8)) / 2 for one, two in ((4.0, 1.0), (4.1, 1.1), (3.9, 0.9))]
    gain = first.gains[SLOWDOWN][ALL]
    assert gain.ratio.mean == pytest.approx(exp(sum(weeks) / 3))
    assert gain.logs_better == 3 and gain.is_shown
    assert first.gains[SLOWDOWN]["load 0.7"].ratio.mean == pytest.approx((4 * 4.1 * 3.9) ** (1 / 3) / 8)
    assert found.nb_tests == 6 + 2
    assert (first.ranks[SLOWDOWN].mean, second.ranks[SLOWDOWN].mean) == (1.0, 2.0)
    assert (first.is_best[SLOWDOWN], second.is_best[SLOWDOWN]) == (True, False)


def test_what_is_the_same_is_not_told_from_the_best() -> None:
    found = leaderboard([result("easy", 8.0), result("sjf", 4.0, 1.0)], MADE)
    assert [row.ranks[TURNAROUND].mean for row in found.rows] == [1.5, 1.5]
    assert [row.is_best[TURNAROUND] for row in found.rows] == [True, True]
    assert not found.rows[0].gains[TURNAROUND][ALL].is_shown


def test_a_policy_without_all_tasks_is_marked_and_compared_within_those_it_has() -> None:
    """It cannot be the best, however good it is where it has a schedule."""
    easy = result("easy", 8.0, 2.0)
    found = leaderboard([easy, result("fcfs", 16.0, 4.0, state="failed")], MADE)
    row = found.rows[1]
    assert row.states == {"failed": 1, "ok": 11} and not row.is_whole
    assert row.gains[SLOWDOWN][ALL].ratio.mean == pytest.approx(2.0)
    assert "fcfs *" in markdown(found) and "1 failed, 11 ok" in markdown(found)
    assert leaderboard([easy, result("sjf", 1.0, state="failed")], MADE).rows[0].is_best[SLOWDOWN] is False


def test_a_leaderboard_needs_easy_and_different_names() -> None:
    with pytest.raises(InputError, match="compared with easy"):
        leaderboard([result("fcfs", 1.0)], MADE)
    with pytest.raises(InputError, match="two results are called 'easy'"):
        leaderboard([result("easy", 1.0), result("easy", 1.0)], MADE)


def test_the_page_has_the_tables_and_figures_that_can_be_drawn(tmp_path: Path) -> None:
    found = leaderboard([result("easy", 8.0), result("sjf", 4.0, 1.0, 3.0)], MADE)
    write_leaderboard(tmp_path / "page.html", found)
    page = (tmp_path / "page.html").read_text()
    assert "<b>sjf</b>" in page and f'data-figure="{SLOWDOWN}"' in page
    for metric in COMPARED:
        shown = drawn(found, metric)
        assert shown is not None and shown.y.names == ["sjf"]
        assert shown.x.ends is not None and 0 < shown.x.ends[0] < shown.x.ends[1]
    with pytest.raises(InputError, match=r"\.html or \.md"):
        write_leaderboard(tmp_path / "page.txt", found)
