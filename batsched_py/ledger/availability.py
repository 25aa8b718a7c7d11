"""How many hosts will be free, and when."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf
from typing import Any

from batsched_py.ledger import kinds
from batsched_py.ledger.kinds import number


class AvailabilityProfile:
    """The number of free hosts as a step function of time, from now on.

    >>> profile = AvailabilityProfile(now=0, free=4)
    >>> profile.take(10, 20, 3)
    >>> profile.earliest(size=2, duration=10)
    0.0
    >>> profile.earliest(size=2, duration=11)
    20.0
    >>> profile
    AvailabilityProfile(0.0: 4, 10.0: 1, 20.0: 4)
    """

    __slots__ = ("_free", "_times")

    def __init__(self, now: float, free: int) -> None:
        self._times = [number(now)]
        self._free = [kinds.count(free)]

    @classmethod
    def _of_steps(cls, times: list[float], free: list[int]) -> AvailabilityProfile:
        """A profile that has these steps."""
        profile = cls(0.0, 0)
        profile._times, profile._free = times, free
        return profile

    def __reduce__(self) -> tuple[Any, ...]:
        return AvailabilityProfile._of_steps, (list(self._times), list(self._free))

    def __repr__(self) -> str:
        steps = zip(self._times, self._free, strict=True)
        return f"AvailabilityProfile({', '.join(f'{time}: {free}' for time, free in steps)})"

    def free_at(self, time: float) -> int:
        """How many hosts are free at a time."""
        return self._free[max(bisect_right(self._times, number(time)) - 1, 0)]

    def earliest(self, size: int, duration: float) -> float:
        """The earliest time from which so many hosts are free for so long; infinite if there is none."""
        return self._earlier(kinds.count(size), number(duration), inf, inf)

    def earlier(self, size: int, duration: float, reserved: float, before: float) -> float:
        """The earliest time to which a reservation can move, if there is one ``before`` some time.

        Otherwise it stays where it is. Its own hosts are among those that it can have when it moves.
        """
        return self._earlier(kinds.count(size), number(duration), number(reserved), number(before))

    def _earlier(self, size: int, duration: float, reserved: float, before: float) -> float:
        times, free = self._times, self._free
        start, last = times[0], len(times) - 1
        for step, count in enumerate(free):
            end = times[step + 1] if step < last else inf
            if count < size:
                start = end
                if start >= before or start >= reserved:
                    break
            elif end >= start + duration or end >= reserved:
                return start
        return reserved

    def take(self, start: float, end: float, count: int) -> None:
        """Let ``count`` hosts fewer be free from ``start`` until ``end``."""
        self._change(number(start), number(end), -kinds.count(count))

    def _change(self, start: float, end: float, more: int) -> None:
        """Let so many hosts more be free from ``start`` until ``end``."""
        start = max(start, self._times[0])
        if not start < end:
            return
        first = self._step(start)
        last = self._step(end) if end < inf else len(self._times)
        free = self._free
        for step in range(first, last):
            free[step] += more
        for step in (last, first):
            if 0 < step < len(free) and free[step] == free[step - 1]:
                del self._times[step], free[step]

    def give(self, start: float, end: float, count: int) -> None:
        """Let ``count`` hosts more be free from ``start`` until ``end``."""
        self._change(number(start), number(end), kinds.count(count))

    def advance(self, now: float) -> None:
        """Forget what was before ``now``."""
        now = number(now)
        past = max(bisect_right(self._times, now) - 1, 0)
        del self._times[:past], self._free[:past]
        self._times[0] = now

    def _most_before(self, time: float) -> int:
        """The most hosts that are free at any moment before a time."""
        return max(self._free[: max(bisect_left(self._times, time), 1)])

    def _step(self, time: float) -> int:
        """The step that begins at ``time``, made if there is none."""
        step = bisect_left(self._times, time)
        if step == len(self._times) or self._times[step] != time:
            self._times.insert(step, time)
            self._free.insert(step, self._free[step - 1])
        return step
