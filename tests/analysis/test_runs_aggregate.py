"""Means over parts and seeds, and differences to a baseline: checked against pandas and scipy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.analysis.runs.aggregate import Baseline, aggregate
from batsched_py.analysis.runs.comparisons import compare
from batsched_py.analysis.runs.tables import latex, markdown, tables_of
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from tests.runs import Measured

stats = pytest.importorskip("scipy.stats", reason="checked against scipy")

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"
METRICS = ["mean_bounded_slowdown", "mean_waiting_time", "utilization"]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> bp.Campaign:
    """Parts of the sample under two loads and three schedulers, one of which has seeds."""
    log = bp.read_log(SAMPLE)
    plan = bp.Plan(
        logs={"month": log.period(end="30d"), "early": log.period(end="16d")},
        schedulers=["easy", "conservative", "random"],
        parts="4d",
        measure=":",
        loads=[0.5, 0.6],
        seeds=[1, 2],
        metrics=METRICS,
        baseline="easy",
        name="weeks",
    )
    return plan.run(tmp_path_factory.mktemp("weeks"), workers=1)


def interval(values: pd.Series, number: float) -> tuple[float, float]:
    """Student's interval of the mean of units that count as so many independent ones."""
    width = stats.t.ppf(0.975, max(1, int(number) - 1)) * values.std() / np.sqrt(number)
    return values.mean() - width, values.mean() + width


def probability(values: pd.Series, number: float) -> float:
    """That of Student's t-test of the same."""
    t = abs(values.mean()) / (values.std() / np.sqrt(number))
    return float(2 * stats.t.sf(t, max(1, int(number) - 1)))


def on_log_scale(values: pd.Series, least: float) -> tuple[float, float]:
    """The same for the logarithm of the distance from the least possible value."""
    above = values.mean() - least
    width = stats.t.ppf(0.975, len(values) - 1) * values.sem() / above
    return least + above * np.exp(-width), least + above * np.exp(width)


def test_the_aggregate_is_that_of_pandas(campaign: bp.Campaign) -> None:
    table = campaign.table()
    found = campaign.aggregate().set_index(["log", "load", "scheduler", "metric"])
    groups = table.groupby(["log", "load", "scheduler"])
    assert len(found) == len(groups) * len(METRICS) == 36
    for place, runs in groups:
        for metric in METRICS:
            row = found.loc[(*place, metric)]
            assert row["count"] == len(runs)
            assert row["mean"] == pytest.approx(runs[metric].mean())
            units = runs.groupby("part")[metric].mean()
            assert row["units"] == len(units) == runs["part"].nunique()
            if metric != "utilization":
                least = 1.0 if "slowdown" in metric else 0.0
                assert (row["low"], row["high"]) == pytest.approx(on_log_scale(units, least))
            else:
                assert 0 < row["low"] < row["mean"] < row["high"] < 1


def test_differences_are_those_of_pairs(campaign: bp.Campaign) -> None:
    """A run with a seed is compared with the one of the baseline, which needs none."""
    table = campaign.table()
    found = campaign.aggregate().set_index(["log", "load", "scheduler", "metric"])
    common = ["log", "load", "part"]
    pairs = table.merge(table[table.scheduler == "easy"], on=common, suffixes=("", "_easy"))
    compared = 0
    for place, runs in pairs[pairs.scheduler != "easy"].groupby(["log", "load", "scheduler"]):
        for metric in METRICS:
            row, theirs = found.loc[(*place, metric)], runs[f"{metric}_easy"]
            differences = (runs[metric] - theirs).groupby(runs["part"]).mean()
            assert row.pairs == len(runs)
            assert row.difference_mean == pytest.approx(differences.mean())
            number = row.counted_pairs
            assert 1 <= number <= len(differences)
            assert (row.difference_low, row.difference_high) == pytest.approx(interval(differences, number))
            assert row.relative_difference == pytest.approx(differences.mean() / theirs.mean())
            assert row.p_value == pytest.approx(probability(differences, number), abs=1e-12)
            independent = number == len(differences)
            assert not independent or row.p_value == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
            assert row.p_value <= row.p_holm <= 1
            assert row.effect_size == pytest.approx(differences.mean() / differences.std())
            compared += 1
    assert compared == 24
    baseline = found.xs("easy", level="scheduler")
    assert (baseline.pairs == 0).all()
    assert baseline.p_value.isna().all()


