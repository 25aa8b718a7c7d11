"""Users who wait for results and think about them before they go on.

M. Madon, G. Da Costa, J.-M. Pierson, "Replay with Feedback: How does the performance of HPC system impact
user submission behavior?", Future Generation Computer Systems 155, 2024.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from math import inf
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.users import NamedUsers, Submission, User
from batsched_py.users.rigid import who
from batsched_py.workload.model import Workload
from batsched_py.workload.sessions import Delimiter, Sessions, cut_workload, session_rule

#: What opens a session, as users of several kinds are told.
SessionOption = Annotated[
    str,
    Meta(
        description="What opens a session: arrival:MINUTES, last:MINUTES or max:MINUTES, a class of your "
        "own as path/to/file.py:ClassName, or a file that `batsched-py sessions` wrote."
    ),
]


@dataclass
class ThinkTime(NamedUsers):
    """A session starts when the recorded think time has passed since those it depends on were over.

    Each user's jobs are cut into sessions, and a session depends on those that had finished, as recorded,
    when it started. Inside a session jobs keep their recorded distances to its first one. A session that
    depends on no other starts at its recorded time. A rejected or killed job is over like any other.
    """

    name = "think-time"

    sessions: SessionOption = "arrival:60"
    edges: Annotated[
        Literal["reduced", "all"],
        Meta(description="Whether a session waits only for those that others do not imply, or for all."),
    ] = "reduced"

    def __post_init__(self) -> None:
        self._rule = session_rule(self.sessions)

    def native_users(self) -> tuple[str, dict[str, Any]] | None:
        """The native engine has such users, for jobs that all name a user and the rules that we have."""
        if not isinstance(rule := self._rule, Delimiter):
            return None
        reduced = self.edges == "reduced"
        return "think-time", {"rule": rule.rule, "seconds": rule.seconds, "reduced": reduced}

    def named_users(self, workload: Workload) -> list[User]:
        """One user for each in the workload."""
        return [
            ThinkTimeUser(user, sessions, self.edges == "reduced", workload.profiles)
            for user, sessions in cut_workload(workload, self._rule).items()
        ]


class ThinkTimeUser(User):
    """Works through a session graph, which is there from the first submission to the end of the last job."""

    def __init__(self, name: str, sessions: Sessions, reduced: bool, profiles: Mapping[str, Profile]) -> None:
        self.name = name
        self._sessions = sessions
        self._reduced = reduced
        self._profiles = profiles
        self._next_time = sessions.first_submission
        self._replay: SessionReplay | None = None

    def next_time(self) -> float:
        """The time of the next job of the sessions that have started or are about to."""
        return self._next_time

    def submit(self, now: float) -> list[Submission]:
        """All jobs whose time has come."""
        if self._replay is None:
            self._replay = SessionReplay(self._sessions, self._reduced, self._profiles, who(self.name))
        submissions = self._replay.submit(now)
        self._next_time = self._replay.next_time
        return submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Go on with what depends on the session that is over with this job."""
        assert self._replay is not None
        self._replay.job_ended(job.id, now)
        self._next_time = self._replay.next_time
        if self._replay.over:
            self._replay = None
            del self._sessions


class SessionReplay:
    """A session graph and how far the user has come in it.

    A job is there from its submission to its end, and a session is counted while it is under way. So what
    grows with the length of a log are a few numbers a session.
    """

    def __init__(self, sessions: Sessions, reduced: bool, profiles: Mapping[str, Profile], who: str) -> None:
        """The graph may be ``reduced``, and ``who`` is how notes call the user."""
        from batsched_py.workload.columns import narrow

        graph = self._graph = sessions.graph(reduced)
        self._sessions = sessions
        self._profiles = profiles
        self._who = who
        self._nb_jobs = sessions.nb_jobs.data
        predecessors = narrow(graph.nb_predecessors)
        self._unfinished_predecessors = predecessors.data
        self._earliest_start: dict[int, float] = {}
        """When a session may start as far as its finished predecessors are concerned, while it has others."""
        self._roots = (predecessors == 0).nonzero()[0].astype("i").data
        self._nb_begun_roots = 0
        self._under_way: dict[int, _UnderWay] = {}
        """The sessions that have started or are about to."""
        self._session_of: dict[str, int] = {}
        """The session of each job that was submitted and has not ended."""
        self._nb_unfinished = len(sessions)
        self._plan: list[tuple[float, int, int]] = []
        """When to submit which job of which session, as a heap; of each session the next job only."""
        self._begin_next_root()

    @property
    def next_time(self) -> float:
        """When the next job is to be submitted; infinite for none that is planned."""
        return self._plan[0][0] if self._plan else inf

    @property
    def over(self) -> bool:
        """Whether all sessions are over."""
        return not self._nb_unfinished

    def submit(self, now: float) -> list[Submission]:
        """The jobs whose time has come."""
        plan, submissions = self._plan, []
        while plan and plan[0][0] <= now:
            _, index, place = plan[0]
            session = self._under_way[index]
            if not place:
                session.jobs = self._sessions.jobs_of(index)
            jobs = session.jobs
            job, place = jobs[place], place + 1
            if place < len(jobs):
                distance = jobs[place].submission_time - jobs[0].submission_time
                heapreplace(plan, (session.start + distance, index, place))
            else:
                heappop(plan)
                session.jobs = ()
            if place == 1 and session.is_root:
                self._begin_next_root()
            self._session_of[job.id] = index
            time = job.submission_time
            recorded = f"{int(time)}" if time.is_integer() else f"{time!r}"
            note = f"{self._who} session={index} recorded={recorded}"
            submissions.append(Submission(job, self._profiles[job.profile], note, session.decided))
        return submissions

    def job_ended(self, job_id: str, now: float) -> None:
        """Go on with what depends on the session that is over with this job."""
        index = self._session_of.pop(job_id)
        session = self._under_way[index]
        session.nb_unfinished -= 1
        if session.nb_unfinished:
            return
        del self._under_way[index]
        self._nb_unfinished -= 1
        unfinished, earliest = self._unfinished_predecessors, self._earliest_start
        for successor, think_time in self._graph.following(index):
            start = now + think_time
            if earliest.get(successor, start) > start:
                start = earliest[successor]
            unfinished[successor] -= 1
            if unfinished[successor]:
                earliest[successor] = start
            else:
                earliest.pop(successor, None)
                self._begin(successor, start, decided=now)

    def _begin_next_root(self) -> None:
        """Plan the root that starts next; the others can wait."""
        if self._nb_begun_roots < len(self._roots):
            index = self._roots[self._nb_begun_roots]
            self._nb_begun_roots += 1
            self._begin(index, self._sessions.start_of(index), decided=0.0, is_root=True)

    def _begin(self, index: int, start: float, decided: float, is_root: bool = False) -> None:
        self._under_way[index] = _UnderWay(start, decided, is_root, self._nb_jobs[index])
        heappush(self._plan, (start, index, 0))


class _UnderWay(Struct, eq=False):
    """A session that has started or is about to."""

    start: float
    decided: float
    """When it was known that it will start."""
    is_root: bool
    nb_unfinished: int
    """How many of its jobs have not ended."""
    jobs: Sequence[Job] = ()
    """All of them, from the first submission to the last."""
