"""Which jobs a log is characterised by."""

from __future__ import annotations

import numpy as np

from batsched_py.workload.swf.log import Integers, SwfLog

COMPLETED = 1


def characterised(log: SwfLog) -> SwfLog:
    """The jobs that completed, ran for some time, and asked for processors.

    Minh and Wolters take jobs that finished successfully only, as the run time of the others is that of a
    failure or of an impatient user. A log that records no job as completed is taken whole.
    """
    usable = (log.run_time > 0) & (requested(log) > 0)
    completed = usable & (log.status == COMPLETED)
    return log.select(completed if completed.any() else usable)


def requested(log: SwfLog) -> Integers:
    """The processors that each job asked for, else those it was allocated."""
    return np.where(log.requested_processors > 0, log.requested_processors, log.allocated_processors)
