"""A value over time, such as a price of energy, from a CSV file."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from math import isfinite

from msgspec import Struct

from batsched_py.errors import InputError


class StepFunction(Struct, frozen=True):
    """A value that holds from each time until the next one; the first one holds before, the last one after.

    >>> price = StepFunction([0.0, 3600.0], [30.0, 10.0])
    >>> price.at(1800.0), price.integral(3000.0, 4200.0)
    (30.0, 24000.0)
    """

    times: list[float]
    """Growing."""
    values: list[float]

    def at(self, time: float) -> float:
        """The value at a time."""
        return self.values[max(bisect_right(self.times, time) - 1, 0)]

    def integral(self, start: float, end: float) -> float:
        """The sum of the values between two times, each multiplied by how long it holds."""
        steps = [start, *self.between(start, end), end]
        return sum(self.at(first) * (second - first) for first, second in pairwise(steps))

    def between(self, start: float, end: float) -> list[float]:
        """When the value changes after one time and before another."""
        return [
            time
            for time in self.times[bisect_right(self.times, start) : bisect_right(self.times, end)]
            if time < end
        ]

    def cheapest(self, first: float, last: float, duration: float) -> float:
        """When to begin, between two times, so that the integral over a duration is least; the earliest.

        The integral is linear between the times at which a value changes at either end of the duration.
        """
        begins = {
            *self.between(first, last),
            *(time - duration for time in self.between(first + duration, last + duration)),
            last,
        }
        best, least = first, self.integral(first, first + duration)
        for begin in sorted(begins):
            cost = self.integral(begin, begin + duration)
            if cost < least - 1e-9 * max(abs(least), 1.0):
                best, least = begin, cost
        return best


def read_steps(path: str) -> StepFunction:
    """The values of a CSV file of times in seconds and values; a first line of names is left out."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(_rows(path, csv.reader(file)))
    except OSError as error:
        raise InputError(f"{path}: cannot read this file of values ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: {error}") from None
    if not rows:
        raise InputError(f"{path}: there is no value")
    return StepFunction([time for time, _ in rows], [value for _, value in rows])


def _rows(path: str, rows: Iterator[list[str]]) -> Iterator[tuple[float, float]]:
    last = None
    for number, row in enumerate(rows, 1):
        if not row:
            continue
        try:
            time, value = map(float, row)
            if not (isfinite(time) and isfinite(value)):
                raise ValueError
        except ValueError:
            if number == 1:
                continue
            raise InputError(
                f"{path}: line {number}: a time and a value are expected, like 3600,0.25"
            ) from None
        if last is not None and time <= last:
            raise InputError(f"{path}: line {number}: time {time:g} does not come after {last:g}")
        last = time
        yield time, value
