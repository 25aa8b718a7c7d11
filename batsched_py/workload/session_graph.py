"""The session graph: which sessions a user began only after others had finished.

A session depends on every earlier one whose jobs had all finished by the time it started, and the user's
*think time* is what passed in between. Sessions are intervals of time, so this relation is an interval order,
and that makes the graph simple. Number the sessions in the order of their starts: those that depend on
session *i* are all sessions from some number ``first[i]`` on, since those that start later depend on it too.
An edge *i -> j* is implied by others when some session between the two depends on *i* and *j* depends on it,
which happens from ``stop[i]`` on, the smallest ``first`` of all that depend on *i*. What remains of the
transitive reduction are the edges from *i* to ``first[i] ... stop[i] - 1``: two numbers a session,
found by one sort, however many edges they represent.

Graphs are written to files and read again in ``session_files.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.columns import Numbers
from batsched_py.workload.sessions import Session, Sessions

if TYPE_CHECKING:
    import networkx


Times = NDArray[np.float64]
Indices = NDArray[np.signedinteger]


class SessionGraph:
    """The sessions of one user, in the order of their starts, and what depends on what.

    A session is named by its index in ``sessions``. Of two sessions without duration that start at the same
    instant the later one depends on the earlier one, never the other way round, so there are no cycles.
    """

    def __init__(self, sessions: Sequence[Session], reduced: bool = True) -> None:
        """Link ``sessions``; ``reduced`` leaves out the edges that others imply."""
        self.sessions = sessions
        self.reduced = reduced
        count = len(sessions)
        first = np.maximum(np.arange(1, count + 1), np.searchsorted(self.starts, self.finishes))
        self._first: Indices = first.astype(np.int32)
        self._stop: Indices = (
            self._earliest_dependent()[first] if reduced else np.full(count, count, dtype=np.int32)
        )

    @property
    def starts(self) -> Numbers:
        """For each session, when it started."""
        sessions = self.sessions
        return sessions.starts if isinstance(sessions, Sessions) else np.array([s.start for s in sessions])

    @property
    def finishes(self) -> Numbers:
        """For each session, when it had finished."""
        sessions = self.sessions
        return sessions.finishes if isinstance(sessions, Sessions) else np.array([s.finish for s in sessions])

    @property
    def nb_jobs(self) -> Numbers:
        """For each session, how many jobs it has."""
        if isinstance(self.sessions, Sessions):
            return self.sessions.nb_jobs
        return np.array([len(session.jobs) for session in self.sessions])

    def _earliest_dependent(self) -> Indices:
        """For each index, the first session that depends on some session from that index on."""
        smallest_so_far = np.minimum.accumulate(self._first[::-1])[::-1]
        return np.append(smallest_so_far, np.int32(len(self.sessions)))

    @cached_property
    def _by_finish(self) -> Indices:
        """The sessions in the order of their finishes.

        ``first`` and ``stop`` both grow along it, so the predecessors of a session stand side by side in it.
        """
        return np.argsort(self.finishes, kind="stable")

    @cached_property
    def _predecessor_bounds(self) -> tuple[Indices, Indices]:
        """Where in the order of finishes the predecessors of each session begin and end."""
        sessions = np.arange(len(self.sessions))
        return (
            np.searchsorted(self._stop[self._by_finish], sessions, side="right"),
            np.searchsorted(self._first[self._by_finish], sessions, side="right"),
        )

    @property
    def nb_edges(self) -> int:
        """How many edges the graph has."""
        return int(self.nb_successors.sum())

    @property
    def nb_successors(self) -> Indices:
        """For each session, how many depend on it."""
        return self._stop - self._first

    @property
    def nb_predecessors(self) -> Indices:
        """For each session, how many it depends on; none for a root, which starts when it was recorded to."""
        count = len(self.sessions)
        begun, over = (np.bincount(edge, minlength=count + 1) for edge in (self._first, self._stop))
        return np.cumsum(begun - over)[:count]

    def following(self, index: int) -> Iterator[tuple[int, float]]:
        """The sessions that depend on a session, and how long the user thought before each of them."""
        finish = self.finishes.item(index)
        for successor in self.successors(index):
            yield successor, self._start_of(successor) - finish

    def _start_of(self, index: int) -> float:
        sessions = self.sessions
        return sessions.start_of(index) if isinstance(sessions, Sessions) else sessions[index].start

    def successors(self, index: int) -> Sequence[int]:
        """The sessions that depend on a session."""
        return range(self._first.item(index), self._stop.item(index))

    def predecessors(self, index: int) -> Indices:
        """The sessions that a session depends on, in order."""
        low, high = self._predecessor_bounds
        return np.sort(self._by_finish[low[index] : high[index]])

    def think_time(self, before: int, after: int) -> float:
        """How long the user thought between the finish of one session and the start of another."""
        return self._start_of(after) - float(self.finishes.item(before))

    def think_times_before(self, index: int) -> list[float]:
        """How long the user thought after each of :meth:`predecessors` of a session."""
        thought: list[float] = (self._start_of(index) - self.finishes[self.predecessors(index)]).tolist()
        return thought

    def edges(self) -> tuple[Indices, Indices]:
        """The two ends of every edge, sorted."""
        counts = self.nb_successors
        before = np.repeat(np.arange(len(self.sessions)), counts)
        rank = np.arange(len(before)) - np.repeat(np.cumsum(counts) - counts, counts)
        return before, self._first[before] + rank

    def think_times(self) -> Times:
        """The think time of every edge, in the order of :meth:`edges`."""
        before, after = self.edges()
        return self.starts[after].astype(np.float64) - self.finishes[before]

    def longest_path(self) -> int:
        """How many sessions the longest chain of dependent sessions has."""
        following = self._earliest_dependent()
        length, index = 0, 0
        while index < len(self.sessions):
            index = int(following[index])
            length += 1
        return length

    def to_networkx(self) -> networkx.DiGraph:
        """A graph with ``start``, ``finish`` and number of ``jobs`` on nodes, and ``think_time`` on edges."""
        import networkx

        graph = networkx.DiGraph()
        spans = (column.tolist() for column in (self.starts, self.finishes, self.nb_jobs))
        for index, (start, finish, jobs) in enumerate(zip(*spans, strict=True)):
            graph.add_node(index, start=float(start), finish=float(finish), jobs=jobs)
        before, after = (ends.tolist() for ends in self.edges())
        graph.add_weighted_edges_from(
            zip(before, after, self.think_times().tolist(), strict=True), weight="think_time"
        )
        return graph


HOUR = 3600.0


class SessionStatistics(Struct, frozen=True, kw_only=True):
    """The figures of one user's session graph, or of those of many users together."""

    users: int
    jobs: int
    sessions: int
    roots: int
    """Sessions that depend on no other and so start when they were recorded to."""
    edges: int
    longest_path: int
    """Sessions on the longest chain of dependent sessions, of all users."""
    arity: int
    """Most sessions that depend on one and the same session."""
    mean_jobs_per_session: float
    max_jobs_per_session: int
    think_time_quartiles: tuple[float, float, float] | None
    """Think times in seconds that 25 %, 50 % and 75 % of the edges do not exceed; none without edges."""
    think_times_below_1h: float | None
    """Share of the edges, from 0 to 1, with a think time of less than an hour."""
    think_times_below_10h: float | None


def session_statistics(graphs: Collection[SessionGraph]) -> SessionStatistics:
    """The figures of some users' session graphs, each of which has at least one session."""
    nb_jobs = np.concatenate([graph.nb_jobs for graph in graphs])
    think_times = np.concatenate([graph.think_times() for graph in graphs])
    some = len(think_times) > 0
    low, middle, high = np.quantile(think_times, [0.25, 0.5, 0.75]).tolist() if some else (0, 0, 0)
    return SessionStatistics(
        users=len(graphs),
        jobs=int(nb_jobs.sum()),
        sessions=len(nb_jobs),
        roots=sum(int((graph.nb_predecessors == 0).sum()) for graph in graphs),
        edges=len(think_times),
        longest_path=max(graph.longest_path() for graph in graphs),
        arity=max(int(graph.nb_successors.max()) for graph in graphs),
        mean_jobs_per_session=float(nb_jobs.mean()),
        max_jobs_per_session=int(nb_jobs.max()),
        think_time_quartiles=(low, middle, high) if some else None,
        think_times_below_1h=float((think_times < HOUR).mean()) if some else None,
        think_times_below_10h=float((think_times < 10 * HOUR).mean()) if some else None,
    )
