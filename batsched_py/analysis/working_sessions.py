"""The sessions that users had in a simulation, from the times of their submissions and results.

They are not the sessions of the log: a user who gets results sooner continues to work, one who waits too long
comes back another time.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from batsched_py.analysis.schedule import started

#: A user who thinks for longer than this, in seconds, has ended the session.
SESSION_BREAK = 20 * 60.0


def working_sessions(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """A row for each session: its user, when it began and ended, and its number of jobs.

    A job opens a session if it is submitted more than 20 minutes after the end of all earlier jobs of its
    user. A session lasts from its first submission to its last end. Rejected jobs are left out. None if the
    notes of the jobs do not contain their users.
    """
    jobs = started(schedule)
    users = jobs["metadata"].str.extract(r"(?:^| )user=(\S+)", expand=False)
    if users.isna().any() or jobs.empty:
        return None
    jobs = jobs.assign(user=users).sort_values(["user", "submission_time"], kind="stable")
    last_end = jobs.groupby("user")["finish_time"].cummax()
    before = last_end.groupby(jobs["user"]).shift(fill_value=-np.inf)
    number = (jobs["submission_time"] - before > SESSION_BREAK).cumsum()
    return jobs.groupby(number).agg(
        user=("user", "first"),
        begin=("submission_time", "first"),
        end=("finish_time", "max"),
        nb_jobs=("user", "size"),
    )
