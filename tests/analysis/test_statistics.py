from __future__ import annotations

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.runs import (
    Estimate,
    Paired,
    Range,
    dependence,
    holm,
    lag_1,
    sign_test,
    t_distribution,
    t_quantile,
)

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


@pytest.mark.parametrize("values", [[5.0], [4.0, 6.0]])
def test_one_or_two_repetitions_have_no_interval(values: list[float]) -> None:
    assert Estimate.of(values) == Estimate(5.0)


@given(st.lists(st.floats(1.001, 1e6), min_size=3, max_size=12))
def test_an_interval_stays_in_the_possible_range(values: list[float]) -> None:
    """And is about Student's where that is short."""
    estimate = Estimate.of(values, Range(1.0))
    assert estimate.low is not None
    assert estimate.high is not None
    assert 1.0 <= estimate.low <= estimate.mean <= estimate.high
    shares = Estimate.of([value / (1e6 + 1) for value in values], Range(0.0, 1.0))
    assert shares.low is not None
    assert shares.high is not None
    assert 0.0 <= shares.low <= shares.high <= 1.0
    near = [1000.0, 1001.0, 1002.0]
    assert Estimate.of(near, Range(0.0)).low == pytest.approx(Estimate.of(near).low, rel=1e-4)


def test_no_repetition_has_no_mean() -> None:
    assert isnan(Estimate.of([]).mean)


def test_a_paired_comparison_is_a_t_test_of_the_differences() -> None:
    """Differences 1, 2, 3, 4: mean 2.5, deviation 1.291, so t = 3.873 with 3 degrees of freedom."""
    paired = Paired.of([1, 2, 3, 4])
    assert paired.difference.mean == 2.5
    assert paired.p_value == pytest.approx(2 * (1 - t_distribution(3.8730, 3)), abs=1e-4)
    assert paired.sign_p_value == 2 / 2**4
    assert Paired.of([0, 0, 0]).p_value == 1.0
    assert Paired.of([1, 1, 1]).p_value == 0.25, "three of the same sign are no proof"


def test_the_sign_test_is_that_of_the_binomial_distribution() -> None:
    stats = pytest.importorskip("scipy.stats", reason="checked against scipy")
    for positive, negative in ((9, 0), (7, 2), (5, 4), (1, 1)):
        expected = stats.binomtest(positive, positive + negative).pvalue
        assert sign_test([1.0] * positive + [-1.0] * negative) == pytest.approx(expected)


def test_holm_raises_p_values_step_by_step() -> None:
    assert holm([0.01, 0.02, 0.03, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert holm([]) == []


def test_the_autocorrelation_of_successive_values() -> None:
    assert lag_1([1.0, -1.0, 1.0, -1.0]) == -0.75
    assert lag_1([1.0, 2.0, 3.0]) is None
    assert lag_1([2.0, 2.0, 2.0, 2.0]) is None


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_dependence_has_no_bias_where_series_are_short(rho: float) -> None:
    """Noise in nine parts, each of which keeps so much of the one before: alone it looks like much less."""
    noise = np.random.default_rng(1).standard_normal((1000, 40))
    for place in range(1, 40):
        noise[:, place] += rho * noise[:, place - 1]
    series = noise[:, -9:].tolist()
    assert dependence(series) == pytest.approx(rho, abs=0.15)
    assert sum(lag_1(values) or 0.0 for values in series) / 1000 < rho - 0.1
    assert dependence([[1.0, 2.0], [3.0, 3.0, 3.0, 3.0]]) is None
