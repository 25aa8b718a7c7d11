"""Where a log begins: ``sacct -S DATE`` lists all jobs that were there at that date or came later.

So the log has jobs that were submitted long before. Of the others of that time, which had the machine, it
tells nothing. A job that ran at the date is submitted when it started. One that still waited may not start
before it, and is as old as it was.
"""

from dataclasses import replace

import numpy as np

from batsched_py.slurm.reading import Clock, Findings
from batsched_py.workload.swf.log import SwfLog, start_of

#: A job that waited for so many seconds before any other one had ended waited for one that is not there.
LONG = 300.0

#: A column beside those of a log: how long after its submission a job may not start.
NOT_BEFORE = "not_before"

#: A column beside those of a log: whether a job ran already when the log began.
RAN = "runs"


def from_the_beginning(
    log: SwfLog, since: str, zone: str, findings: Findings
) -> tuple[SwfLog, frozenset[str]]:
    """A log as it has to be submitted, if ``sacct`` was asked for jobs since a date, and the earlier jobs."""
    moment = 0.0
    with findings.noting("--since"):
        moment = Clock(start_of(log), zone).moment(since)
    findings.check()
    start = log.submit + np.maximum(log.wait, 0.0)
    early = log.submit < moment
    ran = early & (start < moment) & ~log.never_started
    more = {
        **log.more,
        NOT_BEFORE: np.where(early & ~ran, moment - log.submit, 0.0),
        RAN: ran,
    }
    if "eligible" in more:
        more["eligible"] = np.where(ran, 0.0, more["eligible"])
    moved = replace(
        log, submit=np.where(ran, start, log.submit), wait=np.where(ran, 0.0, log.wait), more=more
    )
    order = np.argsort(moved.submit, kind="stable")
    return moved.select(order), frozenset(map(str, log.job_number[early].tolist()))


def look_cut(log: SwfLog) -> int:
    """How many jobs waited long though no job of the log had ended, so for others, or for something else."""
    start = log.submit + log.wait
    ran = (log.wait >= 0) & ~log.never_started
    if not ran.any():
        return 0
    before_any_end = ran & (start < (start + log.run_time)[ran].min())
    waited = log.wait - np.maximum(log.more.get("eligible", np.zeros(len(log))), 0.0)
    return int((before_any_end & (waited > LONG)).sum())
