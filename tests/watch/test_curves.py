"""Figures over time as characters."""

from __future__ import annotations

from batsched_py.watch.live import History, curve


def test_columns_are_the_values_at_even_times() -> None:
    history = History()
    for time, value in ((0.0, 1.0), (10.0, 5.0), (10.0, 3.0), (100.0, 0.0)):
        history.add(time, value)
    assert history.columns(5) == [1.0, 3.0, 3.0, 3.0, 0.0]


def test_many_samples_are_thinned_out() -> None:
    history = History(most=16)
    for time in range(10_000):
        history.add(float(time), float(time))
    columns = history.columns(4)
    assert columns == sorted(columns)
    assert columns[0] == 0.0
    assert columns[-1] == 9_999.0


def test_an_empty_curve_is_flat() -> None:
    assert curve([0.0, 0.0], 2, 0.0) == ["  ", "  "]
