"""What users do is checked here before anything comes of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from operator import index
from typing import Any

from msgspec.structs import replace

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.shown import shown
from batsched_py.users.base import Action, Remark, Submission, Withdrawal

#: No number of hosts is so large.
_BEYOND = 1 << 63


def checked_actions(done: Any) -> list[Action]:
    """What a user has returned, if all of it is of the right kind."""
    if not isinstance(done, Iterable):
        raise TypeError(f"submit returns a list of actions, not {shown(done)}")
    return [_checked(action) for action in done]


def _checked(action: object) -> Action:
    """The same action, if all that it is made of is of the right kind."""
    match action:
        case Submission(job=job, profile=profile, note=note, decided=decided):
            if not isinstance(profile, Profile):
                raise _wrong("profile", "a Profile", profile)
            return Submission(_checked_job(job), profile, _text("note", note), _number("decided", decided))
        case Withdrawal(job_id=job_id, note=note):
            return Withdrawal(_text("job_id", job_id), _text("note", note))
        case Remark(job_id=job_id, note=note):
            return Remark(_text("job_id", job_id), _text("note", note))
    raise TypeError(f"a user returns submissions, withdrawals and remarks, not {shown(action)}")


def _checked_job(job: Any) -> Job:
    if not isinstance(job, Job):
        raise _wrong("job", "a Job", job)
    if _text("job.id", job.id).count("!") != 1:
        raise ValueError(f"job.id: {shown(job.id)} is not of the form WORKLOAD!NAME")
    _text("job.profile", job.profile)
    if not isinstance(job.extra, dict):
        raise _wrong("job.extra", "a dictionary", job.extra)
    walltime = _number("job.walltime", job.walltime)
    submission = _number("job.submission_time", job.submission_time)
    try:
        size = index(job.size)
    except TypeError:
        raise _wrong("job.size", "a number of hosts", job.size) from None
    if not -_BEYOND <= size < _BEYOND:
        raise ValueError(f"job.size: no machine has {shown(size)} hosts")
    if type(job.size) is int and type(job.walltime) is type(job.submission_time) is float:
        return job
    return replace(job, size=size, walltime=walltime, submission_time=submission)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong(field, "a text", value)
    return value


def _number(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise _wrong(field, "a number", value) from None
    if isnan(number):
        raise ValueError(f"{field}: a number is expected, not nan")
    return number


def _wrong(field: str, kind: str, value: object) -> TypeError:
    return TypeError(f"{field}: {kind} is expected, not {shown(value)}")
