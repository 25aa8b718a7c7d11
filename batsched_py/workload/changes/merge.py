"""Two logs in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes.base import Change
from batsched_py.workload.swf.log import COLUMNS, SwfLog, swf_log

_NAMES = ("user", "group", "executable", "queue", "partition")


@dataclass(frozen=True)
class Merge(Change):
    """Merge another log into this one, as if both machines were one.

    Both begin at the same moment: the first submission of the other log is moved to that of this one. Users,
    groups, executables, queues and partitions of the two stay apart: the numbers of the other log are moved
    beyond those of this one. Jobs get new numbers, and the machine is as large as both together.
    """

    name = "merge"

    file: Annotated[str, Meta(description="The other log, in any format that can be read.")]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Both logs."""
        from batsched_py.workload.sources import read_log

        other = read_log(self.file)
        columns = {
            name: np.concatenate([getattr(log, name), _moved(log, other, name)])
            for name in COLUMNS
            if name not in ("job_number", "preceding_job", "think_time")
        }
        header = dict(log.header)
        if log.machine_size and other.machine_size:
            header["MaxProcs"] = str(log.machine_size + other.machine_size)
        merged = swf_log(columns, header=header, path=log.path, left_out=log.left_out, guessed=log.guessed)
        return merged, f"{len(log)} and {len(other)} jobs"


def _moved(log: SwfLog, other: SwfLog, name: str) -> np.ndarray:
    """A column of the other log, with its times and numbers moved for this one."""
    column = getattr(other, name)
    if name == "submit":
        return column - column.min() + log.submit.min()
    if name in _NAMES:
        return np.where(column >= 0, column + max(int(getattr(log, name).max()), 0) + 1, column)
    return column
