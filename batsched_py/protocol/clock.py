"""The clock of both sides: times in messages are multiples of a microsecond, the *tick*."""

from __future__ import annotations

#: A call cannot be requested for sooner than this.
TICK = 1e-6


def to_tick(time: float) -> float:
    """A time as messages contain it: rounded to the nearest tick.

    >>> to_tick(12.3456789)
    12.345679
    """
    return time if time.is_integer() else round(time, 6)
