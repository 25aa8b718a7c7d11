"""The session graph: which sessions a user began only after others had finished.

A session depends on every earlier one whose jobs had all finished by the time it started, and the user's
*think time* is what passed in between. Sessions are intervals of time, so this relation is an interval order,
and that makes the graph simple. Number the sessions in the order of their starts: those that depend on
session *i* are all sessions from some number ``first[i]`` on, since those that start later depend on it too.
An edge *i -> j* is implied by others when some session between the two depends on *i* and *j* depends on it,
which happens from ``stop[i]`` on, the smallest ``first`` of all that depend on *i*. What remains of the
transitive reduction are the edges from *i* to ``first[i] ... stop[i] - 1``: two numbers a session,
found by one sort, however many edges they represent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
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
        if isinstance(self.sessions, Sessions):
            return self.sessions.starts
        return np.array([session.start for session in self.sessions], dtype=np.float64)

    @property
    def finishes(self) -> Numbers:
        """For each session, when it had finished."""
        if isinstance(self.sessions, Sessions):
            return self.sessions.finishes
        return np.array([session.finish for session in self.sessions], dtype=np.float64)

    @property
    def nb_jobs(self) -> Numbers:
        """For each session, how many jobs it has."""
        if isinstance(self.sessions, Sessions):
            return self.sessions.nb_jobs
        return np.array([len(session.jobs) for session in self.sessions], dtype=np.int32)

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

    @property
    def successor_bounds(self) -> tuple[Indices, Indices]:
        """For each session, the first one that depends on it, and the one behind the last."""
        return self._first, self._stop

    def successors(self, index: int) -> range:
        """The sessions that depend on a session."""
        return range(self._first.item(index), self._stop.item(index))

    def predecessors(self, index: int) -> Indices:
        """The sessions that a session depends on, in order."""
        low, high = self._predecessor_bounds
        return np.sort(self._by_finish[low[index] : high[index]])

    def think_time(self, before: int, after: int) -> float:
        """How long the user thought between the finish of one session and the start of another."""
        return self.sessions[after].start - self.sessions[before].finish

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
