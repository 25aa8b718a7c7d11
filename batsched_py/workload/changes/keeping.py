"""Choosing jobs by the number of their user, queue and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.swf.log import Integers, SwfLog


def matching(numbers: Integers, keep: Sequence[int], drop: Sequence[int], change: str) -> NDArray[np.bool_]:
    """Which jobs have one of the numbers to keep, if any are given, and none of those to drop."""
    for number in (*keep, *drop):
        if number not in numbers:
            raise InputError(f"{change}: no job of the log has the number {number}")
    chosen = np.isin(numbers, keep) if keep else np.ones(len(numbers), dtype=bool)
    chosen &= ~np.isin(numbers, drop)
    if not chosen.any():
        raise InputError(f"{change}: no job is left")
    return chosen


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