def test_rows_may_be_told_apart_otherwise(campaign: bp.Campaign) -> None:
    """Then different experiments are pooled, and pairs still have all else in common."""
    table = campaign.table()
    found = campaign.aggregate(by=["scheduler"], metrics=["utilization"]).set_index("scheduler")
    assert found["mean"].to_dict() == pytest.approx(table.groupby("scheduler").utilization.mean().to_dict())
    parts = len(table[table.scheduler == "easy"])
    assert found.pairs.to_dict() == {"easy": 0, "conservative": parts, "random": 2 * parts}
    loads = campaign.aggregate(by=["load"], baseline="load=0.5").set_index(["load", "metric"])
    assert (loads.xs("0.6").pairs == len(table) / 2).all()
    assert campaign.aggregate(by=["log"])["pairs"].sum() == 0, "the plan's baseline needs schedulers apart"


def test_different_experiments_are_no_repetitions(campaign: bp.Campaign) -> None:
    """Loads and logs that are pooled are named, and have neither intervals nor tests."""
    results = campaign.aggregated(["scheduler"], metrics=["utilization"])
    assert results.pooled == {"log": ["month", "early"], "load": ["0.5", "0.6"]}
    frame = results.frame()
    assert (
        frame[["low", "high", "difference_low", "difference_high", "p_value", "effect_size"]]
        .isna()
        .all(axis=None)
    )
    assert frame.set_index("scheduler")["difference_mean"].notna().to_dict() == {
        "easy": False,
        "conservative": True,
        "random": True,
    }
    (table,) = tables_of(results)
    assert "(log: month, early; load: 0.5, 0.6), which are no repetitions of one" in table.note
    assert "±" not in markdown([table])
    assert not campaign.aggregated(["log", "load", "scheduler"]).pooled


def test_rows_may_be_about_the_jobs_of_a_class(campaign: bp.Campaign) -> None:
    """Each class is measured from the jobs of each run; runs still make pairs."""
    metrics = ["nb_jobs", "p95_waiting_time"]
    by = ["log", "load", "scheduler", "class"]
    found = campaign.aggregate(by=by, metrics=metrics).set_index([*by, "metric"]).sort_index()
    place = ("month", "0.6", "conservative", "short, wide")
    (run,) = [
        each
        for each in campaign.finished()
        if [each.axes[axis] for axis in ("log", "load", "scheduler")] == list(place[:3])
    ]
    jobs = pd.read_csv(run.jobs_file)
    mine = jobs[(jobs.execution_time <= 3600) & (jobs.requested_number_of_resources > 8)]
    values = [
        np.percentile(waits, 95)
        for window in run.measurement.windows.values()
        if len(waits := mine.waiting_time[mine.submission_time.between(window.begin, window.end, "left")])
    ]
    row = found.loc[(*place, "p95_waiting_time")]
    assert row["count"] == row.pairs == len(values) > 4
    assert row["mean"] == pytest.approx(np.mean(values))
    jobs = campaign.table().set_index(["log", "load", "scheduler"]).loc[("early", "0.5", "easy"), "nb_jobs"]
    assert found.loc[("early", "0.5", "easy")].xs("nb_jobs", level="metric")["mean"].sum() == pytest.approx(
        jobs.mean(), rel=0.1
    )


def test_rows_may_be_about_the_jobs_of_an_account(campaign: bp.Campaign) -> None:
    found = campaign.aggregate(by=["log", "load", "scheduler", "account"], metrics=["nb_jobs"])
    groups = bp.read_log(SAMPLE).columns.group
    assert set(found["account"]) <= set(map(str, groups.tolist()))
    assert found["account"].nunique() > 3
    with pytest.raises(InputError, match="of one class or of one user, not of both"):
        campaign.aggregate(by=["class", "user"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            {"by": ["colour"]},
            "the runs have no axis 'colour'; they have log, part, load, ",
        ),
        ({"baseline": "best"}, "no run has the scheduler 'best'"),
        ({"baseline": "colour=red"}, "the runs have no axis 'colour'"),
        ({"by": ["log"], "baseline": "easy"}, "rows must be told apart by the scheduler"),
        ({"metrics": ["happiness"]}, "no run has the metric 'happiness'; they have nb_jobs, "),
    ],
)
def test_a_mistake_is_one_line(words: dict[str, object], message: str, campaign: bp.Campaign) -> None:
    with pytest.raises(InputError, match=message):
        campaign.aggregate(**words)


