"""Pure noise: nothing is called better where nothing is."""

from __future__ import annotations

import numpy as np

from batsched_py.analysis.runs.aggregate import Baseline, aggregate
from batsched_py.analysis.runs.comparisons import compare
from batsched_py.analysis.runs.tables import tables_of
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


def test_at_most_one_table_in_twenty_calls_anything_better() -> None:
    """As many as one would expect by chance, whatever the seeds within parts pretend."""
    starred = better = 0
    for seed in range(TABLES):
        runs = noise(seed)
        (table,) = tables_of(aggregate(runs, METRICS, baseline=Baseline("a")))
        starred += any("*" in cell.text for _, cells in table.rows for cell in cells)
        better += any("is better than" in str(each) for each in compare(runs, METRICS))
    assert starred <= 0.05 * TABLES
    assert better <= 0.05 * TABLES
