"""Who submits: the busiest users, and the sessions in which users work."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.distributions import Distribution, distribution
from batsched_py.workload.swf.log import SwfLog

#: A user who has not submitted for this many seconds has left (Zakay and Feitelson 2012).
SILENCE: Final = 3600.0
SHOWN_USERS: Final = 10


class BusyUser(Struct, frozen=True, kw_only=True):
    """One of the users with the most jobs."""

    user: int
    jobs: int
    share_of_jobs: float
    share_of_work: float


class Users(Struct, frozen=True, kw_only=True):
    """The users of a log and how they work."""

    users: int
    busiest: list[BusyUser]
    half_of_jobs: int
    """How few users submit half of the jobs."""
    sessions: int
    """A session is a longest run of submissions of a user with less than an hour between any two."""
    jobs_per_session: Distribution
    session_durations: Distribution
    """From the first to the last submission of a session."""
    breaks: Distribution | None
    """From the last submission of a session to the first of the same user's next one."""


def users(log: SwfLog) -> Users:
    """Describe the users of a log; -1 counts as one of them."""
    numbers, who = np.unique(log.user, return_inverse=True)
    jobs = np.bincount(who)
    work = np.bincount(who, log.run_time * np.maximum(log.processors, 0))
    busiest = np.argsort(-jobs, kind="stable")
    order = np.lexsort((log.submit, who))
    submit, who = log.submit[order], who[order]
    gaps = np.diff(submit)
    same_user = who[1:] == who[:-1]
    opens = np.concatenate([[True], ~same_user | (gaps >= SILENCE)])
    firsts = np.flatnonzero(opens)
    lasts = np.append(firsts[1:], len(submit)) - 1
    jobs_per_session = distribution(lasts - firsts + 1)
    durations = distribution(submit[lasts] - submit[firsts])
    assert jobs_per_session is not None and durations is not None
    return Users(
        users=len(numbers),
        busiest=[
            BusyUser(
                user=int(numbers[i]),
                jobs=int(jobs[i]),
                share_of_jobs=float(jobs[i] / jobs.sum()),
                share_of_work=float(work[i] / work.sum()) if work.any() else 0.0,
            )
            for i in busiest[:SHOWN_USERS]
        ],
        half_of_jobs=int(np.searchsorted(np.cumsum(jobs[busiest]), jobs.sum() / 2)) + 1,
        sessions=len(firsts),
        jobs_per_session=jobs_per_session,
        session_durations=durations,
        breaks=distribution(gaps[same_user & (gaps >= SILENCE)]),
    )
