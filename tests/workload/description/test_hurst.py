"""The estimators of the Hurst parameter, against noise whose parameter is known."""

from __future__ import annotations

import numpy as np
import pytest

from batsched_py.workload.description.over_time import ESTIMATORS, hurst
from batsched_py.workload.models.arrivals import fractional_gaussian_noise

POINTS = 2**16


@pytest.mark.parametrize("parameter", [0.5, 0.6, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_recovers_the_parameter_of_noise(name: str, parameter: float) -> None:
    for seed in range(3):
        noise = fractional_gaussian_noise(POINTS, parameter, np.random.default_rng(seed))
        assert ESTIMATORS[name](noise) == pytest.approx(parameter, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("parameter", [0.5, 0.6, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_recovers_the_parameter_of_noise_for_many_seeds(name: str, parameter: float) -> None:
    for seed in range(100, 140):
        noise = fractional_gaussian_noise(POINTS, parameter, np.random.default_rng(seed))
        assert ESTIMATORS[name](noise) == pytest.approx(parameter, abs=0.05)


def test_the_noise_has_the_autocorrelation_of_its_parameter() -> None:
    hurst_parameter, lags = 0.8, np.arange(1, 6)
    noise = np.stack(
        [fractional_gaussian_noise(256, hurst_parameter, np.random.default_rng(seed)) for seed in range(2000)]
    )
    expected = ((lags + 1.0) ** 1.6 - 2 * lags**1.6 + (lags - 1.0) ** 1.6) / 2
    measured = [np.mean(noise[:, :-lag] * noise[:, lag:]) for lag in lags]
    assert noise.var() == pytest.approx(1, abs=0.05)
    assert measured == pytest.approx(expected, abs=0.03)


def test_all_estimates_come_with_their_median_and_spread() -> None:
    found = hurst(fractional_gaussian_noise(4096, 0.7, np.random.default_rng(1)))
    assert found is not None
    values = [getattr(found, name) for name in ESTIMATORS]
    assert found.median == np.median(values)
    assert found.spread == max(values) - min(values)


@pytest.mark.parametrize("series", [np.zeros(4096), np.arange(100.0)])
def test_a_series_that_is_constant_or_short_has_no_estimate(series: np.ndarray) -> None:
    assert hurst(series) is None
