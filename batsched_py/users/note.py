"""What the results say about a job that a user submitted; ``docs/users.md`` describes it."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from batsched_py.protocol.jobs import Job


def recorded_note(job: Job, session: int | None = None) -> str:
    """Who submitted a recorded job, in which of their sessions, and when that was in the log.

    >>> recorded_note(Job("w0!7", 3600.0, 4, 60.0, "run_30", {"user": 12}), session=3)
    'user=12 session=3 recorded=3600'
    """
    user = job.user
    facts = [] if user is None else [f"user={_quoted(user)}"]
    if session is not None:
        facts.append(f"session={session}")
    facts.append(f"recorded={_number(job.submission_time)}")
    return " ".join(facts)


@lru_cache(maxsize=1024)
def _quoted(user: str) -> str:
    return quote(user, safe="")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)