def test_the_command_writes_every_format(campaign: bp.Campaign, tmp_path: Path) -> None:
    names = ["table.md", "table.tex", "table.csv", "table.parquet"]
    outputs = [argument for name in names for argument in ("--output", str(tmp_path / name))]
    done = CliRunner().invoke(batsched_py, ["campaign", "table", str(campaign.folder), *outputs])
    assert done.exit_code == 0, done.output
    frame = campaign.aggregate()
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), frame)
    read = pd.read_csv(tmp_path / "table.csv", dtype={"load": str})
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    assert (tmp_path / "table.md").read_text() == markdown(tables_of(campaign.aggregated()))
    assert (tmp_path / "table.tex").read_text() == latex(tables_of(campaign.aggregated()))
    shown = CliRunner().invoke(batsched_py, ["campaign", "table", str(campaign.folder)])
    assert shown.stdout == markdown(tables_of(campaign.aggregated()))


def test_latex_has_one_unit_a_column_and_a_table_for_what_fits(campaign: bp.Campaign) -> None:
    text = latex(tables_of(campaign.aggregated()))
    tables = text.split(r"\begin{table}")[1:]
    assert len(tables) == text.count(r"\multicolumn{3}") == len(METRICS)
    for table in tables:
        header = next(line for line in table.splitlines() if line.strip().startswith("log &"))
        assert header.strip() == r"log & load & scheduler & mean & difference & effect \\"
        rows = [line for line in table.splitlines() if "[" in line and "&" in line]
        assert len(rows) == 12
        assert {row.count("&") for row in rows} == {header.count("&")}
    one, other = tables_of(campaign.aggregated())
    assert one.headings == other.headings


def made_up(scheduler: str, part: int, wait: float | None) -> Measured:
    axes = {"log": "kth", "part": str(part), "scheduler": scheduler}
    return Measured(axes, {"mean_waiting_time": wait})


def runs_of(waits: dict[str, list[float | None]]) -> list[Measured]:
    return [made_up(name, part, wait) for name, each in waits.items() for part, wait in enumerate(each)]


def test_a_pair_needs_both() -> None:
    runs = runs_of({"easy": [1.0, 2.0, None, 4.0], "fcfs": [2.0, 5.0, 7.0]})
    frame = aggregate(runs, ["mean_waiting_time"], baseline=Baseline("easy")).frame().set_index("scheduler")
    assert frame.loc["fcfs", "pairs"] == 2
    assert frame.loc["fcfs", "difference_mean"] == 2.0
    assert frame["count"].to_dict() == {"easy": 3, "fcfs": 3}


def test_one_pair_tells_nothing_of_a_difference() -> None:
    runs = runs_of({"easy": [1.0], "fcfs": [2.0]})
    frame = aggregate(runs, ["mean_waiting_time"], baseline=Baseline("easy")).frame()
    assert frame.pairs.to_list() == [0, 1]
    assert frame.difference_mean.isna().all()
    assert frame.low.isna().all()


def test_stars_stand_for_what_is_hardly_chance() -> None:
    waits = {
        "easy": [10.0, 20.0, 30.0, 40.0],
        "sure": [5.0, 15.01, 24.99, 35.0],
        "unsure": [1.0, 30.0, 20.0, 50.0],
    }
    (table,) = tables_of(aggregate(runs_of(waits), ["mean_waiting_time"], baseline=Baseline("easy")))
    cells = {choices[0]: [cell.text for cell in cells] for choices, cells in table.rows}
    assert cells["easy"][1:] == ["", ""]
    assert cells["sure"][1] == "\N{MINUS SIGN}5.00 ± 0.01*** (s)", "four of four is not rare for a sign test"
    assert not cells["unsure"][1].endswith("*")
    differences = np.subtract(waits["unsure"], waits["easy"])
    assert float(cells["unsure"][2]) == pytest.approx(differences.mean() / differences.std(ddof=1), abs=0.005)
    assert r"\*\*\*" in markdown([table])
    assert r"$-$5.00 $\pm$ 0.01*** (s)" in latex([table])
    assert "by Holm's method over the 2 tests of the page" in table.note


