"""Curves and strips made of characters."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


class History:
    """A figure over simulated time; when there are many samples, every other one is forgotten."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._times: list[float] = []
        self._values: list[float] = []

    def add(self, time: float, value: float) -> None:
        """The figure is this from a time on."""
        if self._times and self._times[-1] == time:
            self._values[-1] = value
            return
        if len(self._times) >= self._most:
            del self._times[1::2], self._values[1::2]
        self._times.append(time)
        self._values.append(value)

    def columns(self, count: int) -> list[float]:
        """The figure at so many times, at even distances from the first sample to the last."""
        if not self._times:
            return []
        first, last = self._times[0], self._times[-1]
        step = (last - first) / max(1, count - 1)
        times = (first + place * step for place in range(count))
        return [self._values[max(0, bisect_right(self._times, time) - 1)] for time in times]


def curve(values: Sequence[float], height: int, top: float) -> list[str]:
    """The values as columns up to a height of so many lines, which stands for ``top``.

    >>> curve([0, 1, 2, 3, 4], 2, 4)
    ['   ▄█', ' ▄███']
    """
    eighths = [round(min(1.0, value / top if top else 0.0) * 8 * height) for value in values]
    return [
        "".join(_EIGHTHS[max(0, min(8, each - 8 * line))] for each in eighths)
        for line in range(height - 1, -1, -1)
    ]
