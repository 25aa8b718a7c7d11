"""Pure noise: nothing is called better where nothing is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

import batsched_py as bp
from batsched_py.analysis.metrics import measure
from batsched_py.analysis.runs import SIGNIFICANT
from batsched_py.analysis.runs.aggregate import Baseline, aggregate
from batsched_py.analysis.runs.comparisons import compare
from batsched_py.analysis.runs.tables import tables_of
from batsched_py.analysis.windows import Window
from tests.runs import Measured

TABLES = 200
METRICS = ["mean_waiting_time", "mean_bounded_slowdown"]


def noise(seed: int) -> list[Measured]:
    """One policy under four names: heavy tails, ten parts with loads of their own, three seeds in each."""
    random = np.random.default_rng(seed)
    busy = random.lognormal(2.0, 0.8, 10)
    luck = random.lognormal(0.0, 0.5, (4, 10))
    return [
        Measured(
            {"log": "kth", "part": str(part + 1), "scheduler": name, "seed": str(number)},
            {
                metric: float(1 + busy[part] * luck[place, part] * random.lognormal(0.0, 0.1))
                for metric in METRICS
            },
        )
        for place, name in enumerate("abcd")
        for part in range(10)
        for number in range(3)
    ]


@cache
def itself() -> tuple[tuple[dict[str, float], ...], ...]:
    """What is measured of a random policy under four seeds, in each of eleven parts of the sample."""
    log = Path(__file__).parents[2] / "workloads" / "sample.swf"
    runs = [
        bp.simulate(log, "random", options={"seed": seed}, hosts=64, progress=False).outcome
        for seed in range(1, 5)
    ]
    parts = [Window(day * 86400.0, (day + 5) * 86400.0) for day in range(2, 57, 5)]
    return tuple(tuple(measure(run.within(part)) for part in parts) for run in runs)


def random_against_itself(seed: int) -> list[Measured]:
    """The four seeds as four policies; in each part chance says which is which, as signs that are flipped."""
    random = np.random.default_rng(seed)
    measured = itself()
    places = [random.permutation(len(measured)) for _ in measured[0]]
    return [
        Measured(
            {"log": "sample", "part": str(part + 1), "scheduler": name},
            {metric: measured[places[part][place]][part][metric] for metric in METRICS},
        )
        for place, name in enumerate("abcd")
        for part in range(len(places))
    ]


@pytest.mark.parametrize("noisy", [noise, pytest.param(random_against_itself, marks=pytest.mark.slow)])
def test_at_most_one_table_in_twenty_calls_anything_better(noisy: Callable[[int], list[Measured]]) -> None:
    """As many as one would expect by chance, whatever the seeds within parts pretend."""
    starred = better = 0
    for seed in range(TABLES):
        runs = noisy(seed)
        (table,) = tables_of(aggregate(runs, METRICS, baseline=Baseline("a")))
        starred += any("*" in cell.text for _, cells in table.rows for cell in cells)
        better += any("is better than" in str(each) for each in compare(runs, METRICS))
    assert starred <= 0.05 * TABLES
    assert better <= 0.05 * TABLES


def dependent(seed: int) -> list[Measured]:
    """One policy under four names, in nine parts each of which keeps half of the part before."""
    random = np.random.default_rng(seed)
    rest = random.standard_normal((4, 40))
    for place in range(1, 40):
        rest[:, place] += 0.5 * rest[:, place - 1]
    return [
        Measured(
            {"log": "kth", "part": str(part + 1), "scheduler": name},
            {"mean_waiting_time": 100.0 + float(rest[place, part - 9])},
        )
        for place, name in enumerate("abcd")
        for part in range(9)
    ]


def test_parts_that_depend_on_each_other_count_as_fewer() -> None:
    """The tests of tables find noise in 7.2 % where each part that counts as one finds 24 %."""
    tested = []
    for seed in range(TABLES):
        rows = aggregate(dependent(seed), ["mean_waiting_time"], baseline=Baseline("a")).rows
        tested += [each.paired for _, row in rows for each in row.values() if each.paired is not None]
    assert len(tested) == 3 * TABLES
    assert fmean(each.p_value < SIGNIFICANT for each in tested) < 0.08
    assert fmean(each.counted for each in tested) < 6
