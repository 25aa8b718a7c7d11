"""Long-range dependence of the arrivals: how long the effect of a busy time lasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.distributions import requested
from batsched_py.workload.description.load import daily_work, variation
from batsched_py.workload.swf.log import WEEK, Floats, SwfLog

#: The lengths of the intervals that time is divided into, in seconds, from a minute to a day.
SCALES: Final = {
    "1 min": 60.0,
    "5 min": 300.0,
    "15 min": 900.0,
    "30 min": 1800.0,
    "1 h": 3600.0,
    "4 h": 14400.0,
    "12 h": 43200.0,
    "1 d": 86400.0,
}


class Burstiness(Struct, frozen=True, kw_only=True):
    """How unevenly a log is spread over time and over sizes."""

    temporal: dict[str, float]
    """Normalised entropy of the arrivals, for each length of interval."""
    spatial: float
    """Normalised entropy of the run time over the sizes of jobs."""


def burstiness(log: SwfLog) -> Burstiness:
    """Describe the burstiness of a log."""
    return Burstiness(
        temporal={name: temporal_entropy(log.submit, scale) for name, scale in SCALES.items()},
        spatial=spatial_entropy(log),
    )


def temporal_entropy(submit: Floats, scale: float) -> float:
    """Normalised entropy of arrivals over intervals of ``scale`` seconds, from the first to the last."""
    return _normalised_entropy(np.bincount(((submit - submit.min()) // scale).astype(np.int64)))


def spatial_entropy(log: SwfLog) -> float:
    """Normalised entropy of the run time of all jobs that ask for i processors, i = 1 ... the largest."""
    return _normalised_entropy(np.bincount(requested(log), log.run_time)[1:])


def _normalised_entropy(amounts: NDArray[Any]) -> float:
    if len(amounts) < 2:
        return 0.0
    shares = amounts[amounts > 0] / amounts.sum()
    return float(-(shares * np.log(shares)).sum() / np.log(len(amounts)))


Series = NDArray[np.float64]

#: Fewest values of which anything is estimated: shorter series have too few scales to compare.
FEWEST_VALUES: Final = 512


class Hurst(Struct, frozen=True, kw_only=True):
    """The Hurst parameter of a series: 0.5 without memory, towards 1 the longer it remembers."""

    aggregated_variance: float
    detrended_fluctuation: float
    local_whittle: float
    wavelet: float
    median: float
    spread: float
    """The largest estimate minus the smallest."""


def hurst(series: Series) -> Hurst | None:
    """All estimates for a series; none where it is too short or does not vary."""
    if len(series) < FEWEST_VALUES or np.ptp(series) == 0:
        return None
    estimates = {name: estimate(series) for name, estimate in ESTIMATORS.items()}
    values = list(estimates.values())
    return Hurst(**estimates, median=float(np.median(values)), spread=max(values) - min(values))


def aggregated_variance(series: Series) -> float:
    """From the variance of the means of blocks, which falls with their length m like ``m ** (2H - 2)``.

    The mean of the series itself varies, too, and the blocks are measured against it: what is expected is
    ``m ** (2H - 2) - n ** (2H - 2)``. H is the value for which the observed variances fit that best on
    a logarithmic scale, where a variance weighs as much as it has blocks.
    """
    n = len(series)
    lengths = _powers_of_two(4, n // 32)
    observed = np.log([_block_means(series, length).var() for length in lengths])
    candidates = np.arange(0.01, 1.0, 0.001)
    exponents = 2 * candidates[:, None] - 2
    misfit = observed - np.log(lengths**exponents - float(n) ** exponents)
    weights = 1 / lengths
    centre = np.average(misfit, axis=1, weights=weights)
    return float(candidates[np.average((misfit - centre[:, None]) ** 2, axis=1, weights=weights).argmin()])


def detrended_fluctuation(series: Series) -> float:
    """From how far the cumulated series strays from a straight line in windows of length m: ``m ** H``.

    A length weighs as much as the root of its number of windows.
    """
    path = np.cumsum(series - series.mean())
    lengths = _powers_of_two(16, len(series) // 16)
    fluctuations = np.log([_fluctuation(path, length) for length in lengths])
    return _slope(np.log(lengths), fluctuations, 1 / np.sqrt(lengths))


def _fluctuation(path: Series, length: int) -> float:
    windows = path[: len(path) // length * length].reshape(-1, length)
    steps = np.arange(length) - (length - 1) / 2
    slopes = windows @ steps / (steps @ steps)
    residuals = windows - windows.mean(axis=1, keepdims=True) - slopes[:, None] * steps
    return float(np.sqrt(np.mean(residuals**2)))


def local_whittle(series: Series) -> float:
    """From the spectrum at low frequencies f, which grows towards 0 like ``f ** (1 - 2H)`` (Robinson 1995).

    Uses the lowest ``n ** 0.65`` frequencies, and the H of the largest likelihood.
    """
    n = len(series)
    count = int(n**0.65)
    power = np.abs(np.fft.rfft(series - series.mean())[1 : count + 1]) ** 2
    log_frequency = np.log(np.arange(1, count + 1) / n)

    def loss(h: Series) -> Series:
        whitened = power * np.exp((2 * h[:, None] - 1) * log_frequency)
        return np.log(whitened.mean(axis=1)) - (2 * h - 1) * log_frequency.mean()

    coarse = np.arange(0.0, 1.5, 0.02)
    best = coarse[loss(coarse).argmin()]
    fine = np.arange(best - 0.02, best + 0.02, 0.0005)
    return float(fine[loss(fine).argmin()])


def wavelet(series: Series) -> float:
    """From the energy of Haar wavelets at each octave j, which grows like ``2 ** (j * (2H - 1))``.

    Octaves weigh as much as they have coefficients (Abry and Veitch 1998); the two finest are left out,
    where short memory shows.
    """
    octaves, energies, weights = [], [], []
    smooth = series
    for octave in range(1, int(np.log2(len(series))) - 3):
        pairs = smooth[: len(smooth) // 2 * 2].reshape(-1, 2)
        details = (pairs[:, 0] - pairs[:, 1]) / np.sqrt(2)
        smooth = pairs.sum(axis=1) / np.sqrt(2)
        if octave > 2:
            octaves.append(octave)
            energies.append(np.log2(np.mean(details**2)) + 1 / (len(details) * np.log(2)))
            weights.append(len(details))
    return (_slope(np.array(octaves), np.array(energies), np.array(weights)) + 1) / 2


ESTIMATORS: Final[dict[str, Callable[[Series], float]]] = {
    "aggregated_variance": aggregated_variance,
    "detrended_fluctuation": detrended_fluctuation,
    "local_whittle": local_whittle,
    "wavelet": wavelet,
}


def _powers_of_two(first: int, last: int) -> NDArray[np.int64]:
    return 2 ** np.arange(int(np.log2(first)), int(np.log2(last)) + 1)


def _block_means(series: Series, length: int) -> Series:
    return series[: len(series) // length * length].reshape(-1, length).mean(axis=1)


def _slope(x: NDArray[np.float64], y: Series, weights: NDArray[np.float64] | None = None) -> float:
    root = None if weights is None else np.sqrt(weights)
    return float(np.polyfit(x, y, 1, w=root)[0])


#: Arrivals are counted in intervals of this many seconds.
INTERVAL: Final = 900.0
_FEWEST_WEEKS: Final = 4


def arrival_hurst(submit: Floats) -> Hurst | None:
    """The Hurst parameter of the number of arrivals in each quarter of an hour, without the weekly cycle.

    A cycle looks like memory to some estimators. So the mean of each quarter of an hour of the week is
    subtracted first, unless the log is shorter than four weeks, which do not show a cycle.
    """
    return hurst(_without_cycle(np.bincount(((submit - submit.min()) // INTERVAL).astype(np.int64))))


def _without_cycle(counts: NDArray[np.int64]) -> Series:
    period = int(WEEK / INTERVAL)
    if len(counts) < _FEWEST_WEEKS * period:
        return counts.astype(np.float64)
    place = np.arange(len(counts)) % period
    means = np.bincount(place, counts) / np.bincount(place)
    return counts - means[place]


LAGS: Final = (1, 10, 100)


class Persistence(Struct, frozen=True, kw_only=True):
    """How alike jobs are that follow each other, and how much the work of days varies."""

    run_times: dict[str, float | None]
    """The autocorrelation of the logarithms of run times, so many jobs apart."""
    daily_work: float
    """The coefficient of variation of the work that is submitted on each day."""


def persistence(log: SwfLog) -> Persistence:
    """Describe the persistence of a log whose jobs all ran."""
    logarithms = np.log(log.run_time)
    return Persistence(
        run_times={str(lag): autocorrelation(logarithms, lag) for lag in LAGS},
        daily_work=variation(daily_work(log.submit, log.run_time * requested(log))),
    )


def autocorrelation(values: Floats, lag: int) -> float | None:
    """The correlation of values with those so many places later, if there are any and they vary."""
    if len(values) <= lag or np.ptp(values) == 0:
        return None
    around = values - values.mean()
    return float(np.mean(around[lag:] * around[:-lag]) / np.mean(around**2))
