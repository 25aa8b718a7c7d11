"""Times of a log on the wall clock of its machine's place, which daily and weekly cycles follow."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.swf.log import Floats, SwfLog

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

#: The first Monday of Unix time, 1970-01-05, in seconds.
_FIRST_MONDAY: Final = 4 * DAY
_STEP: Final = 900.0


def start_of(log: SwfLog) -> int | None:
    """The Unix time that the times of a log count from, as far as its header says."""
    words = log.header.get("UnixStartTime", "").split()
    return int(words[0]) if words and re.fullmatch("[0-9]{1,12}", words[0]) else None


def zone_of(log: SwfLog) -> tzinfo:
    """The time zone of the log: the named one, else that of the recorded difference, else UTC."""
    try:
        return ZoneInfo(log.header["TimeZoneString"].strip())
    except (KeyError, ValueError, OSError):
        offset = log.header.get("TimeZone", "").strip()
        seconds = int(offset) if re.fullmatch("-?[0-9]{1,5}", offset) else 0
        return timezone(timedelta(seconds=seconds)) if 0 < abs(seconds) < DAY else UTC


def wall_clock(log: SwfLog, times: Floats) -> Floats:
    """Seconds on the wall clock, summer time included, since the Monday 0:00 on or before the log's start.

    ``times`` count from the start of the log. Where the header does not say when that was, the log is taken
    to begin on a Monday at midnight.
    """
    start = start_of(log)
    if start is None:
        return times
    local = on_clock(start + times, zone_of(log))
    first = on_clock(np.array([float(start)]), zone_of(log))[0]
    return local - (first - (first - _FIRST_MONDAY) % WEEK)


def local_time(log: SwfLog, times: Floats) -> NDArray[np.datetime64]:
    """Dates and times of day on the wall clock; 1970 where the header does not say when the log began."""
    return on_clock((start_of(log) or 0) + times, zone_of(log)).astype("datetime64[s]")


def on_clock(moments: Floats, zone: tzinfo) -> Floats:
    """Moments of Unix time as the clock of a zone shows them; offsets are looked up for each quarter hour."""
    steps, step_of = np.unique(np.floor(moments / _STEP), return_inverse=True)
    offsets = [_offset(step * _STEP, zone) for step in steps.tolist()]
    return moments + np.array(offsets)[step_of]


@lru_cache(maxsize=1 << 16)
def _offset(moment: float, zone: tzinfo) -> float:
    offset = datetime.fromtimestamp(moment, zone).utcoffset()
    assert offset is not None
    return offset.total_seconds()
