"""The findings of "Resampling with Feedback", with fewer seeds than on the page, and how tables are made."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from batsched_py.analysis.runs import Estimate
from batsched_py.errors import InputError
from batsched_py.workload.swf.reader import read_swf
from examples.experiments.populations import EDGES, Figures, Setting, Task
from examples.experiments.resampling_tables import AWARE, by_seed, comparisons, cycles, gains, put_into, rooms
from examples.experiments.resampling_with_feedback import SETTINGS, figures_of, main, tasks
from examples.experiments.what_logs_show import (
    SESSION_BREAK,
    rank_correlation,
    resampled,
    skill,
    thoughts,
    weekly,
)


def found(setting: str, scheduler: str, seed: int, jobs: float, load: float = 1.0) -> Figures:
    """Figures of a simulation that nobody made."""
    sizes, sums = [10, 0, 30, 0, 0, 2], [10.0, 0.0, 300.0, 0.0, 0.0, 4e5]
    return Figures(
        *("LOG", 8, Task(setting, scheduler, seed, load)),
        *(jobs, jobs, jobs / 200, 60.0, 2.0, 3.0, 20.0, 3600.0),
        *(sizes, sums, [0.0] * 24),
    )


def test_classes_of_run_times_are_cut_where_one_likes() -> None:
    figures = found("cycle", "easy", 1, 100)
    assert figures.responses((60.0, EDGES[-1])) == [1.0, 10.0, 2e5]
    assert figures.responses((600.0,)) == [1.0, pytest.approx((300 + 4e5) / 32)]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--settings=night", "there is no setting 'night'; there are: open; feedback; cycle;"),
        ("--classes=1,7", "'7': classes can be cut at 1, 10, 60, 240, 720 minutes"),
    ],
)
def test_settings_and_classes_that_do_not_exist_are_refused(root: Path, option: str, message: str) -> None:
    refused = CliRunner().invoke(main, [str(root / "workloads" / "sample.swf"), option])
    assert refused.exit_code == 2
    assert message in refused.stderr


def test_gains_are_percents_of_pairs_with_the_same_seed() -> None:
    figures = [found("cycle", "easy", seed, 100 * seed) for seed in (1, 2, 3, 4)]
    figures += [found("cycle", AWARE, seed, 100 * seed * 1.1) for seed in (1, 2, 3)]
    assert gains(figures, "cycle", 1.0) == pytest.approx([10, 10, 10])
    (row,) = [line for line in cycles(figures, SETTINGS) if line.startswith("| cycle")]
    assert row == "| cycle | x 1 | 200.0 | 220.0 | +10.0 ± 0.0 % | 1.000 | 1.100 | 8 | 3 |"


def test_every_table_has_the_utilization_beside_jobs_a_day() -> None:
    figures = [
        found(setting, scheduler, seed, 100 + seed)
        for setting in ("open", "feedback", "cycle", "no cycle", "recorded from easy", "recorded from fcfs")
        for scheduler in ("easy", "fcfs", "user-aware", AWARE)
        for seed in (1, 2)
    ]
    rows = [line.split(" | ") for line in comparisons(figures, (60.0,)) if line.startswith("| ")][2:]
    for title in {row[0] for row in rows}:
        shown = {row[2] for row in rows if row[0] == title}
        assert {"submitted_per_day", "utilization"} <= shown
    assert "utilization" in next(iter(rooms(figures)))
    assert "utilization" in next(iter(cycles(figures, SETTINGS)))


def test_users_of_a_site_are_counted_in_hundreds() -> None:
    users = Setting("site-level").users(seed=3, load=2.0, weeks=16)
    assert users.options == {"nb_users": "200", "days": "112", "seed": "3"}


def test_tables_go_between_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("one\n<!-- a b -->\nold\n<!-- end of a b -->\ntwo\n")
    put_into(page, "a b", ["| new |"])
    assert page.read_text() == "one\n<!-- a b -->\n\n| new |\n\n<!-- end of a b -->\ntwo\n"
    with pytest.raises(InputError, match="there is no <!-- c -->"):
        put_into(page, "c", [])


def on_the_page(root: Path, part: str) -> list[list[str]]:
    """The rows of a table of KTH that are about shuffled jobs and users of a site."""
    text = (root / "docs" / "resampling-with-feedback.md").read_text(encoding="utf-8")
    table = text.partition(f"<!-- KTH {part} -->")[2].partition(f"<!-- end of KTH {part} -->")[0]
    return [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| s")][1:]


def test_the_page_has_thirty_seeds_of_the_night(root: Path) -> None:
    """Shuffled jobs and users of a site, with and without a cycle; no row has fewer seeds."""
    rows = on_the_page(root, "cycles")
    wanted = {f"{users}, {cycle}" for users in ("shuffled", "site") for cycle in ("cycle", "no cycle")}
    assert wanted <= {row[0] for row in rows}
    assert {row[-1] for row in rows} == {"30"}


@pytest.mark.parametrize(
    ("setting", "variant", "users", "independent"),
    [
        ("shuffled, cycle", "shuffled, ended_before=start, cycle", "x 4", 2.6),
        ("shuffled, no cycle", "shuffled, ended_before=start, no cycle", "x 4", -3.7),
        ("site, no cycle", "site for 3 years, no cycle", "100", -18.8),
    ],
)
def test_variants_are_nearer_to_the_independent_simulation(
    root: Path, setting: str, variant: str, users: str, independent: float
) -> None:
    """As the page says of the sizes that differ."""
    gain = {
        (row[0], row[1]): float(row[4].split(" ± ")[0])
        for part in ("cycles", "printed", "years")
        for row in on_the_page(root, part)
    }
    assert abs(gain[variant, users] - independent) < abs(gain[setting, users] - independent)


def test_a_response_that_tells_everything_has_a_skill_of_one() -> None:
    goes_on = pd.Series([True, False, True, False])
    assert skill(pd.Series([1.0, 9.0, 2.0, 8.0]), goes_on) == 1
    assert skill(pd.Series([1.0, 1.0, 1.0, 1.0]), goes_on) == 0.5


# --- the findings --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kth(shared: Path) -> str:
    return str(shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz")


def simulated(kth: str, seeds: int, weeks: int, *settings: str) -> list[Figures]:
    """What comes out of some settings."""
    wanted = {name: SETTINGS[name] for name in settings}
    todo = [task for task in tasks(wanted, seeds) if task.seed]
    return [figures for task in todo for figures in figures_of(kth, task, weeks)]


def bounds(estimate: Estimate) -> tuple[float, float]:
    """The interval of 95 %."""
    assert estimate.half_width is not None
    return estimate.mean - estimate.half_width, estimate.mean + estimate.half_width


@pytest.mark.slow
def test_users_of_a_site_gain_with_a_cycle_and_lose_without(kth: str) -> None:
    figures = simulated(kth, 3, 8, "site, cycle", "site, no cycle")
    assert bounds(Estimate.of(gains(figures, "site, cycle", 1.0)))[0] > 0
    assert bounds(Estimate.of(gains(figures, "site, no cycle", 1.0)))[1] < 0
    busy = [by_seed(figures, "site, cycle", name, 1.0)[1].utilization for name in ("easy", AWARE)]
    assert busy[0] < busy[1]


@pytest.mark.slow
def test_with_shuffled_jobs_the_gain_is_lost_without_a_cycle(kth: str) -> None:
    """At four times the users, where there is most to lose; seed by seed."""
    figures = [
        each
        for name in ("shuffled, cycle", "shuffled, no cycle")
        for seed in range(1, 7)
        for scheduler in ("easy", AWARE)
        for each in figures_of(kth, Task(name, scheduler, seed, 4.0), 8)
    ]
    cycle, none = (gains(figures, name, 4.0) for name in ("shuffled, cycle", "shuffled, no cycle"))
    assert bounds(Estimate.of([a - b for a, b in zip(cycle, none, strict=True)]))[0] > 0
    assert fmean(none) < 0 < fmean(cycle)


@pytest.mark.slow
def test_with_feedback_users_submit_more_under_easy_and_without_they_do_not(kth: str) -> None:
    figures = simulated(kth, 6, 8, "open", "feedback")
    for setting, differs in (("open", False), ("feedback", True)):
        easy, fcfs = (by_seed(figures, setting, name, 1.0) for name in ("easy", "fcfs"))
        pairs = [(easy[seed].submitted_per_day, fcfs[seed].submitted_per_day) for seed in easy]
        if differs:
            assert bounds(Estimate.of([a - b for a, b in pairs]))[0] > 0
        else:
            assert all(first == second for first, second in pairs)
    own, crossed = (
        by_seed(figures, "feedback", "easy", 1.0),
        by_seed(figures, "recorded from easy", "fcfs", 1.0),
    )
    assert all(crossed[seed].mean_wait > 2 * own[seed].mean_wait for seed in own)


@pytest.mark.slow
def test_throughput_depends_on_what_the_paper_leaves_open(kth: str) -> None:
    """More is submitted if nobody begins away, and if sessions last until their jobs are over."""
    figures = simulated(kth, 6, 8, "open", "open, begin=active", "feedback", "feedback, session_end=finish")
    for less, more in (("open", "open, begin=active"), ("feedback", "feedback, session_end=finish")):
        first, second = (by_seed(figures, name, "easy", 1.0) for name in (more, less))
        pairs = [(first[seed].submitted_per_day, second[seed].submitted_per_day) for seed in first]
        assert bounds(Estimate.of([a - b for a, b in pairs]))[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln.swf.gz", "SDSC-DS-2004-2.1-cln.swf.gz"])
def test_response_times_tell_who_goes_on_and_large_jobs_are_few(name: str, shared: Path) -> None:
    """Figures 18 and 11 of the paper."""
    log = read_swf(shared / "logs" / name)
    jobs = thoughts(log)
    goes_on = jobs["thought"] < SESSION_BREAK
    assert skill(jobs["response"], goes_on) > 0.7 > skill(jobs["slowdown"], goes_on)
    assert rank_correlation(weekly(log)) < -0.5


@pytest.mark.slow
def test_users_who_are_mixed_do_not_keep_out_of_each_others_way(kth: str) -> None:
    log = read_swf(kth)
    mixed = [rank_correlation(weekly(new)) for new in resampled(log, 10)]
    assert rank_correlation(weekly(log)) < min(mixed)


def test_a_quarter_of_the_jobs_was_submitted_before_something_ended_that_ended_before_they_ran(
    root: Path, shared: Path
) -> None:
    """What the page says of why `ended_before=start` is not the default."""
    log = read_swf(shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz")
    log = log.select(log.processors > 0)
    starts = log.submit + log.wait
    ends = starts + log.run_time
    early = []
    for user in np.unique(log.user):
        mine = np.flatnonzero(log.user == user)
        for count, job in enumerate(mine):
            before = ends[mine[:count]]
            before = before[(before > log.submit[job]) & (before <= starts[job])]
            early += [float(before.max() - log.submit[job])] if len(before) else []
    text = " ".join((root / "docs" / "resampling-with-feedback.md").read_text().split())
    told = f"{len(early):,} of {len(log):,} jobs ({len(early) / len(log):.1%}) were".replace("%", " %")
    assert told in text
    assert f"in the median {np.median(early) / 3600:.1f} h before" in text
