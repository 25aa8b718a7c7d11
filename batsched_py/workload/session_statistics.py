"""What session graphs look like: their size, depth, width and think times."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from msgspec import Struct

from batsched_py.workload.session_graph import SessionGraph

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
