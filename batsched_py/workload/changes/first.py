"""The beginning of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes.base import Change, kept
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class First(Change):
    """Keep the first jobs."""

    name = "first"

    jobs: Annotated[int, Meta(gt=0, description="How many.")]

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Jobs are in the order of their submissions."""
        changed = log.select(np.arange(min(self.jobs, len(log))))
        return changed, kept(log, changed)
