"""What failures cost, according to the notes at the jobs; ``docs/outside.md`` describes the notes.

Of an execution that a failure has ended, ``saved`` seconds of work were saved by checkpoints, which took
``overhead`` seconds; the rest of its run time is lost.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from batsched_py.analysis.reactions import noted
from batsched_py.analysis.resizes import mean_hosts
from batsched_py.analysis.schedule import INSTANT, host_sets, started
from batsched_py.protocol.jobs import JobState


def executions(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """For each execution the host seconds that were ``useful``, ``lost`` and ``overhead``.

    None if no failure has ended any.
    """
    jobs = started(schedule)
    has_failed = jobs.index.isin(noted(jobs, "failed").index)
    if not has_failed.any():
        return None
    ran = jobs["execution_time"].where(jobs["execution_time"] > INSTANT, 0.0)
    counts = np.array([len(hosts) for hosts in host_sets(jobs)], dtype=np.int64)
    hosts = pd.Series(mean_hosts(jobs, counts), jobs.index)
    overhead = noted(jobs, "overhead").astype(float).reindex(jobs.index, fill_value=0.0)
    saved = noted(jobs, "saved").astype(float).reindex(jobs.index, fill_value=0.0)
    has_succeeded = (jobs["final_state"] == JobState.SUCCESS).to_numpy()
    useful = np.where(has_failed, saved, np.where(has_succeeded, ran - overhead, 0.0))
    lost = np.where(has_failed, ran - saved - overhead, 0.0)
    return pd.DataFrame(
        {"useful": useful * hosts, "lost": lost * hosts, "overhead": overhead * hosts}, jobs.index
    )


def nb_restarts(schedule: pd.DataFrame) -> int:
    """How many executions were submitted after a failure."""
    return len(noted(schedule, "restart"))