def test_seeds_are_averaged_within_parts() -> None:
    """Ten seeds in three parts are three units, whatever the seeds say."""
    runs = [
        Measured(
            {"log": "kth", "part": str(part), "scheduler": name, "seed": str(seed)},
            {"mean_waiting_time": 100.0 * part + seed + worse * (1 + 0.1 * part)},
        )
        for name, worse in (("easy", 0), ("random", 5))
        for part in (1, 2, 3)
        for seed in range(10)
    ]
    found = aggregate(runs, ["mean_waiting_time"], baseline=Baseline("easy"))
    row = found.frame().set_index("scheduler").loc["random"]
    assert (row["count"], row["units"], row["pairs"]) == (30, 3, 30)
    assert found.unit == "part"
    (table,) = tables_of(found)
    assert "Means over up to 3 parts of one log, within which seeds are averaged" in table.note
    seeds = [run for run in runs if run.axes["part"] == "1"]
    (table,) = tables_of(aggregate(seeds, ["mean_waiting_time"], baseline=Baseline("easy")))
    assert "Means over up to 10 seeds on one workload" in table.note


def test_logs_are_units_if_the_plan_says_so() -> None:
    runs = [
        Measured({"log": log, "part": str(part), "scheduler": name}, {"mean_waiting_time": wait + part})
        for log, wait in (("a", 10.0), ("b", 30.0), ("c", 20.0))
        for name in ("easy", "fcfs")
        for part in (1, 2)
    ]
    found = aggregate(runs, ["mean_waiting_time"], unit="log")
    assert [group.axes for group, _ in found.rows] == [{"scheduler": "easy"}, {"scheduler": "fcfs"}]
    assert found.frame()["units"].to_list() == [3, 3]


def test_what_has_no_steady_state_is_not_compared() -> None:
    runs = runs_of({"easy": [10.0, 20.0, 30.0, 40.0], "fcfs": [50.0, 60.0, 70.0, 80.0]})
    growing = [replace(run, unstable="it grows") if run.axes["scheduler"] == "fcfs" else run for run in runs]
    found = aggregate(growing, ["mean_waiting_time"], baseline=Baseline("easy"))
    (table,) = tables_of(found)
    cells = {choices[0]: cells for choices, cells in table.rows}
    assert cells["fcfs"][0].text.endswith("†")
    assert cells["fcfs"][1].text == "not compared"
    assert "† has no steady state" in table.note
    assert compare(growing, ["mean_waiting_time"]) == []
    assert len(compare(runs, ["mean_waiting_time"])) == 1


def test_bold_is_what_cannot_be_told_from_the_best_among_what_is_comparable() -> None:
    waits = {"best": [1.0, 2.0, 3.0, 4.0], "near": [1.2, 1.9, 3.3, 3.9], "far": [11.0, 12.1, 13.0, 13.9]}
    rows = [
        Measured(
            {"log": "kth", "part": str(part), "users": users, "scheduler": name}, {"mean_waiting_time": wait}
        )
        for users, more in (("rigid", 0.0), ("react", 100.0))
        for name, each in waits.items()
        for part, wait in enumerate(value + more for value in each)
    ]
    (table,) = tables_of(aggregate(rows, ["mean_waiting_time"]))
    assert [tuple(choices) for choices, cells in table.rows if cells[0].best] == [
        ("rigid", "best"),
        ("rigid", "near"),
        ("react", "best"),
        ("react", "near"),
    ]


def test_the_best_is_that_of_a_log_and_a_load() -> None:
    rows = [
        Measured({"log": "kth", "load": load, "scheduler": name}, {"mean_waiting_time": wait})
        for load, waits in (("0.8", {"a": 1.0, "b": 2.0}), ("1.2", {"a": 9.0, "b": 8.0}))
        for name, wait in waits.items()
    ]
    (table,) = tables_of(aggregate(rows, ["mean_waiting_time"]))
    assert [(choices, cells[0].best) for choices, cells in table.rows] == [
        (["0.8", "a"], True),
        (["0.8", "b"], False),
        (["1.2", "a"], False),
        (["1.2", "b"], True),
    ]
