"""Numbers that change over time and are known beforehand: a price, a carbon intensity, a power cap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from math import floor, inf, nextafter
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.outside.closures import Closure


class Curve:
    """A step function: each value holds from its time to the next one's, the first one also before.

    With a period it begins again whenever that is over.

    >>> tariff = Curve([0, 7 * 3600, 22 * 3600], [0.15, 0.30, 0.15], period=86400)
    >>> tariff.at(8 * 3600), tariff.at(86400 + 3600)
    (0.3, 0.15)
    >>> tariff.next_change(86400 + 3600) / 3600
    31.0
    >>> list(tariff.steps(6 * 3600, 8 * 3600))
    [(21600, 25200, 0.15), (25200, 28800, 0.3)]
    >>> tariff.integral(6 * 3600, 8 * 3600), tariff.least(6 * 3600, 8 * 3600)
    (1620.0, 0.15)
    """

    def __init__(self, times: Sequence[float], values: Sequence[float], period: float = inf) -> None:
        if not times or list(times) != sorted(set(times)):
            raise ValueError("the times of a curve must rise")
        if not times[-1] < period:
            raise ValueError(f"the time {times[-1]:g} is not within the period of {period:g} s")
        self._times = list(times)
        self._values = list(values)
        self.period = period

    def at(self, time: float) -> float:
        """The value at a time."""
        if self.period < inf:
            time -= floor(time / self.period) * self.period
        return self._values[max(bisect_right(self._times, time) - 1, 0)]

    def level(self, time: float) -> float:
        """Where the value at a time lies between the least of all, which is 0, and the greatest, which is 1.

        >>> Curve([0, 10, 20], [1.0, 3.0, 2.0]).level(25)
        0.5
        """
        least, greatest = min(self._values), max(self._values)
        return (self.at(time) - least) / (greatest - least) if greatest > least else 0.0

    def next_change(self, time: float) -> float:
        """When the next step comes after a time; infinite if there is none.

        Where a sum of times is rounded down to the time itself, it comes right after it.
        """
        begin = floor(time / self.period) * self.period if self.period < inf else 0.0
        place = bisect_right(self._times, time - begin)
        if place < len(self._times):
            change = begin + self._times[place]
        else:
            change = begin + self.period + self._times[0] if self.period < inf else inf
        return max(change, nextafter(time, inf))

    def steps(self, start: float, end: float) -> Iterator[tuple[float, float, float]]:
        """From when to when which value holds, between two times."""
        while start < end:
            until = min(self.next_change(start), end)
            yield start, until, self.at(start)
            start = until

    def integral(self, start: float, end: float) -> float:
        """The sum of the values between two times, each multiplied by how long it holds."""
        return sum(value * (until - since) for since, until, value in self.steps(start, end))

    def least(self, start: float, end: float) -> float:
        """The least value between two times, of which the second may be infinite."""
        if end - start >= self.period or len(self._values) == 1:
            return min(self._values)
        return min((value for _, _, value in self.steps(start, end)), default=self.at(start))

    def changes(self, start: float, end: float) -> Iterator[float]:
        """When the value changes after one time and before another."""
        while (start := self.next_change(start)) < end:
            yield start

    def settled(self, time: float) -> float:
        """When all has been seen of the values that come after a time: from then on they repeat, or stay."""
        return time + self.period if self.period < inf else max(time, self._times[-1])

    def at_most(self, value: float) -> Curve:
        """The same, but nowhere more than a value."""
        return Curve(self._times, [min(value, own) for own in self._values], self.period)

    def cheapest(self, first: float, last: float, duration: float) -> float:
        """When to begin, between two times, so that the integral over a duration is least; the earliest.

        The integral is linear between the times at which a value changes at either end of the duration.
        """
        begins = {
            *self.changes(first, last),
            *(time - duration for time in self.changes(first + duration, last + duration)),
            last,
        }
        best, least = first, self.integral(first, first + duration)
        for begin in sorted(begins):
            cost = self.integral(begin, begin + duration)
            if cost < least - 1e-9 * max(abs(least), 1.0):
                best, least = begin, cost
        return best


def read_curve(path: str, period: float | None = None) -> Curve:
    """The curve in a CSV file with the columns ``time`` and ``value``."""
    from batsched_py.outside.tables import finite, read_table, seconds

    rows = read_table(path, ("time", "value"), lambda row: (seconds(row, "time"), finite(row, "value")))
    times, values = [time for time, _ in rows], [value for _, value in rows]
    try:
        return Curve(times, values, inf if period is None else period)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


class Known(Struct, frozen=True):
    """``cluster.outside``: what was not given is None, or empty."""

    price: Curve | None = None
    """Of energy, per kWh."""
    carbon: Curve | None = None
    """The carbon intensity of energy, in grams per kWh."""
    temperature: Curve | None = None
    """Outside, in degrees Celsius."""
    power_cap: Curve | None = None
    """The most power that the machine may draw, in watts."""
    closures: Sequence[Closure] = ()
    """Maintenance windows and advance reservations; ``cluster.fits`` knows them already."""
    data: Mapping[str, float] = {}
    """What classes of others compute over time, by their names: the values of now."""


#: The fields that are curves.
CURVES = ("price", "carbon", "temperature", "power_cap")

NOTHING_KNOWN = Known()
