from __future__ import annotations

from math import isnan, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.runs import Estimate, Paired, t_distribution, t_quantile

#: From printed tables of Student's distribution: degrees of freedom, probability, t.
PRINTED = [
    (1, 0.975, 12.706),
    (2, 0.975, 4.303),
    (3, 0.975, 3.182),
    (4, 0.995, 4.604),
    (5, 0.95, 2.015),
    (9, 0.975, 2.262),
    (10, 0.995, 3.169),
    (29, 0.975, 2.045),
    (30, 0.9, 1.310),
    (120, 0.975, 1.980),
]


@pytest.mark.parametrize(("freedom", "probability", "t"), PRINTED)
def test_quantiles_are_those_of_printed_tables(freedom: int, probability: float, t: float) -> None:
    assert round(t_quantile(probability, freedom), 3) == t


@given(st.floats(0.5, 0.999), st.integers(1, 200))
def test_the_quantile_inverts_the_distribution(probability: float, freedom: int) -> None:
    assert t_distribution(t_quantile(probability, freedom), freedom) == pytest.approx(probability, abs=1e-12)


def test_an_interval_by_hand() -> None:
    estimate = Estimate.of([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.half_width == pytest.approx(4.302653 / sqrt(3), abs=1e-6)


def test_one_repetition_has_no_interval() -> None:
    assert Estimate.of([5.0]) == Estimate(5.0, None)


def test_no_repetition_has_no_mean() -> None:
    assert isnan(Estimate.of([]).mean)


def test_a_paired_comparison_is_a_t_test_of_the_differences() -> None:
    """Differences 1, 2, 3, 4: mean 2.5, deviation 1.291, so t = 3.873 with 3 degrees of freedom."""
    paired = Paired.of([2, 4, 6, 8], [1, 2, 3, 4])
    assert paired.difference.mean == 2.5
    assert paired.confidence == pytest.approx(t_distribution(3.8730, 3), abs=1e-4)
    assert Paired.of([1, 2], [1, 2]).confidence == 0.5
