"""A schedule as a log: what happened on the simulated machine, in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from batsched_py import __version__
from batsched_py.analysis.schedule import INSTANT, full_ids, has_resizes, host_sets, mean_hosts
from batsched_py.protocol.jobs import JobState
from batsched_py.workload.model import Workload, as_jobs
from batsched_py.workload.swf.log import Integers, SwfLog, start_of, swf_log

#: The status in the format for each way in which a job may end.
_STATUS: Final = {JobState.SUCCESS: 1, JobState.REJECTED: 5, JobState.KILLED: 5}

#: The columns of a log that no simulation changes; the user is known from the schedule.
_KEPT: Final = ("group", "executable", "queue", "partition")


def schedule_log(
    jobs: pd.DataFrame, workloads: Sequence[Workload], hosts: int, simulated: SwfLog | None = None
) -> SwfLog:
    """The log of a schedule with its users, on a machine of so many hosts.

    A rejected job has 0 s on 0 processors and status 5 (cancelled). A killed job has status 5 too; a job that
    failed or reached its walltime has status 0. A job that has grown or shrunk had so many processors in the
    mean. The date of time 0 comes from the log that was ``simulated``.
    """
    run_time = jobs["execution_time"].fillna(0.0).to_numpy()
    processors = np.array([len(held) for held in host_sets(jobs)])
    if has_resizes(jobs):
        processors = np.rint(mean_hosts(jobs, processors)).astype(np.int64)
    columns = {
        "submit": jobs["submission_time"].to_numpy(),
        "wait": jobs["waiting_time"].fillna(0.0).to_numpy(),
        "run_time": np.where(run_time > INSTANT, run_time, 0.0),
        "allocated_processors": processors,
        "requested_processors": jobs["requested_number_of_resources"].to_numpy(),
        "requested_time": jobs["requested_time"].to_numpy(),
        "status": np.array([_STATUS.get(JobState(state), 0) for state in jobs["final_state"]]),
        "user": _numbers(jobs["user"]),
        **_described(full_ids(jobs), workloads),
    }
    if jobs["job_id"].str.isdecimal().all() and not jobs["job_id"].duplicated().any():
        columns["job_number"] = jobs["job_id"].astype(np.int64).to_numpy()
    count = str(len(jobs))
    header = {
        "Version": "2.2",
        "Computer": f"simulated by batsched-py {__version__}",
        "MaxJobs": count,
        "MaxRecords": count,
        **({} if simulated is None else _beginning(simulated)),
        "MaxNodes": str(hosts),
        "MaxProcs": str(hosts),
    }
    return swf_log(columns, header=header)


def _beginning(log: SwfLog) -> dict[str, str]:
    """When the first job of a log was submitted, which is the time 0 of its simulation."""
    start = start_of(log)
    if start is None:
        return {}
    zones: dict[str, str] = {
        key: log.header[key] for key in ("TimeZone", "TimeZoneString") if key in log.header
    }
    return {"UnixStartTime": f"{start + log.submit.min():.0f}", **zones}


def _numbers(names: pd.Series[str]) -> Integers:
    """Users as numbers: their own if all are numbers, else 1, 2, 3, ... in order; -1 for an unknown user."""
    known = names.dropna()
    if known.str.isdecimal().all():
        return names.where(names.notna(), "-1").astype(np.int64).to_numpy()
    codes, _ = pd.factorize(names)
    return np.where(codes >= 0, codes + 1, -1)


def _described(ids: pd.Series[str], workloads: Sequence[Workload]) -> dict[str, Integers]:
    """The columns that the workloads have for these jobs."""
    by_name = {workload.name: as_jobs(workload.jobs) for workload in workloads}
    columns: dict[str, list[int]] = {name: [] for name in _KEPT}
    for job_id in ids:
        jobs = by_name.get(job_id.partition("!")[0])
        job = None if jobs is None else jobs.find(job_id)
        for name, column in columns.items():
            value = None if job is None else job.extra.get(name)
            column.append(value if isinstance(value, int) else -1)
    return {name: np.array(column) for name, column in columns.items()}
