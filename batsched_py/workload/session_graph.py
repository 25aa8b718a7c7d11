"""The session graph: which sessions a user began only after others had finished.

A session depends on every earlier one whose jobs had all finished by the time it started, and the user's
*think time* is what passed in between. Sessions are intervals of time, so this relation is an interval order,
and that makes the graph simple. Number the sessions in the order of their starts: those that depend on
session *i* are all sessions from some number ``first[i]`` on, since those that start later depend on it too.
An edge *i -> j* is implied by others when some session between the two depends on *i* and *j* depends on it,
which happens from ``stop[i]`` on, the smallest ``first`` of all that depend on *i*. What remains of the
transitive reduction are the edges from *i* to ``first[i] ... stop[i] - 1``: two numbers a session,
found by one sort, however many edges they represent.

Graphs are written as files, one JSON file per user, described in ``docs/session-format.md``, and GraphML.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.protocol.dialects import BATSIM4
from batsched_py.workload.columns import Numbers
from batsched_py.workload.model import Workload
from batsched_py.workload.sessions import Session, SessionRule, Sessions

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
        sessions = self.sessions
        return (
            sessions.nb_jobs if isinstance(sessions, Sessions) else np.array([len(s.jobs) for s in sessions])
        )

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


FORMAT_VERSION = 1

_GRAPHML_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="start" for="node" attr.name="start" attr.type="double"/>
<key id="finish" for="node" attr.name="finish" attr.type="double"/>
<key id="jobs" for="node" attr.name="jobs" attr.type="int"/>
<key id="think_time" for="edge" attr.name="think_time" attr.type="double"/>
"""


def write_session_json(
    path: Path, user: str, graph: SessionGraph, workload: Workload, delimiter: SessionRule
) -> None:
    """Write the sessions of a user with their jobs, those jobs' profiles, and what depends on what.

    Sessions are written one by one, a line each: a graph may have millions of edges.
    """
    jobs = [job for session in graph.sessions for job in session.jobs]
    head = {
        "format": "batsched-py sessions",
        "version": FORMAT_VERSION,
        "user": user,
        "delimiter": str(delimiter),
        "edges": "reduced" if graph.reduced else "all",
        "nb_res": workload.nb_hosts,
        "profiles": {job.profile: BATSIM4.spell_profile(workload.profiles[job.profile]) for job in jobs},
    }
    with path.open("wb") as file:
        file.write(msgspec.json.encode(head)[:-1] + b',"sessions":[')
        for index in range(len(graph.sessions)):
            file.write(b",\n" if index else b"\n")
            file.write(msgspec.json.encode(_session_fields(graph, index)))
        file.write(b"\n]}\n")


def _session_fields(graph: SessionGraph, index: int) -> dict[str, Any]:
    session = graph.sessions[index]
    predecessors = graph.predecessors(index)
    return {
        "id": index,
        "start": session.start,
        "finish": session.finish,
        "predecessors": predecessors.tolist(),
        "think_times": (session.start - graph.finishes[predecessors]).tolist(),
        "jobs": [BATSIM4.spell_job(job) | {"id": job.name} for job in session.jobs],
    }


def write_session_graphml(path: Path, user: str, graph: SessionGraph) -> None:
    """Write the graph of a user as GraphML, with the attributes of :meth:`SessionGraph.to_networkx`."""
    from xml.sax.saxutils import quoteattr  # which imports much, for the network

    before, after = (ends.tolist() for ends in graph.edges())
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_GRAPHML_HEAD)
        file.write(f'<graph id={quoteattr(user)} edgedefault="directed">\n')
        for index, session in enumerate(graph.sessions):
            data = {"start": session.start, "finish": session.finish, "jobs": len(session.jobs)}
            file.write(f'<node id="{index}">{"".join(map(_data, data, data.values()))}</node>\n')
        for source, target, think_time in zip(before, after, graph.think_times().tolist(), strict=True):
            data_of_edge = _data("think_time", think_time)
            file.write(f'<edge source="{source}" target="{target}">{data_of_edge}</edge>\n')
        file.write("</graph>\n</graphml>\n")


def _data(key: str, value: float) -> str:
    return f'<data key="{key}">{value!r}</data>'
