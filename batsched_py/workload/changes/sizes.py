"""Jobs of some sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.errors import InputError
from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Sizes(Change):
    """Keep the jobs that ran on some numbers of processors."""

    name = "sizes"

    least: Annotated[int, Meta(ge=1, description="The smallest size.")] = 1
    most: Annotated[int | None, Meta(description="The largest size; any by default.")] = None

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The jobs of these sizes."""
        inside = (log.processors >= self.least) & (log.processors <= (self.most or np.inf))
        if not inside.any():
            raise InputError(f"{self}: no job is left")
        changed = log.select(inside)
        return changed, kept(log, changed)
