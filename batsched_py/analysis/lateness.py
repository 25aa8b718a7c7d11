"""Lateness: how much later than recorded the users of a replay with feedback submit their jobs.

M. Madon, G. Da Costa and J.-M. Pierson, "Replay with Feedback: How does the performance of HPC system impact
user submission behavior?", Future Generation Computer Systems, 2024.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import numpy as np
import pandas as pd

from batsched_py.analysis.schedule import full_ids
from batsched_py.errors import InputError
from batsched_py.workload.jobs import as_jobs
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.log import SwfLog

_RECORDED: Final = re.compile(r"(?:^| )recorded=(\S+)")
_USER: Final = re.compile(r"(?:^| )user=(\S+)")


def recorded_submissions(log: SwfLog) -> pd.DataFrame:
    """When and by whom each job of a log was submitted, by the job's identifier in a schedule.

    As in a simulation of the log, jobs without processors are left out and the first of the others is
    submitted at 0.
    """
    log = log.select(log.processors > 0)
    return pd.DataFrame(
        {"submission_time": log.submit - log.submit.min(), "user": log.user.astype(str)},
        index=pd.Index(log.job_number.astype(str), name="job_id"),
    )


def noted_submissions(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """The same from the notes of users with feedback in the ``metadata`` of their jobs.

    A note is ``user=12 session=3 recorded=3600``. A job that the log does not have, such as one that was
    submitted again, has a note without ``recorded``, and no time here. None unless every job has a user, some
    job a time, and each a unique number.
    """
    recorded, users = [], []
    for note in schedule["metadata"].tolist():
        time, user = _RECORDED.search(note), _USER.search(note)
        if user is None:
            return None
        recorded.append("nan" if time is None else time[1])
        users.append(user[1])
    times = pd.to_numeric(pd.Series(recorded, dtype=object), errors="coerce")
    unreadable = times.isna() & (pd.Series(recorded, dtype=object) != "nan")
    if times.isna().all() or unreadable.any() or schedule["job_id"].duplicated().any():
        return None
    names = {user: unquote(user) for user in set(users)}
    return pd.DataFrame(
        {"submission_time": times.to_numpy(float), "user": [names[user] for user in users]},
        index=pd.Index(schedule["job_id"], name="job_id"),
    )


def described_submissions(workloads: Sequence[Workload]) -> pd.DataFrame:
    """When and by whom each job of some workloads was submitted, by its identifier ``WORKLOAD!JOB``."""
    tables = []
    for workload in workloads:
        jobs = as_jobs(workload.jobs)
        names, places = jobs.users()
        tables.append(
            pd.DataFrame(
                {
                    "submission_time": np.asarray(jobs.submission_times, dtype=float),
                    "user": pd.Series(names, dtype=object).to_numpy()[places],
                },
                index=[job.id for job in workload.jobs],
            )
        )
    return pd.concat(tables)


def with_recorded(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> pd.DataFrame:
    """A schedule with each job's ``user``, ``recorded`` submission and ``lateness``.

    They come from the notes of users with feedback, or from the workloads; otherwise they are missing.
    """
    recorded = noted_submissions(schedule)
    if recorded is not None:
        known = recorded.reindex(schedule["job_id"])
    else:
        known = described_submissions(workloads).reindex(full_ids(schedule))
    times = known["submission_time"].to_numpy()
    return schedule.assign(
        user=known["user"].to_numpy(), recorded=times, lateness=schedule["submission_time"].to_numpy() - times
    )


def job_lateness(schedule: pd.DataFrame, recorded: pd.DataFrame) -> pd.DataFrame:
    """The lateness of each job, with its ``user`` and its ``recorded`` submission, in the recorded order.

    Jobs that were rejected or killed were submitted like all others. Jobs that the log does not have, such as
    those that users submit again, cannot be late; if it has none of them, it is another log.
    """
    again = schedule.loc[schedule["job_id"].duplicated(), "job_id"]
    if len(again):
        raise InputError(f"job {again.iloc[0]} is twice in the schedule; a recorded log has it once")
    places = recorded.index.get_indexer(schedule["job_id"])
    known = places >= 0
    if len(recorded) and not known.any():
        name = schedule["job_id"].iloc[0]
        raise InputError(f"no job of the schedule is in the recorded log, not even job {name}")
    jobs = recorded.iloc[places[known]].rename(columns={"submission_time": "recorded"})
    jobs["lateness"] = schedule["submission_time"].to_numpy()[known] - jobs["recorded"].to_numpy()
    return jobs[jobs["recorded"].notna()].sort_values("recorded", kind="stable")


def users_of(schedule: pd.DataFrame, recorded: pd.DataFrame) -> pd.Series[str]:
    """The user of each job of a schedule: as recorded, else as noted; missing if neither tells."""
    users = recorded["user"].reindex(schedule["job_id"])
    noted = schedule["metadata"].str.extract(_USER, expand=False).map(unquote, na_action="ignore")
    return users.fillna(noted.set_axis(users.index))


def mean_lateness(jobs: pd.DataFrame) -> float:
    """How much later than recorded jobs are submitted, on average, in seconds."""
    return float(jobs["lateness"].mean())


def relative_lateness(jobs: pd.DataFrame) -> float:
    """The mean lateness as a part of the time between the first and the last recorded submission, plus 1."""
    length = float(jobs["recorded"].max() - jobs["recorded"].min())
    return 1 + mean_lateness(jobs) / length if length > 0 else float("nan")


def additional_lateness(jobs: pd.DataFrame) -> float:
    """By how much each submission adds to the lateness, in seconds, if all of them add the same."""
    return 2 * mean_lateness(jobs) / (len(jobs) - 1) if len(jobs) > 1 else float("nan")
