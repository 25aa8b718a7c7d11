"""Some partitions of a log, or all but some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.changes.keeping import matching
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Partitions(Change):
    """Keep the jobs of some partitions, or leave them out."""

    name = "partitions"

    keep: Annotated[
        tuple[int, ...], Meta(description="Numbers of partitions, like 3,7; all by default.")
    ] = ()
    drop: Annotated[tuple[int, ...], Meta(description="Numbers of partitions to leave out.")] = ()

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs of those partitions."""
        changed = log.select(matching(log.partition, self.keep, self.drop, str(self)))
        return changed, kept(log, changed)
