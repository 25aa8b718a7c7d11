"""A change of logs of your own: users ask for rounder times.

batsched-py change LOG.swf rounder.swf examples/own_change.py:RoundUp minutes=30
"""

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes import Change
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class RoundUp(Change):
    """Round the times that users ask for up to whole steps."""

    name = "round-up"

    minutes: Annotated[int, Meta(description="The length of a step.", ge=1)] = 60

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """Times that are unknown stay so."""
        step = 60 * self.minutes
        asked = log.requested_time
        rounded = np.where(asked > 0, -(-asked // step) * step, asked)
        count = int((rounded != asked).sum())
        return replace(log, requested_time=rounded), f"{count} requested times became longer"
