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
    user, time = job.user, job.submission_time
    facts = [] if user is None else [who(user)]
    if session is not None:
        facts.append(f"session={session}")
    return " ".join([*facts, f"recorded={int(time) if time.is_integer() else time!r}"])


@lru_cache(maxsize=1024)
def who(user: str) -> str:
    """Who submitted a job.

    >>> who("J. Doe")
    'user=J.%20Doe'
    """
    return f"user={quote(user, safe='')}"
