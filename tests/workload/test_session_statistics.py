"""Figures of session graphs, by hand and against those of the paper (Madon et al. 2024, section 7.2)."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from batsched_py.workload.session_graph import SessionGraph, session_statistics
from batsched_py.workload.sessions import Delimiter, Session, cut_workload
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

HOUR = 3600


def graph_of(*spans: tuple[float, float], reduced: bool = True) -> SessionGraph:
    return SessionGraph([Session([], start, finish) for start, finish in spans], reduced)


def graphs_of_log(path: Path, delimiter: str) -> dict[str, SessionGraph]:
    sessions = cut_workload(swf_to_workload(read_swf(path)), Delimiter.parse(delimiter))
    return {user: SessionGraph(sessions[user]) for user in sessions}


@pytest.fixture(scope="module")
def kth_a0(shared: Path) -> dict[str, SessionGraph]:
    return graphs_of_log(shared / "logs/KTH-SP2-1996-2.1-cln.swf.gz", "arrival:0")


@pytest.fixture(scope="module")
def kth_a60(shared: Path) -> dict[str, SessionGraph]:
    return graphs_of_log(shared / "logs/KTH-SP2-1996-2.1-cln.swf.gz", "arrival:60")


def test_one_graph() -> None:
    figures = session_statistics([graph_of((0, 10), (5, 20), (30, 40), (50, 60), (55, 70))])
    assert (figures.sessions, figures.roots, figures.edges) == (5, 2, 4)
    assert (figures.longest_path, figures.arity) == (3, 2)


def test_think_times_of_several_graphs_are_put_together() -> None:
    graphs = [graph_of((0, 0), (HOUR - 1, HOUR)), graph_of((0, 0), (HOUR, HOUR), (12 * HOUR, 13 * HOUR))]
    figures = session_statistics(graphs)
    assert figures.users == 2
    assert figures.think_time_quartiles == (HOUR - 0.5, HOUR, 6 * HOUR)
    assert figures.think_times_below_1h == pytest.approx(1 / 3)
    assert figures.think_times_below_10h == pytest.approx(2 / 3)


def test_the_longest_path_and_the_arity_are_those_of_the_extreme_users() -> None:
    long = graph_of((0, 1), (2, 3), (4, 5))
    wide = graph_of((0, 1), (2, 9), (3, 9), (4, 9))
    figures = session_statistics([long, wide])
    assert (figures.longest_path, figures.arity) == (3, 3)


def test_a_single_session_has_no_think_times() -> None:
    figures = session_statistics([graph_of((0, 1))])
    assert figures.think_time_quartiles is None
    assert figures.think_times_below_1h is None
    assert (figures.longest_path, figures.arity) == (1, 0)


def test_kth_has_the_jobs_and_users_of_the_paper(kth_a0: dict[str, SessionGraph]) -> None:
    figures = session_statistics(kth_a0.values())
    assert (figures.users, figures.jobs, figures.sessions) == (214, 28475, 28475)


def test_think_times_of_kth_agree_with_the_paper(
    kth_a0: dict[str, SessionGraph], kth_a60: dict[str, SessionGraph]
) -> None:
    """The paper says 75 % and 35 % for a0, 50 % and around 13 % for a60, of two logs of which this is one."""
    a0, a60 = session_statistics(kth_a0.values()), session_statistics(kth_a60.values())
    assert a0.think_times_below_10h == pytest.approx(0.75, abs=0.02)
    assert a0.think_times_below_1h == pytest.approx(0.35, abs=0.02)
    assert a60.think_times_below_10h == pytest.approx(0.50, abs=0.02)
    assert a60.think_times_below_1h == pytest.approx(0.13, abs=0.02)


def test_no_graph_of_kth_a60_has_an_arity_above_11(kth_a60: dict[str, SessionGraph]) -> None:
    assert 1 < session_statistics(kth_a60.values()).arity <= 11


def test_the_longest_paths_of_kth_have_hundreds_of_sessions(
    kth_a0: dict[str, SessionGraph], kth_a60: dict[str, SessionGraph]
) -> None:
    a0, a60 = session_statistics(kth_a0.values()), session_statistics(kth_a60.values())
    assert 1000 > a0.longest_path > a60.longest_path > 100


def test_networkx_reduces_the_graphs_of_kth_a60_alike(kth_a60: dict[str, SessionGraph]) -> None:
    for graph in kth_a60.values():
        if len(graph.sessions) <= 100:
            everything = SessionGraph(graph.sessions, reduced=False).to_networkx()
            assert set(nx.transitive_reduction(everything).edges) == set(graph.to_networkx().edges)


def test_the_busiest_user_of_hpc2n_has_the_predecessors_of_the_definition(shared: Path) -> None:
    """It waits for what had finished by then, except what had finished before the last of that started."""
    graphs = graphs_of_log(shared / "logs/HPC2N-2002-2.2-cln.swf.gz", "arrival:0")
    graph = max(graphs.values(), key=lambda graph: len(graph.sessions))
    assert len(graph.sessions) == 39220
    for index in range(1, len(graph.sessions), 100):
        finished = np.flatnonzero(graph.finishes[:index] <= graph.starts[index])
        latest = finished[-1]
        implied = (graph.finishes[finished] <= graph.starts[latest]) & (finished != latest)
        assert graph.predecessors(index).tolist() == finished[~implied].tolist()
