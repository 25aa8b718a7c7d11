"""Fractional Gaussian noise: the simplest series with long-range dependence."""

from __future__ import annotations

import numpy as np

from batsched_py.workload.swf.log import Floats


def fractional_gaussian_noise(count: int, hurst: float, random: np.random.Generator) -> Floats:
    """A standard normal series whose autocorrelation is exactly that of the Hurst parameter.

    Its covariance matrix is embedded into a circulant one, which the Fourier transform makes diagonal (Davies
    and Harte 1987).
    """
    lags = np.arange(count + 1, dtype=np.float64)
    powers = np.abs(np.arange(-1, count + 2, dtype=np.float64)) ** (2 * hurst)
    covariances = (powers[2:] - 2 * lags ** (2 * hurst) + powers[:-2]) / 2
    circle = np.concatenate([covariances, covariances[-2:0:-1]])
    eigenvalues = np.maximum(np.fft.fft(circle).real, 0)
    noise = random.standard_normal(len(circle)) + 1j * random.standard_normal(len(circle))
    return np.fft.fft(noise * np.sqrt(eigenvalues / len(circle))).real[:count]
