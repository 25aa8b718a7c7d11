"""How moments and spans of time are written: ``2003-01-15``, ``2003-01-15T08:00``, ``12h``, ``4w``."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from batsched_py.errors import InputError
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.wall_clock import DAY, HOUR, WEEK, start_of, zone_of

_UNITS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": HOUR, "d": DAY, "w": WEEK}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)")


def span(text: str) -> float:
    """A number of seconds, written with its unit.

    >>> span("90min"), span("4w")
    (5400.0, 2419200.0)
    """
    length = _seconds(text)
    if not length:
        raise InputError(
            f"{text!r} is no span of time; write a number above 0 with s, min, h, d or w, like 28d"
        )
    return length


def _seconds(text: str) -> float | None:
    """A number of seconds, which may be 0; none if the text is no span."""
    parts = _SPAN.fullmatch(text)
    return None if parts is None else float(parts[1]) * _UNITS[parts[2]]


def moment(text: str, log: SwfLog) -> float:
    """A moment in the time of a log: a date on its wall clock, or a span since its first submission."""
    if (length := _seconds(text)) is not None:
        return float(log.submit.min()) + length
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"{text!r} is no moment; write a date like 2003-01-15 or 2003-01-15T08:00, or a span since the "
            "first submission like 30d"
        ) from None
    start = start_of(log)
    if start is None:
        raise InputError(f"{log.path or 'the log'} does not say when it began; write a span like 30d")
    return (date if date.tzinfo else date.replace(tzinfo=zone_of(log))).timestamp() - start
