"""How many hosts will be free from now on, according to a plan."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf

from batsched_py.analysis.violation import SLACK


class Forecast:
    """A step function of time: the number of free hosts.

    It may be negative for a moment, because its times come from a file that rounds them.
    """

    def __init__(self, hosts: int) -> None:
        self._times = [-inf]
        self._free = [hosts]

    def forget(self, now: float) -> None:
        """Drop everything before ``now``."""
        past = bisect_right(self._times, now) - 1
        del self._times[:past], self._free[:past]

    def take(self, start: float, end: float, count: int) -> None:
        """Make ``count`` fewer hosts free from ``start`` until ``end``."""
        if not self._times[0] < end or not start < end:
            return
        first = self._step(max(start, self._times[0]))
        last = self._step(end) if end < inf else len(self._times)
        for step in range(first, last):
            self._free[step] -= count
        for step in (last, first):
            if 0 < step < len(self._times) and self._free[step] == self._free[step - 1]:
                del self._times[step], self._free[step]

    def _step(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, self._free[step - 1])
        return step

    def earliest(self, now: float, count: int, duration: float) -> float:
        """The earliest time from which ``count`` hosts are free for so long, infinite if there is none.

        A step that is shorter than the printing error is ignored.
        """
        times, free = self._times, self._free
        start = now
        for step in range(bisect_right(times, now), len(times) + 1):
            step_end = times[step] if step < len(times) else inf
            if free[step - 1] < count and step_end - max(start, times[step - 1]) > SLACK:
                start = step_end
            elif step_end >= start + duration - SLACK:
                break
        return start
