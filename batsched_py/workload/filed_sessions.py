"""Sessions and their graph as a file tells them, where all else computes them from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.columns import Numbers
from batsched_py.workload.model import Jobs, Places
from batsched_py.workload.session_graph import Indices, SessionGraph, Times
from batsched_py.workload.sessions import SessionRule, Sessions

if TYPE_CHECKING:
    from batsched_py.workload.sessions import Times as ListedTimes


class FiledSession(Struct, eq=False):
    """A session as a file tells it."""

    start: float
    links: list[tuple[int, float]]
    """The sessions that it depends on, in order, with the think time after each."""
    jobs: list[str]
    """The names of its jobs."""


class FiledUser(Struct, eq=False):
    """The sessions of a user as a file tells them, in the order of their starts."""

    sessions: list[FiledSession]
    reduced: bool
    """Whether edges that others imply were left out."""

    def session_of_jobs(self) -> dict[str, int]:
        """For each job, the place of its session."""
        return {name: place for place, session in enumerate(self.sessions) for name in session.jobs}


class _AsFiled(SessionRule):
    """Opens sessions where a file does."""

    def __init__(self, opens: NDArray[Any]) -> None:
        self._opens = opens

    def opens(self, submissions: NDArray[Any], finishes: NDArray[Any]) -> NDArray[Any]:
        """What the file says."""
        return self._opens


class FiledSessions(Sessions):
    """The sessions of one user as a file has them: it says when they start and what they depend on."""

    def __init__(
        self,
        jobs: Jobs,
        places: Places,
        finishes: Callable[[Places], ListedTimes],
        filed: FiledUser,
        opens: NDArray[Any],
    ) -> None:
        """``opens`` says of each job but the first whether it opens a session."""
        super().__init__(jobs, places, finishes, _AsFiled(opens))
        self._filed = filed.sessions
        self._reduced = filed.reduced

    def graph(self, reduced: bool) -> SessionGraph:
        """The graph in the file, which has the edges that it has, ``reduced`` or not."""
        return FiledGraph(self, [session.links for session in self._filed], self._reduced)

    def start_of(self, index: int) -> float:
        """When a session starts if it depends on no other."""
        return self._filed[index].start

    @property
    def first_submission(self) -> float:
        """When the first session starts."""
        return self._filed[0].start

    @property
    def starts(self) -> Numbers:
        """For each session, when it starts if it depends on no other."""
        return np.array([session.start for session in self._filed])


class FiledGraph(SessionGraph):
    """A session graph whose edges and think times are listed; both may be other than those of the log."""

    def __init__(
        self, sessions: Sessions, links: Sequence[Sequence[tuple[int, float]]], reduced: bool
    ) -> None:
        """``links`` are, for each session, the earlier ones that it depends on, and the think times."""
        self.sessions = sessions
        self.reduced = reduced
        self._links = links
        self._following: list[list[tuple[int, float]]] = [[] for _ in links]
        for after, before in enumerate(links):
            for index, think_time in before:
                self._following[index].append((after, think_time))

    @property
    def nb_successors(self) -> Indices:
        """For each session, how many depend on it."""
        return np.array([len(after) for after in self._following], dtype=np.int32)

    @property
    def nb_predecessors(self) -> Indices:
        """For each session, how many it depends on."""
        return np.array([len(before) for before in self._links], dtype=np.int32)

    def following(self, index: int) -> Iterator[tuple[int, float]]:
        """The sessions that depend on a session, and the think time before each of them."""
        return iter(self._following[index])

    def successors(self, index: int) -> Sequence[int]:
        """The sessions that depend on a session."""
        return [after for after, _ in self._following[index]]

    def predecessors(self, index: int) -> Indices:
        """The sessions that a session depends on, in order."""
        return np.array([before for before, _ in self._links[index]], dtype=np.int32)

    def think_time(self, before: int, after: int) -> float:
        """How long the user thinks between the finish of one session and the start of another."""
        return dict(self._links[after])[before]

    def think_times_before(self, index: int) -> list[float]:
        """How long the user thinks after each of the sessions that a session depends on."""
        return [think_time for _, think_time in self._links[index]]

    def edges(self) -> tuple[Indices, Indices]:
        """The two ends of every edge, sorted."""
        before = np.repeat(np.arange(len(self._links)), self.nb_successors)
        after = [session for following in self._following for session, _ in following]
        return before, np.array(after, dtype=np.int32)

    def think_times(self) -> Times:
        """The think time of every edge, in the order of :meth:`edges`."""
        return np.array([think_time for following in self._following for _, think_time in following])

    def longest_path(self) -> int:
        """How many sessions the longest chain of dependent sessions has."""
        lengths: list[int] = []
        for before in self._links:
            lengths.append(1 + max((lengths[index] for index, _ in before), default=0))
        return max(lengths, default=0)
