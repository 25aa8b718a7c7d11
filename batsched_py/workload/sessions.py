"""User sessions: periods of continuous work, cut out of a recorded log.

Nobody recorded when users sat down to work, so the borders are inferred from the jobs: a user who is silent
for long enough has left, and the next job opens a new session. The three rules for "long enough" are those
of Zakay and Feitelson (2012), who found 60 minutes (``arrival``) and 20 minutes (``last``, ``max``) sensible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Literal, get_args

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.workload.model import Workload

Rule = Literal["arrival", "last", "max"]


class Delimiter(Struct, frozen=True):
    """Where one session ends and the next begins: a rule, and how long a silence it takes."""

    rule: Rule
    """What the silence before a job is measured from.

    - ``arrival``: the previous submission; the job opens a session after a silence of ``minutes`` or more.
    - ``last``: the finish of the previously submitted job; after more than ``minutes``.
    - ``max``: the latest finish of all jobs of the session so far; after more than ``minutes``.
    """
    minutes: float

    @classmethod
    def parse(cls, text: str) -> Delimiter:
        """Read ``RULE:MINUTES``.

        >>> Delimiter.parse("arrival:60")
        Delimiter(rule='arrival', minutes=60.0)
        """
        name, _, number = text.partition(":")
        try:
            minutes = float(number)
        except ValueError:
            minutes = inf
        for rule in get_args(Rule):
            if rule == name and isfinite(minutes) and minutes >= 0:
                return cls(rule, minutes)
        raise InputError(
            f"session delimiter {text!r}: write arrival:MINUTES, last:MINUTES or max:MINUTES, like arrival:60"
        )

    def __str__(self) -> str:
        return f"{self.rule}:{repr(float(self.minutes)).removesuffix('.0')}"


class Session(Struct, gc=False, eq=False):
    """Jobs that a user submitted in one go, as they were recorded.

    A replay keeps the distance of every job to the first one: ``job.submission_time - session.start``.
    """

    jobs: list[Job]
    """In submission order."""
    start: float
    """When the first job was submitted."""
    finish: float
    """When the last of its jobs to finish had finished."""


def cut_sessions(jobs: Sequence[Job], finishes: Iterable[float], delimiter: Delimiter) -> list[Session]:
    """Cut the jobs of one user, in submission order, into sessions.

    ``finishes`` are the recorded finish times of the jobs, in the same order.
    """
    threshold = delimiter.minutes * 60
    sessions: list[Session] = []
    silent_since = -inf
    for job, finish in zip(jobs, finishes, strict=True):
        silence = job.submission_time - silent_since
        if silence > threshold or (silence == threshold and delimiter.rule == "arrival"):
            sessions.append(Session([], start=job.submission_time, finish=finish))
        session = sessions[-1]
        session.jobs.append(job)
        session.finish = max(session.finish, finish)
        match delimiter.rule:
            case "arrival":
                silent_since = job.submission_time
            case "last":
                silent_since = finish
            case "max":
                silent_since = session.finish
    return sessions


def cut_workload(workload: Workload, delimiter: Delimiter) -> dict[str, list[Session]]:
    """Cut the jobs of every user into sessions.

    Users come in the order of their names, short ones first: that of their numbers, where they are numbers.
    """
    jobs, finishes = workload.jobs, workload.finishes
    source = workload.path or workload.name
    if finishes is None:
        raise InputError(f"{source} does not say when its jobs had finished; sessions need an SWF log")
    submitted_by: dict[str, list[int]] = {}
    for index in sorted(range(len(jobs)), key=lambda i: jobs[i].submission_time):
        user = jobs[index].user
        if user is None:
            raise InputError(f"job {jobs[index].id} of {source} has no user, so no session")
        submitted_by.setdefault(user, []).append(index)
    return {
        user: cut_sessions([jobs[i] for i in indices], [finishes[i] for i in indices], delimiter)
        for user, indices in sorted(submitted_by.items(), key=lambda item: (len(item[0]), item[0]))
    }
