"""What date it is at the place of a log's machine: a header says when a log began, and in which zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from msgspec import Struct

DAY_SECONDS = 86400


class Calendar(Struct, frozen=True):
    """The dates of the times of a simulation."""

    start: float
    """The Unix time of time 0, which is the first submission of the log."""
    zone: tzinfo
    """Where the machine of the log stood."""

    @classmethod
    def of(cls, header: Mapping[str, str], first: float) -> Calendar | None:
        """Of a log whose first submission is so many seconds after its start; None if that is unknown."""
        start = start_in(header)
        return None if start is None else cls(start + first, zone_in(header))

    def date(self, time: float) -> datetime:
        """The date and the time of day, summer time included, at a time of the simulation.

        >>> moment = Calendar(1704099600, ZoneInfo("Europe/Paris")).date(3600)
        >>> moment.isoformat(), moment.weekday()
        ('2024-01-01T11:00:00+01:00', 0)
        """
        return datetime.fromtimestamp(self.start + time, self.zone)


def start_in(header: Mapping[str, str]) -> int | None:
    """The Unix time that the times of a log count from, as far as its header says."""
    words = header.get("UnixStartTime", "").split()
    return int(words[0]) if words and re.fullmatch("[0-9]{1,12}", words[0]) else None


def zone_in(header: Mapping[str, str]) -> tzinfo:
    """The time zone of a log: the named one, else that of the recorded difference, else UTC."""
    try:
        return ZoneInfo(header["TimeZoneString"].strip())
    except (KeyError, ValueError, OSError):
        offset = header.get("TimeZone", "").strip()
        seconds = int(offset) if re.fullmatch("-?[0-9]{1,5}", offset) else 0
        return timezone(timedelta(seconds=seconds)) if 0 < abs(seconds) < DAY_SECONDS else UTC
