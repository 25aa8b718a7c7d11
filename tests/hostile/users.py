"""Hostile users: what they return, what they raise and when, made from tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import inf, nan
from typing import Any

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Delay, Homogeneous
from batsched_py.users import Remark, Submission, User, Withdrawal

#: Values that most fields cannot have.
WRONG: dict[str, Any] = {
    "None": None,
    "a number": 5,
    "a negative number": -1,
    "a fraction": Fraction(1, 3),
    "nan": nan,
    "infinity": inf,
    "minus infinity": -inf,
    "a text": "x",
    "an empty text": "",
    "bytes": b"x",
    "a list": [],
    "a huge number": 2**63,
    "a huge negative number": -(2**63),
    "a number beyond all floats": 10**400,
    "an object": object,
}

JOB = {"id": "dyn!1", "submission_time": 0.0, "size": 1, "walltime": 10.0, "profile": "p", "extra": {}}


def a_job(**fields: Any) -> Job:
    return Job(**JOB | fields)


def submission(**fields: Any) -> Submission:
    return Submission(**{"job": a_job(), "profile": Homogeneous(4e9)} | fields)


class Hostile(User):
    """Submits once, and does something hostile; whoever misbehaves otherwise overrides a method."""

    name = "hostile"

    def __init__(
        self, submits: Callable[[], Any] = lambda: [submission()], at: str = "", raises: Any = None
    ) -> None:
        self._submits = submits
        self._at = at
        self._raises = raises
        self._next = 1.5
        self._calls: dict[str, int] = {}

    def _do(self, moment: str) -> None:
        self._calls[moment] = self._calls.get(moment, 0) + 1
        if self._at == f"{moment} {self._calls[moment]}":
            self._raises()

    def next_time(self) -> float:
        self._do("next_time")
        return self._next

    def submit(self, now: float) -> Any:
        self._next = inf
        self._do("submit")
        return self._submits()

    def job_started(self, job: Job, now: float) -> None:
        self._do("job_started")

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self._do("job_ended")


def wrong_fields() -> Iterator[tuple[str, Callable[[], User]]]:
    """Submissions, withdrawals and remarks with one field that is wrong."""
    for kind, value in WRONG.items():
        for field in JOB:
            yield (
                f"job.{field} is {kind}",
                lambda field=field, value=value: Hostile(lambda: [submission(job=a_job(**{field: value}))]),
            )
        for field in ("job", "profile", "note", "decided"):
            yield (
                f"{field} is {kind}",
                lambda field=field, value=value: Hostile(lambda: [submission(**{field: value})]),
            )
        for action in (Withdrawal, Remark):
            for fields in ({"job_id": value, "note": ""}, {"job_id": "dyn!1", "note": value}):
                yield (
                    f"{action.__name__} with {'job_id' if fields['note'] == '' else 'note'} {kind}",
                    lambda action=action, fields=fields: Hostile(lambda: [submission(), action(**fields)]),
                )
        yield f"submits {kind}", lambda value=value: Hostile(lambda: value)
        yield f"submits a list of {kind}", lambda value=value: Hostile(lambda: [value])
        yield f"wants to act at {kind}", lambda value=value: _acting_at(value)
        yield f"is called {kind}", lambda value=value: _called(value)


def _acting_at(time: Any) -> User:
    user = Hostile()
    user._next = time
    return user


def _called(name: Any) -> User:
    user = Hostile(at="submit 1", raises=lambda: 1 / 0)
    user.name = name
    return user


RAISED: dict[str, Callable[[], object]] = {
    "exits": lambda: sys.exit(0),
    "divides by zero": lambda: 1 / 0,
    "stops an iteration": lambda: next(iter(())),
}


def raised() -> Iterator[tuple[str, Callable[[], User]]]:
    """Users who raise something at some call of each method."""
    for name, raises in RAISED.items():
        for moment in (
            "next_time 1",
            "next_time 2",
            "next_time 3",
            "submit 1",
            "job_started 1",
            "job_ended 1",
        ):
            yield f"{name} in {moment}", lambda at=moment, raises=raises: Hostile(at=at, raises=raises)


class _Nameless(Hostile):
    @property
    def name(self) -> str:  # type: ignore[override]
        raise ValueError("no name")


class _WrongSubmit(Hostile):
    def submit(self) -> Any:  # type: ignore[override]
        return []


class _WrongEnd(Hostile):
    def job_ended(self, job: Job) -> None:  # type: ignore[override]
        return None


class _WrongStart(Hostile):
    def job_started(self) -> None:  # type: ignore[override]
        return None


class _Generating(Hostile):
    def submit(self, now: float) -> Any:
        yield submission()
        self._next = inf
        raise ValueError("half done")


class _Idle(Hostile):
    def submit(self, now: float) -> Any:
        return []


class _Changing(Hostile):
    """Changes what it has submitted, and what it is told."""

    def submit(self, now: float) -> Any:
        self._next = inf
        self._mine = [submission()]
        return self._mine

    def job_started(self, job: Job, now: float) -> None:
        self._mine[0].job = None
        self._mine.clear()

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        job.extra["user"] = "other"


def others() -> Iterator[tuple[str, Callable[[], User]]]:
    """What no table has."""
    yield "no name", lambda: _Nameless(at="submit 1", raises=lambda: 1 / 0)
    yield "submit without a time", _WrongSubmit
    yield "job_ended without a state", _WrongEnd
    yield "job_started without a job", _WrongStart
    yield "submissions that break off", _Generating
    yield "nothing to submit", _Idle
    yield "changes of what was submitted", _Changing
    yield "the same job twice", lambda: Hostile(lambda: [submission(), submission()])
    yield (
        "a withdrawal twice",
        lambda: Hostile(lambda: [submission(), Withdrawal("dyn!1"), Withdrawal("dyn!1")]),
    )
    yield "a withdrawal of another's job", lambda: Hostile(lambda: [Withdrawal("dyn!7")])
    yield "a remark on another's job", lambda: Hostile(lambda: [Remark("dyn!7", "x")])
    yield "a remark with a quote", lambda: Hostile(lambda: [submission(), Remark("dyn!1", '"')])
    yield "a job and its withdrawal", lambda: Hostile(lambda: [submission(), Withdrawal("dyn!1", "gone")])
    yield (
        "a job too large and its withdrawal",
        lambda: Hostile(lambda: [submission(job=a_job(size=99)), Withdrawal("dyn!1", "gone")]),
    )
    yield "an identifier without a workload", lambda: Hostile(lambda: [submission(job=a_job(id="1"))])
    yield (
        "a profile under a taken name",
        lambda: Hostile(
            lambda: [submission(), submission(job=a_job(id="dyn!2"), profile=Delay(seconds=3.0))]
        ),
    )
    for kind, value in WRONG.items():
        yield f"work of {kind}", lambda value=value: Hostile(lambda: [submission(profile=Homogeneous(value))])
        yield f"a delay of {kind}", lambda value=value: Hostile(lambda: [submission(profile=Delay(value))])
        yield (
            f"a return code of {kind}",
            lambda value=value: Hostile(lambda: [submission(profile=Homogeneous(1e9, return_code=value))]),
        )


#: All of them, by what they do.
USERS: dict[str, Callable[[], User]] = dict([*wrong_fields(), *raised(), *others()])
