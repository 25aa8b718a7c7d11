"""A period of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.errors import InputError
from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.changes.moments import moment
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Period(Change):
    """Keep the jobs that are submitted in a period.

    A moment is a date on the wall clock of the log, like 2003-01-15 or 2003-01-15T08:00, or a span since the
    first submission, like 36h, 28d or 4w. Jobs that were waiting or running when the period began are not
    there any more, so the machine is empty at first.
    """

    name = "period"

    start: Annotated[str, Meta(description="The first moment of the period; the beginning by default.")] = ""
    end: Annotated[str, Meta(description="The first moment after the period; the end by default.")] = ""

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Times stay as they are, so that the header still says when they were."""
        inside = log.submit == log.submit
        if self.start:
            inside &= log.submit >= moment(self.start, log)
        if self.end:
            inside &= log.submit < moment(self.end, log)
        if not inside.any():
            raise InputError(f"{self}: no job of {log.path or 'the log'} is submitted in this period")
        changed = log.select(inside)
        return changed, kept(log, changed)
