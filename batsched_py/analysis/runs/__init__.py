"""Tables over many runs: means over repetitions, differences to a baseline, comparisons in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from math import atan, cos, inf, nan, pi, sin, sqrt, tan
from statistics import fmean, stdev

from msgspec import Struct

#: Probability that an interval covers the true mean.
CONFIDENCE = 0.95


class Estimate(Struct, frozen=True):
    """A mean over repetitions."""

    mean: float
    half_width: float | None = None
    """Half the width of the confidence interval around the mean; none if there was only one repetition."""

    @classmethod
    def of(cls, values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
        """The mean of independent values with its confidence interval, by Student's t-distribution."""
        mean = fmean(values) if values else nan
        if len(values) < 2 or mean != mean:
            return cls(mean)
        return cls(
            mean, t_quantile((1 + confidence) / 2, len(values) - 1) * stdev(values) / sqrt(len(values))
        )


def t_distribution(t: float, freedom: int) -> float:
    """P(T <= t) for Student's distribution with whole degrees of freedom.

    With ``theta = atan(t / sqrt(freedom))``, P(|T| <= t) is a finite sum of powers of ``cos theta``
    (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), so this is exact.

    >>> round(t_distribution(12.706, 1), 4), round(t_distribution(2.228, 10), 4)
    (0.975, 0.975)
    """
    theta = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(theta) if odd else 1.0
    total = 0.0
    for k in range(odd, freedom - 1, 2):
        total += term
        term *= cos(theta) ** 2 * (k + 1) / (k + 2)
    within = 2 / pi * (theta + sin(theta) * total) if odd else sin(theta) * total
    return 0.5 + within / 2


def t_quantile(probability: float, freedom: int) -> float:
    """The t with P(T <= t) = ``probability``, for a probability above one half.

    >>> round(t_quantile(0.975, 4), 3)
    2.776
    """
    low, high = 0.0, pi / 2
    while low < (middle := (low + high) / 2) < high:
        if t_distribution(tan(middle) * sqrt(freedom), freedom) < probability:
            low = middle
        else:
            high = middle
    return tan(high) * sqrt(freedom) if high < pi / 2 else inf


class Paired(Struct, frozen=True):
    """Two things measured under the same conditions, several times."""

    difference: Estimate
    """The first minus the second."""
    confidence: float
    """The probability that the true mean difference has this sign, by Student's t-test for pairs."""
    nb_pairs: int
    effect_size: float | None = None
    """Cohen's d of pairs: the mean of the differences over their standard deviation, unless that is 0."""

    @property
    def p_value(self) -> float:
        """How likely such a difference would be, in either direction, if there were none in truth."""
        return 2 * (1 - self.confidence)

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> Paired:
        """Compare values pair by pair; there must be two pairs or more.

        >>> Paired.of([3, 5, 4], [1, 2, 3]).confidence > 0.95
        True
        """
        differences = [one - two for one, two in zip(first, second, strict=True)]
        estimate, spread = Estimate.of(differences), stdev(differences)
        if spread:
            t = abs(estimate.mean) / (spread / sqrt(len(differences)))
            confidence = t_distribution(t, len(differences) - 1)
        else:
            confidence = 1.0 if estimate.mean else 0.5
        return cls(estimate, confidence, len(differences), estimate.mean / spread if spread else None)
