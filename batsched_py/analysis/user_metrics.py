"""What users did in a simulation: how late they submitted, how they reacted, which sessions they had."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import numpy as np

from batsched_py.analysis.schedule import full_ids, started
from batsched_py.errors import InputError
from batsched_py.workload.model import Workload, as_jobs

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.workload.swf.log import SwfLog

_RECORDED: Final = re.compile(r"(?:^| )recorded=(\S+)")
_USER: Final = re.compile(r"(?:^| )user=(\S+)")


def recorded_submissions(log: SwfLog) -> pd.DataFrame:
    """When and by whom each job of a log was submitted, by the job's identifier in a schedule.

    As in a simulation of the log, jobs without processors are left out and the first of the others is
    submitted at 0.
    """
    import pandas as pd

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
    import pandas as pd

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
    import pandas as pd

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


#: How long after a window jobs that were put off may come back, in seconds.
AFTERMATH = 86400.0


def noted(schedule: pd.DataFrame, key: str) -> pd.Series[str]:
    """The value of a key in the note of each job, if it is there."""
    notes = schedule["metadata"]
    notes = notes[notes != ""]
    notes = notes[notes.str.contains(f"{key}=", regex=False)]
    values: pd.Series[str] = notes.str.extract(rf"(?:^| ){key}=(\S+)", expand=False).dropna()
    return values


def jobs_with_note(schedule: pd.DataFrame, key: str) -> pd.DataFrame | None:
    """The jobs with a note that has this key, if there are some."""
    found = noted(schedule, key).index
    return schedule.loc[found] if len(found) else None


def nb_abandoned(schedule: pd.DataFrame) -> int:
    """How many jobs users who left for good never submitted, or withdrew while they waited."""
    never = noted(schedule, "abandoned").astype(int).sum()
    return int(never) + len(noted(schedule, "withdrawn"))


def joules_around_windows(schedule: pd.DataFrame) -> tuple[float, float] | None:
    """The energy of jobs inside the windows of sober users, and in the day after each, outside all windows.

    A job draws constant power while it runs. None if there are no windows or energy was not measured.
    """
    windows = noted(schedule, "window")
    if windows.empty:
        return None
    jobs = started(schedule)
    jobs = jobs[jobs["consumed_energy"] >= 0]
    if jobs.empty:
        return None
    bounds = np.unique(windows.str.split(":", expand=True).to_numpy(float), axis=0)
    starts, ends = jobs["starting_time"].to_numpy(), jobs["finish_time"].to_numpy()
    power = jobs["consumed_energy"].to_numpy() / np.maximum(ends - starts, 1e-9)
    inside = after = 0.0
    for place, (low, high) in enumerate(bounds):
        following = bounds[place + 1][0] if place + 1 < len(bounds) else np.inf
        inside += _drawn(power, starts, ends, low, high)
        after += _drawn(power, starts, ends, high, min(high + AFTERMATH, following))
    return inside, after


def _drawn(power: np.ndarray, starts: np.ndarray, ends: np.ndarray, low: float, high: float) -> float:
    return float(power @ np.maximum(np.minimum(ends, high) - np.maximum(starts, low), 0.0))


#: A user who thinks for longer than this, in seconds, has ended the session.
SESSION_BREAK = 20 * 60.0


def working_sessions(schedule: pd.DataFrame) -> pd.DataFrame | None:
    """A row for each session: its user, when it began and ended, and its number of jobs.

    A job opens a session if it is submitted more than 20 minutes after the end of all earlier jobs of its
    user. A session lasts from its first submission to its last end. Rejected jobs are left out. None if the
    notes of the jobs do not contain their users.
    """
    jobs = started(schedule)
    users = noted(jobs, "user")
    if len(users) < len(jobs) or jobs.empty:
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
