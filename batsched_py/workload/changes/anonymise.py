"""A log without the identities of its users and programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes.base import Change
from batsched_py.workload.swf.log import Integers, SwfLog

_NAMED: Final = ("user", "group", "executable", "queue", "partition")
#: Parts of the header that may name people, machines or programs.
_TELLING: Final = ("User", "Group", "Executable", "Queue", "Partition")


@dataclass(frozen=True)
class Anonymise(Change):
    """Give users, groups, executables, queues and partitions new numbers, and forget their names.

    New numbers are a random order of 1, 2, 3, ...; who has the seed and the log can undo it, so keep the seed
    to yourself: the log's history does not tell it.
    """

    name = "anonymise"

    seed: Annotated[int, Meta(ge=0, description="The same seed gives the same numbers.")]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The log without names."""
        random = np.random.default_rng(self.seed)
        columns: dict[str, Any] = {name: _renumbered(getattr(log, name), random) for name in _NAMED}
        header = {key: value for key, value in log.header.items() if key not in _TELLING}
        more = {name: column for name, column in log.more.items() if column.dtype.kind in "iuf"}
        return replace(log, **columns, header=header, more=more, path=""), "names and hosts are forgotten"

    def __str__(self) -> str:
        """Without the seed."""
        return self.name


def _renumbered(numbers: Integers, random: np.random.Generator) -> Integers:
    """Known numbers become 1, 2, 3, ... in a random order; unknown ones stay."""
    distinct, codes = np.unique(numbers, return_inverse=True)
    known = distinct >= 0
    new = distinct.copy()
    new[known] = random.permutation(np.arange(1, known.sum() + 1))
    return new[codes]
