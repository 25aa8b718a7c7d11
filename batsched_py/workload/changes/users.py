"""Some users of a log, or all but some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.changes.keeping import matching
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Users(Change):
    """Keep the jobs of some users, or leave them out."""

    name = "users"

    keep: Annotated[tuple[int, ...], Meta(description="Numbers of users, like 3,7; all by default.")] = ()
    drop: Annotated[tuple[int, ...], Meta(description="Numbers of users to leave out.")] = ()

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs of those users."""
        changed = log.select(matching(log.user, self.keep, self.drop, str(self)))
        return changed, kept(log, changed)
