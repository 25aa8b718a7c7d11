"""Prices and carbon: what a policy reads, what the energy costs, what the report draws."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.report.figures import Subject, curves
from batsched_py.errors import InputError
from batsched_py.outside.curve import Curve, read_curve
from batsched_py.schedulers import Cluster, Scheduler

POWER8 = "tests/data/golden/power60_sleeper/power8.xml"


def test_a_curve_holds_its_values_and_repeats() -> None:
    once, daily = Curve([10.0, 20.0], [1.0, 2.0]), Curve([10.0, 20.0], [1.0, 2.0], period=30.0)
    assert [once.at(time) for time in (0, 10, 19.9, 20, 99)] == [1, 1, 1, 2, 2]
    assert [daily.at(time) for time in (0, 20, 31, 50, 89)] == [1, 2, 1, 2, 2]
    assert [once.next_change(time) for time in (0, 10, 20)] == [10, 20, inf]
    assert [daily.next_change(time) for time in (0, 20, 45, 50)] == [10, 40, 50, 70]
    steps = list(daily.steps(15.0, 55.0))
    assert steps == [(15, 20, 1), (20, 40, 2), (40, 50, 1), (50, 55, 2)]


def test_time_goes_on_where_times_of_a_period_are_rounded() -> None:
    """Seen from the beginning of its period, 102.3 is just before 3.3."""
    curve = Curve([0.0, 3.3, 10.0], [1.0, 2.0, 3.0], 11.0)
    changes = [11.0 * begun + time for begun in range(200) for time in (0.0, 3.3, 10.0)]
    assert all(curve.next_change(change) > change for change in changes)
    assert curve.integral(102.3, 102.3 + 11.0) == pytest.approx(3.3 + 2 * 6.7 + 3)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("time,value\n5,1\n5,2\n", "times of a curve must rise"),
        ("time,value\n", "times of a curve must rise"),
        ("time,value\n90000,1\n", "not within the period"),
        ("time,value\n1,x\n", "line 2: value must be a number, not 'x'"),
        ("time;value\n1;2\n", "line 1: has no column 'time'"),
    ],
)
def test_a_fault_in_a_curve_is_named(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "price.csv").write_text(text)
    with pytest.raises(InputError, match=fault):
        read_curve(str(tmp_path / "price.csv"), 86400.0)


class Frugal(Scheduler):
    """Starts jobs while energy is cheap, and comes back when the price changes."""

    name = "frugal"

    def schedule(self, cluster: Cluster) -> None:
        price = cluster.outside.price
        assert price is not None
        while cluster.queue and cluster.fits(cluster.queue.head):
            if price.at(cluster.now) > 1:
                cluster.call_at(price.next_change(cluster.now))
                return
            cluster.start(cluster.queue.head)


def test_cost_and_carbon_are_recounted_from_the_energy(root: Path, tmp_path: Path) -> None:
    """Between two rows of ``consumed_energy.csv`` the power is constant; each second has its price."""
    (tmp_path / "price.csv").write_text("time,value\n0,5\n100,0.5\n400,2\n")
    (tmp_path / "carbon.csv").write_text("time,value\n0,300\n250,50\n")
    log = tmp_path / "log.swf"
    lines = [f"{n} {20 * n} -1 60 2 -1 -1 2 100 -1 1 {n} {'-1 ' * 6}" for n in range(1, 11)]
    log.write_text("\n".join(lines) + "\n")
    prefix = tmp_path / "out"
    result = bp.simulate(
        str(log),
        Frugal(),
        platform=str(root / POWER8),
        energy=True,
        price=str(tmp_path / "price.csv"),
        carbon=str(tmp_path / "carbon.csv"),
        outside_period=500.0,
        export=str(prefix),
    )
    starts = result.jobs["starting_time"]
    assert starts.min() == 100 and not ((starts % 500 >= 400) | (starts % 500 < 100)).any()
    with Path(f"{prefix}_consumed_energy.csv").open() as file:
        rows = [(float(row["time"]), float(row["energy"])) for row in csv.DictReader(file)]
    end = result.jobs["finish_time"].max()
    cost = grams = 0.0
    for (start, before), (until, after) in zip([(0.0, 0.0), *rows], rows, strict=False):
        for second in range(int(start), int(min(until, end))):
            kwh = (after - before) / (until - start) / 3.6e6
            cost += kwh * (0.5 if 100 <= second % 500 < 400 else 2 if second % 500 >= 400 else 5)
            grams += kwh * (300 if second % 500 < 250 else 50)
    assert result.metrics["energy_cost"] == pytest.approx(cost, rel=1e-4)
    assert result.metrics["carbon"] == pytest.approx(grams, rel=1e-4)
    drawn = curves(Subject(read_run(f"{prefix}_jobs.csv", "run")))
    assert {5, 0.5} <= set(drawn["Price"][1]) <= {5, 0.5, 2}
    assert set(drawn["Carbon intensity"][1]) == {300, 50}


def test_a_price_does_not_change_the_energy(root: Path, tmp_path: Path) -> None:
    (tmp_path / "price.csv").write_text("time,value\n0,1\n")
    log = str(root / "workloads" / "sample.swf")
    short = tmp_path / "short.swf"
    lines = [line for line in Path(log).read_text().splitlines() if not line.startswith(";")]
    short.write_text("\n".join(lines[:60]) + "\n")
    results = [
        bp.simulate(str(short), "fcfs", platform=str(root / POWER8), energy=True, reject_larger=True, **more)
        for more in ({}, {"price": str(tmp_path / "price.csv")})
    ]
    without, with_it = (dict(result.metrics) for result in results)
    assert with_it.pop("energy_cost") > 0
    assert with_it == without
