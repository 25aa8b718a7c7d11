"""Figures of tables of results."""

from __future__ import annotations

from math import exp

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.plots.figures import draw
from batsched_py.analysis.plots.kinds.campaigns import Box, estimates_by_load
from batsched_py.analysis.plots.runs import configurations
from batsched_py.errors import InputError

pytest.importorskip("matplotlib", reason="figures need matplotlib")


@pytest.fixture
def table() -> pd.DataFrame:
    """Two logs, two schedulers, two loads and three parts."""
    return pd.DataFrame(
        [
            {"run": "r", "log": log, "load": load, "scheduler": scheduler, "part": part, "makespan": value}
            for log in ("one", "two")
            for load in ("0.8", "1.2")
            for scheduler in ("fcfs", "easy")
            for part, value in (("1", 10.0), ("2", 20.0), ("3", 30.0))
        ]
    )


def test_means_and_intervals_are_those_of_parts_at_a_load(table: pd.DataFrame) -> None:
    rows = table[(table["log"] == "one") & (table["scheduler"] == "easy")]
    estimates = estimates_by_load(rows, "makespan")
    assert estimates.index.to_list() == [0.8, 1.2]
    assert estimates["mean"].to_list() == [20, 20]
    wide = 4.30265 * 10 / 3**0.5 / 20
    assert estimates["below"].to_list() == pytest.approx([20 - 20 * exp(-wide)] * 2, rel=1e-4)
    assert estimates["above"].to_list() == pytest.approx([20 * exp(wide) - 20] * 2, rel=1e-4)
    few = estimates_by_load(rows[rows["part"] != "3"], "makespan")
    assert few[["mean", "below", "above"]].to_numpy().tolist() == [[15, 0, 0]] * 2, "no interval of two"


def test_configurations_differ_in_more_than_repetitions(table: pd.DataFrame) -> None:
    assert [name for name, _ in configurations(table, "load")] == ["fcfs", "easy"]
    assert [len(rows) for _, rows in configurations(table)] == [6, 6, 6, 6]


def test_a_panel_for_each_log_and_a_line_for_each_scheduler(table: pd.DataFrame) -> None:
    axes = draw("load", table, metric="makespan").axes
    assert [panel.get_title(loc="left") for panel in axes] == ["one", "two"]
    assert [len(panel.containers) for panel in axes] == [2, 2]


def test_a_box_for_each_configuration(table: pd.DataFrame) -> None:
    assert [len(panel.patches) for panel in draw("repetitions", table, metric="makespan").axes] == [4, 4]


@given(st.lists(st.floats(-1e9, 1e9) | st.integers(0, 3), min_size=1, max_size=30))
def test_a_box_is_what_matplotlib_draws(values: list[float]) -> None:
    from matplotlib.cbook import boxplot_stats

    (expected,) = boxplot_stats(values)
    names = {"low": "whislo", "lower": "q1", "median": "med", "upper": "q3", "high": "whishi"}
    found = Box.of(values)
    assert {theirs: getattr(found, ours) for ours, theirs in names.items()} == {
        theirs: expected[theirs] for theirs in names.values()
    }
    assert found.beyond == sorted(expected["fliers"])
    assert found.count == len(values)


def test_a_configuration_without_values_has_no_box(table: pd.DataFrame) -> None:
    table.loc[table["scheduler"] == "easy", "makespan"] = float("nan")
    for panel in draw("repetitions", table, metric="makespan").axes:
        assert [tick.get_text() for tick in panel.get_xticklabels()] == [
            "0.8, fcfs",
            "0.8, easy",
            "1.2, fcfs",
            "1.2, easy",
        ]
        drawn = [bool(pd.notna(patch.get_path().vertices).all()) for patch in panel.patches]
        assert drawn == [True, False, True, False]


def test_a_table_without_loads(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="the table of results has no column 'load'; it has run, log"):
        draw("load", table.drop(columns="load"), metric="makespan")


def test_a_metric_that_no_run_has(table: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="the table of results has no column 'wait'; it has run, log"):
        draw("repetitions", table, metric="wait")
