"""Small random changes, which tell what is due to the workload and what to chance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

from batsched_py.workload.changes.base import Change
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Shake(Change):
    """Change arrivals and run times a little at random (Tsafrir, Ouaknine and Feitelson 2007).

    A result that differs much between shaken logs is an accident of the log. Each change is uniform between
    its bounds. A job that ran within its requested time still does.
    """

    name = "shake"

    seed: Annotated[int, Meta(ge=0, description="Another seed is another shake.")]
    arrivals: Annotated[float, Meta(ge=0, description="Seconds that a job may come earlier or later.")] = 60.0
    run_times: Annotated[float, Meta(ge=0, lt=1, description="Part that a run time may lose or gain.")] = 0.01

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        """The shaken log, again in the order of submissions."""
        random = np.random.default_rng(self.seed)
        first = log.submit.min()
        submit = log.submit + random.uniform(-self.arrivals, self.arrivals, len(log))
        factors = random.uniform(1 - self.run_times, 1 + self.run_times, len(log))
        within = (log.requested_time > 0) & (log.run_time <= log.requested_time)
        shaken = np.maximum(np.rint(log.run_time * factors), np.minimum(log.run_time, 1))
        run_time = np.where(within, np.minimum(shaken, log.requested_time), shaken)
        changed = replace(log, submit=np.maximum(np.rint(submit), first), run_time=run_time)
        order = np.argsort(changed.submit, kind="stable")
        return changed.select(order), "the order of jobs may have changed"
