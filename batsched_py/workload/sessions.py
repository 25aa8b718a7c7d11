"""User sessions: periods of continuous work, cut out of a recorded log.

Nobody recorded when users sat down to work, so the borders are inferred from the jobs: a user who is silent
for long enough has left, and the next job opens a new session. The three rules for "long enough" are those
of Zakay and Feitelson (2012), who found 60 minutes (``arrival``) and 20 minutes (``last``, ``max``) sensible.
For any other rule, subclass :class:`SessionRule` in a file of your own; ``examples/session_rule.py`` is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from msgspec import Struct

from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.protocol.jobs import Job
from batsched_py.workload.model import Jobs, Places, Workload, as_jobs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from batsched_py.workload.columns import Numbers
    from batsched_py.workload.session_graph import SessionGraph

    Times = Numbers | array[float]

Rule = Literal["arrival", "last", "max"]


class SessionCutter(ABC):
    """What cuts the jobs of a user into sessions: a rule, or files that say which job is in which."""

    @abstractmethod
    def cut(self, jobs: Jobs, places: Places, finishes: Callable[[Places], Times]) -> Sessions:
        """The sessions of the user whose jobs are in these places; ``finishes`` tells when they ended."""

    def __str__(self) -> str:
        return str(getattr(self, "name", type(self).__name__))


class SessionRule(SessionCutter):
    """Where one session of a user ends and the next begins."""

    @abstractmethod
    def opens(self, submissions: NDArray[Any], finishes: NDArray[Any]) -> NDArray[Any]:
        """Whether each job of a user but the first opens a session: a column of truth values.

        The jobs are in submission order, with the times when they were submitted and when they had finished.
        """

    def cut(self, jobs: Jobs, places: Places, finishes: Callable[[Places], Times]) -> Sessions:
        """Sessions that end where the next one opens."""
        return Sessions(jobs, places, finishes, self)


#: Rules that are named, and not written as ``RULE:MINUTES``.
SESSION_RULES = Registry[SessionRule](
    "session rule",
    SessionRule,  # type: ignore[type-abstract]
    package=None,
    group="batsched_py.session_rules",
)


def session_rule(text: str) -> SessionCutter:
    """The rule that is written as ``RULE:MINUTES``, the class of others that has this name, or session files.

    >>> session_rule("arrival:60")
    Delimiter(rule='arrival', minutes=60.0)
    """
    if ".py:" in text or (":" not in text and text in SESSION_RULES.all()):
        return SESSION_RULES.create(text, {})
    if text.endswith(".json") or Path(text).is_dir():
        from batsched_py.workload.session_files import SessionFiles

        return SessionFiles(Path(text))
    return Delimiter.parse(text)


@dataclass(frozen=True)
class Delimiter(SessionRule):
    """A session ends with a silence: how it is measured, and how long it must be."""

    rule: Rule
    """What the silence before a job is measured from.

    - ``arrival``: the previous submission; the job opens a session after a silence of ``minutes`` or more.
    - ``last``: the finish of the previously submitted job; after more than ``minutes``.
    - ``max``: the latest finish of all jobs of the session so far; after more than ``minutes``.
    """
    minutes: float

    @classmethod
    def parse(cls, text: str) -> Delimiter:
        """Read ``RULE:MINUTES``."""
        name, _, number = text.partition(":")
        try:
            minutes = float(number)
        except ValueError:
            minutes = inf
        for rule in get_args(Rule):
            if rule == name and isfinite(minutes) and minutes >= 0:
                return cls(rule, minutes)
        raise InputError(
            f"session delimiter {text!r}: write arrival:MINUTES, last:MINUTES or max:MINUTES, like "
            "arrival:60, or give path/to/file.py:ClassName, or session files that are there"
        )

    @property
    def seconds(self) -> float:
        """How long a silence it takes."""
        return self.minutes * 60

    def opens(self, submissions: NDArray[Any], finishes: NDArray[Any]) -> NDArray[Any]:
        """Whether the silence before each job is long enough."""
        import numpy as np

        match self.rule:
            case "arrival":
                silent_since = submissions
            case "last":
                silent_since = finishes
            case "max":  # jobs of earlier sessions had finished before this one began, and so change nothing
                silent_since = np.maximum.accumulate(finishes)
        silence: NDArray[Any] = submissions[1:] - silent_since[:-1]
        return silence >= self.seconds if self.rule == "arrival" else silence > self.seconds

    def __str__(self) -> str:
        return f"{self.rule}:{repr(float(self.minutes)).removesuffix('.0')}"


class Session(Struct, gc=False, eq=False):
    """Jobs that a user submitted in one go, as they were recorded.

    A replay keeps the distance of every job to the first one: ``job.submission_time - session.start``.
    """

    jobs: Sequence[Job]
    """In submission order."""
    start: float
    """When the first job was submitted."""
    finish: float
    """When the last of its jobs to finish had finished."""


class Sessions(Sequence[Session]):
    """The sessions of one user, in the order of their starts; cut when they are first asked for.

    They are kept as columns; the jobs of a session are made each time they are asked for.
    """

    def __init__(
        self, jobs: Jobs, places: Places, finishes: Callable[[Places], Times], rule: SessionRule
    ) -> None:
        """The user's jobs are those in these ``places``, and ``finishes`` tells when they had finished."""
        self.jobs = jobs.part(places)
        """All jobs of the user, in submission order."""
        self.rule = rule
        self._every_job = jobs
        self._places = places
        self._finishes_of = finishes

    def __len__(self) -> int:
        return len(self._first_jobs)

    @overload
    def __getitem__(self, index: int) -> Session: ...
    @overload
    def __getitem__(self, index: slice) -> list[Session]: ...
    def __getitem__(self, index: int | slice) -> Session | list[Session]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return Session(self.jobs_of(index), self.start_of(index), float(self.finishes.item(index)))

    def graph(self, reduced: bool) -> SessionGraph:
        """Which session depends on which; ``reduced`` leaves out the edges that others imply."""
        from batsched_py.workload.session_graph import SessionGraph

        return SessionGraph(self, reduced)

    def jobs_of(self, index: int) -> Sequence[Job]:
        """The jobs of a session."""
        first = self._first_jobs.item(index)
        return self.jobs[first : first + self.nb_jobs.item(index)]

    def start_of(self, index: int) -> float:
        """When the first job of a session was submitted."""
        return float(self._every_job.submission_times[self._places[self._first_jobs.item(index)]])

    @property
    def first_submission(self) -> float:
        """When the first session starts; known before sessions are cut."""
        return self.jobs[0].submission_time

    @cached_property
    def nb_jobs(self) -> Numbers:
        """For each session, how many jobs it has."""
        return self._cut[1]

    @property
    def starts(self) -> Numbers:
        """For each session, when its first job was submitted."""
        import numpy as np

        return self._every_job.submission_times[np.asarray(self._places)[self._first_jobs]]

    @cached_property
    def finishes(self) -> Numbers:
        """For each session, when the last of its jobs to finish had finished."""
        return self._cut[2]

    @cached_property
    def _first_jobs(self) -> NDArray[Any]:
        """For each session, the place of its first job among those of the user."""
        return self._cut[0]

    @cached_property
    def _cut(self) -> tuple[NDArray[Any], Numbers, Numbers]:
        """The three columns above; the rule is asked once."""
        import numpy as np

        from batsched_py.workload.columns import narrow

        submissions = np.asarray(self._every_job.submissions_of(self._places), dtype=np.float64)
        finishes = np.asarray(self._finishes_of(self._places))
        with naming(f"session rule {str(self.rule)!r}"):
            opens = np.asarray(self.rule.opens(submissions, finishes), dtype=bool)
        if opens.shape != (max(len(submissions) - 1, 0),):
            raise InputError(
                f"session rule {str(self.rule)!r} gives {opens.size} values for {len(submissions)} jobs; it "
                "must give one for each but the first"
            )
        later = np.flatnonzero(opens).astype(np.int32) + np.int32(1)
        first = np.concatenate([np.zeros(min(len(submissions), 1), dtype=np.int32), later])
        if len(finishes):
            finishes = narrow(np.maximum.reduceat(finishes, first))
        return first, narrow(np.diff(first, append=len(self._places))), finishes


