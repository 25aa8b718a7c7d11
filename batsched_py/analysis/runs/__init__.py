"""Statistics over repetitions: means with intervals, tests of pairs, and what makes many tests honest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import atan, comb, cos, exp, inf, isfinite, log, nan, pi, sin, sqrt, tan
from statistics import fmean, stdev
from typing import NamedTuple

from msgspec import Struct

#: Probability that an interval covers the true mean.
CONFIDENCE = 0.95

#: A difference is called one if it would be this unlikely without any.
SIGNIFICANT = 0.05

#: Fewer independent values than this get neither an interval nor a test.
FEWEST = 3

#: No value is taken to keep more than this of the one before.
MOST_KEPT = 0.95


class Range(NamedTuple):
    """The values that a metric can have."""

    least: float = -inf
    most: float = inf


class Estimate(Struct, frozen=True):
    """A mean over independent values, with the ends of its confidence interval if there are enough."""

    mean: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Sequence[float], possible: Range = Range(), kept: float = 0.0) -> Estimate:  # noqa: B008
        """The mean of values with its confidence interval, by Student's t-distribution.

        Successive values that keep so much of the one before count as fewer ones (:func:`counted`). Where a
        metric has a least or a largest possible value, the interval is that of the logarithm of the
        distance from it, or of the logit between both: so it stays inside, and has the width of Student's
        interval where that is short.

        >>> Estimate.of([1.0, 2.0, 9.0], Range(0.0)).low > 0
        True
        """
        mean = fmean(values) if values else nan
        if len(values) < FEWEST or mean != mean:
            return cls(mean)
        number = counted(len(values), kept)
        quantile = t_quantile((1 + CONFIDENCE) / 2, _freedom(number))
        return cls(mean, *_ends(mean, quantile * stdev(values) / sqrt(number), possible))

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def is_symmetric(self) -> bool:
        """Whether the mean is in the middle of its interval."""
        if self.low is None or self.high is None:
            return True
        return abs(self.high + self.low - 2 * self.mean) <= 1e-9 * max(abs(self.high), abs(self.low))


def _ends(mean: float, half: float, possible: Range) -> tuple[float, float]:
    """The ends of an interval around a mean whose half would be this wide if all values were possible."""
    least, most = possible
    above, below = mean - least, most - mean
    if not half or above <= 0 or below <= 0 or not (isfinite(above) or isfinite(below)):
        return mean - half, mean + half
    if isfinite(above) and isfinite(below):
        middle, wide = log(above / below), half * (1 / above + 1 / below)
        return tuple(least + (most - least) / (1 + exp(-(middle + side * wide))) for side in (-1, 1))  # type: ignore[return-value]
    if isfinite(above):
        return least + above * exp(-half / above), least + above * exp(half / above)
    return most - below * exp(half / below), most - below * exp(-half / below)


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
    """Two things measured under the same conditions, over several independent units."""

    difference: Estimate
    """The first minus the second."""
    p_value: float
    """How likely such a mean difference is, in either direction, without any: Student's t-test of pairs."""
    sign_p_value: float
    """The same of how many differences have the same sign: the sign test, which assumes no distribution."""
    nb_units: int
    effect_size: float | None = None
    """Cohen's d of pairs: the mean of the differences over their standard deviation, unless that is 0."""
    counted: float = 0.0
    """As how many independent units the t-test counts them."""

    @classmethod
    def of(cls, differences: Sequence[float], kept: float = 0.0) -> Paired:
        """The tests of differences, one for each unit; there must be enough of them.

        Units that keep so much of the one before count as fewer in the t-test, but not in the sign test.
        Where all are the same, they have no spread to compare them with, and the sign test stands for both.

        >>> Paired.of([2, 3, 1, 2]).p_value < 0.05 < Paired.of([2, 3, 1, -2]).p_value
        True
        """
        estimate, spread = Estimate.of(differences, kept=kept), stdev(differences)
        by_sign, units = sign_test(differences), len(differences)
        number = counted(units, kept)
        if not spread:
            return cls(estimate, by_sign, by_sign, units, counted=number)
        t = abs(estimate.mean) / (spread / sqrt(number))
        p_value = 2 * (1 - t_distribution(t, _freedom(number)))
        return cls(estimate, p_value, by_sign, units, estimate.mean / spread, number)


def counted(number: int, kept: float) -> float:
    """As how many independent values count successive ones, each of which keeps a part of the one before.

    The variance of their mean is that of so many independent ones, but for the ends of the series.

    >>> counted(9, 0.0), counted(9, 0.5)
    (9.0, 3.0)
    """
    return max(1.0, number * (1 - kept) / (1 + kept))


def _freedom(number: float) -> int:
    """The whole degrees of freedom of so many independent values; rounded down, and one at least."""
    return max(1, int(number + 1e-9) - 1)


def sign_test(differences: Sequence[float]) -> float:
    """How likely it is, if both signs are, that so many of the differences have the same; zeros are left out.

    >>> sign_test([1, 2, 3, 4, 5, 0]), sign_test([1, -1])
    (0.0625, 1.0)
    """
    positive, negative = sum(each > 0 for each in differences), sum(each < 0 for each in differences)
    number, fewer = positive + negative, min(positive, negative)
    return min(1.0, 2 * sum(comb(number, count) for count in range(fewer + 1)) / 2**number)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values of several tests, raised so that all of them together are wrong as rarely as one (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    raised, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        raised[place] = least
    return raised


def lag_1(values: Sequence[float]) -> float | None:
    """The autocorrelation of successive values; none of fewer than four, or of equal ones.

    >>> lag_1([1, 2, 3, 4])
    0.25
    """
    mean = fmean(values) if values else nan
    spread = sum((value - mean) ** 2 for value in values)
    if len(values) < 4 or not spread > 0:
        return None
    return sum((one - mean) * (two - mean) for one, two in pairwise(values)) / spread


def dependence(series: Sequence[Sequence[float]]) -> float | None:
    """How much successive values depend on each other, as several series of the same steps show it.

    It is the mean over the series of their lag-1 autocorrelations, without the bias of short series: among n
    values that do not depend on each other it is -1/n, and less than it should be where they do (Marriott
    and Pope 1954). One series of nine tells hardly anything; those of several rows and metrics tell more.

    >>> round(dependence([[1, 2, 3, 4, 5]]), 2), dependence([[1, 1, 1, 1]])
    (0.92, None)
    """
    found = [(lag, len(values)) for values in series if (lag := lag_1(values)) is not None]
    return min(1.0, fmean(lag + (1 + 4 * lag) / count for lag, count in found)) if found else None


def kept_of(series: Sequence[Sequence[float]]) -> float:
    """How much each value keeps of the one before, for intervals and tests; 0 where that is not seen.

    It is what all series show, and half of its standard error more: with what is seen alone, tests of few
    series of nine values find 8 % where there is nothing, and with this 5 % (``benchmarks.conclusions``).

    >>> kept_of([[1, -1, 1, -1, 1]]), round(kept_of([[1, 2, 3, 4, 5]] * 4), 2)
    (0.0, 0.95)
    """
    found = dependence(series)
    if found is None:
        return 0.0
    error = 1 / sqrt(sum(len(values) for values in series if lag_1(values) is not None))
    return min(MOST_KEPT, max(0.0, found + error / 2))
