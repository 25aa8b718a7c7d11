"""Moments as Slurm reads them: dates and times, and times from now on."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from batsched_py.protocol.shown import shown

_UNITS = {
    "": 1, "second": 1, "seconds": 1, "minute": 60, "minutes": 60, "hour": 3600, "hours": 3600,
    "day": 86400, "days": 86400, "week": 604800, "weeks": 604800,
}  # fmt: skip
_FROM_NOW = re.compile(r"now(?:\+([0-9]{1,9})\s*([a-z]*))?", re.IGNORECASE)


class Clock(Struct, frozen=True):
    """When a simulation begins, for those who write dates."""

    start: float | None = None
    """In Unix time; unknown if the workload has no dates."""
    zone: str = "UTC"
    """That of dates that name none."""

    def moment(self, text: str, now: float = 0.0) -> float:
        """Seconds since the beginning, where the text was read at ``now``; raises ``ValueError``.

        >>> Clock().moment("now+30minutes"), Clock(0.0).moment("1970-01-01T01:00:00")
        (1800.0, 3600.0)
        """
        if match := _FROM_NOW.fullmatch(text.strip()):
            unit = (match[2] or "").lower()
            if unit not in _UNITS:
                raise ValueError(f"{shown(text)}: there is no unit of time {shown(unit)}")
            return now + int(match[1] or 0) * _UNITS[unit]
        try:
            date = datetime.fromisoformat(text.strip())
        except ValueError:
            raise ValueError(
                f"{shown(text)} is not a moment like 2026-05-01T08:00:00 or now+30minutes"
            ) from None
        if self.start is None:
            raise ValueError(f"{shown(text)} is a date, and nothing says on which date the workload begins")
        if date.tzinfo is None:
            date = date.replace(tzinfo=ZoneInfo(self.zone))
        return date.timestamp() - self.start

    def written(self) -> str:
        """The beginning as a date in UTC; empty if it is not known."""
        if self.start is None:
            return ""
        return datetime.fromtimestamp(self.start, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
