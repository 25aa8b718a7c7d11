"""Some queues of a log, or all but some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.changes.keeping import matching
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Queues(Change):
    """Keep the jobs of some queues, or leave them out."""

    name = "queues"

    keep: Annotated[tuple[int, ...], Meta(description="Numbers of queues, like 3,7; all by default.")] = ()
    drop: Annotated[tuple[int, ...], Meta(description="Numbers of queues to leave out.")] = ()

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs of those queues."""
        changed = log.select(matching(log.queue, self.keep, self.drop, str(self)))
        return changed, kept(log, changed)