def cut_sessions(jobs: Sequence[Job], finishes: Iterable[float], rule: SessionCutter) -> Sessions:
    """Cut the jobs of one user, in submission order, into sessions.

    ``finishes`` are the recorded finish times of the jobs, in the same order; none is before the submission.
    """
    recorded = array("d", finishes)
    if len(recorded) != len(jobs):
        raise ValueError(f"{len(jobs)} jobs and {len(recorded)} finishes")
    return rule.cut(as_jobs(jobs), array("i", range(len(jobs))), _finishes_in(recorded))


def cut_workload(workload: Workload, rule: SessionCutter) -> dict[str, Sessions]:
    """Cut the jobs of every user into sessions.

    Users come in the order of their names, short ones first: that of their numbers, where they are numbers.
    """
    jobs = as_jobs(workload.jobs)
    source = workload.path or workload.name
    if workload.finishes is None:
        raise InputError(f"{source} does not say when its jobs had finished; sessions need an SWF log")
    places = jobs.by_user()
    if None in places:
        job = jobs[int(places[None][0])]
        raise InputError(f"job {job.id} of {source} has no user, so no session")
    named = {user: submitted for user, submitted in places.items() if user is not None}
    take = _finishes_in(workload.finishes)
    return {
        user: rule.cut(jobs, named[user], take) for user in sorted(named, key=lambda name: (len(name), name))
    }


def _finishes_in(finishes: Sequence[float] | NDArray[Any]) -> Callable[[Places], Times]:
    """A function that gives the finishes in some places; those of a large log have one already."""
    take: Callable[[Places], Times] | None = getattr(finishes, "take", None)
    return take or (lambda places: array("d", (finishes[place] for place in places)))
