"""Run times as a mixture of Gaussians, with as many as Bayes' information criterion asks for (stage 1)."""

from __future__ import annotations

import warnings
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.models.base import Progress
from batsched_py.workload.swf.log import Floats, Integers

Scale = Literal["log", "linear"]

_MOST_CLUSTERS: Final = 16
_SAMPLE: Final = 20_000
_MOST_STEPS: Final = 200
_LEAST_VARIANCE: Final = 1e-3


class Mixture(Struct):
    """Clusters of run times; on the logarithmic scale all numbers are those of natural logarithms."""

    scale: Scale
    weights: list[float]
    means: list[float]
    deviations: list[float]
    least: float
    """The shortest run time, in seconds."""
    most: float

    def to_scale(self, run_times: Floats) -> Floats:
        """Run times as the clusters see them."""
        return np.log(run_times) if self.scale == "log" else run_times

    def from_scale(self, values: Floats, longest: Floats | None = None) -> Floats:
        """Whole seconds, not beyond the longest; values beyond are mirrored, as a cut would pile them up."""
        low = self.to_scale(np.array(self.least))
        high = self.to_scale(np.array(self.most) if longest is None else longest)
        below = np.where(values > high, 2 * high - values, values)
        inside = np.clip(np.where(below < low, 2 * low - below, below), low, high)
        seconds = np.exp(inside) if self.scale == "log" else inside
        return np.maximum(np.rint(seconds), 1.0)

    def likeliest(self, run_times: Floats) -> Integers:
        """The cluster that each run time most likely comes from."""
        return self._responsibilities(run_times).argmax(axis=1)

    def sampled(self, run_times: Floats, random: np.random.Generator) -> Integers:
        """A cluster for each run time, by the probabilities that it comes from each of them."""
        cumulated = np.cumsum(self._responsibilities(run_times), axis=1)
        chances = random.random((len(run_times), 1)) * cumulated[:, -1:]
        return np.minimum((cumulated <= chances).sum(axis=1), len(self.weights) - 1)

    def _responsibilities(self, run_times: Floats) -> Floats:
        """How likely each run time comes from each cluster, up to a common factor."""
        values = self.to_scale(run_times)[:, None]
        deviations = np.array(self.deviations)
        exponents = -(((values - np.array(self.means)) / deviations) ** 2) / 2
        logarithms = np.log(self.weights) - np.log(deviations) + exponents
        return np.exp(logarithms - logarithms.max(axis=1, keepdims=True))


def fit_mixture(run_times: Floats, scale: Scale, progress: Progress | None = None) -> Mixture:
    """The mixture of the least criterion among those of 1 to 16 clusters.

    More than 20,000 run times are represented by that many of their quantiles, which loses nothing that
    a mixture could show.
    """
    learner = _gaussian_mixture()
    whole = Mixture(scale, [], [], [], float(run_times.min()), float(run_times.max()))
    values = np.sort(whole.to_scale(run_times))
    if len(values) > _SAMPLE:
        values = np.quantile(values, (np.arange(_SAMPLE) + 0.5) / _SAMPLE)
    most = min(_MOST_CLUSTERS, len(np.unique(values)))
    least_variance = _LEAST_VARIANCE if scale == "log" else _LEAST_VARIANCE * float(values.var() or 1.0)
    best, least = None, np.inf
    for clusters in range(1, most + 1):
        fitted = learner(
            clusters,
            covariance_type="spherical",
            init_params="k-means++",
            random_state=0,
            max_iter=_MOST_STEPS,
            reg_covar=least_variance,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that more steps would change the last digits
            fitted.fit(values[:, None])
        criterion = fitted.bic(values[:, None])
        if criterion < least:
            best, least = fitted, criterion
        if progress is not None:
            progress(clusters, most)
    assert best is not None
    order = np.argsort(best.means_.ravel())
    whole.weights = best.weights_[order].tolist()
    whole.means = best.means_.ravel()[order].tolist()
    whole.deviations = np.sqrt(best.covariances_[order]).tolist()
    return whole


def _gaussian_mixture() -> Any:
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise InputError(
            "fitting a mixture needs scikit-learn; install it with: pip install 'batsched-py[models]'"
        ) from None
    return GaussianMixture
