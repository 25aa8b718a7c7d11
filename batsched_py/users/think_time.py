"""Users who wait for results and think about them before they go on.

M. Madon, G. Da Costa, J.-M. Pierson, "Replay with Feedback: How does the performance of HPC system impact
user submission behavior?", Future Generation Computer Systems 155, 2024.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Profile
from batsched_py.users.base import Submission, User
from batsched_py.users.note import recorded_note
from batsched_py.users.of_one import OfNamedUsers
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import Delimiter, cut_workload


@dataclass
class ThinkTime(OfNamedUsers):
    """A session starts when the recorded think time has passed since those it depends on were over.

    Each user's jobs are cut into sessions, and a session depends on those that had finished, as recorded,
    when it started. Inside a session jobs keep their recorded distances to its first one. A session that
    depends on no other starts at its recorded time. A rejected or killed job is over like any other.
    """

    name = "think-time"

    sessions: Annotated[
        str, Meta(description="What opens a session: arrival:MINUTES, last:MINUTES or max:MINUTES.")
    ] = "arrival:60"
    edges: Annotated[
        Literal["reduced", "all"],
        Meta(description="Whether a session waits only for those that others do not imply, or for all."),
    ] = "reduced"

    def __post_init__(self) -> None:
        self._delimiter = Delimiter.parse(self.sessions)

    def named_users(self, workload: Workload) -> list[User]:
        """One user for each in the workload."""
        return [
            ThinkTimeUser(user, SessionGraph(sessions, self.edges == "reduced"), workload.profiles)
            for user, sessions in cut_workload(workload, self._delimiter).items()
        ]


class ThinkTimeUser(User):
    """Works through a session graph."""

    def __init__(self, name: str, graph: SessionGraph, profiles: Mapping[str, Profile]) -> None:
        self.name = name
        self._graph = graph
        self._profiles = profiles
        self._session_of = {job.id: index for index, s in enumerate(graph.sessions) for job in s.jobs}
        self._unfinished_jobs = [len(session.jobs) for session in graph.sessions]
        self._unfinished_predecessors: list[int] = graph.nb_predecessors.tolist()
        self._earliest_start = [-inf] * len(graph.sessions)
        """For each session, when it may start as far as its finished predecessors are concerned."""
        self._decided = [0.0] * len(graph.sessions)
        """For each session, when it was known that it will start."""
        self._plan: list[tuple[float, int, int]] = []
        """When to submit which job of which session, as a heap."""
        for index, session in enumerate(graph.sessions):
            if not self._unfinished_predecessors[index]:
                self._start(index, session.start)

    def next_time(self) -> float:
        """The time of the next job of the sessions that have started or are about to."""
        return self._plan[0][0] if self._plan else inf

    def submit(self, now: float) -> list[Submission]:
        """All jobs whose time has come."""
        submissions = []
        while self._plan and self._plan[0][0] <= now:
            _, index, place = heappop(self._plan)
            job = self._graph.sessions[index].jobs[place]
            note = recorded_note(job, index)
            submissions.append(Submission(job, self._profiles[job.profile], note, self._decided[index]))
        return submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Go on with what depends on the session that is over with this job."""
        index = self._session_of[job.id]
        self._unfinished_jobs[index] -= 1
        if self._unfinished_jobs[index]:
            return
        for successor in self._graph.successors(index):
            start = now + self._graph.think_time(index, successor)
            self._earliest_start[successor] = max(self._earliest_start[successor], start)
            self._unfinished_predecessors[successor] -= 1
            if not self._unfinished_predecessors[successor]:
                self._decided[successor] = now
                self._start(successor, self._earliest_start[successor])

    def _start(self, index: int, time: float) -> None:
        session = self._graph.sessions[index]
        for place, job in enumerate(session.jobs):
            heappush(self._plan, (time + (job.submission_time - session.start), index, place))
