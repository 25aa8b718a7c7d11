"""The clock that both sides share: times are told in millionths of a second."""

from __future__ import annotations

#: Nothing can be asked for within less than this.
TICK = 1e-6


def to_tick(time: float) -> float:
    """The time that is told when it is ``time``: the nearest tick.

    >>> to_tick(12.3456789)
    12.345679
    """
    return time if time.is_integer() else round(time, 6)
