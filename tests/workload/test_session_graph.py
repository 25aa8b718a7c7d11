"""Which sessions depend on which."""

from __future__ import annotations

from itertools import accumulate
from math import inf

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.protocol.jobs import Job
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import Delimiter, Session, cut_sessions

MINUTE = 60


def graph_of(*spans: tuple[float, float], reduced: bool = True) -> SessionGraph:
    return SessionGraph([Session([], start, finish) for start, finish in spans], reduced)


def edges(graph: SessionGraph) -> list[tuple[int, int]]:
    before, after = graph.edges()
    return list(zip(before.tolist(), after.tolist(), strict=True))


def figure_1() -> list[Session]:
    """Six jobs in four sessions, as the paper describes its figure 1.

    j1 and j2 share a session and j3 opens another; the first two sessions have no predecessor;
    j4 waits for j2 but not for j3.
    """
    submissions = [0, 40, 110, 200, 230, 450]
    finishes = [30, 150, 400, 260, 300, 500]
    jobs = [Job(f"w0!j{i + 1}", a * MINUTE, 1, inf, "p") for i, a in enumerate(submissions)]
    return cut_sessions(jobs, [f * MINUTE for f in finishes], Delimiter.parse("arrival:60"))


def test_the_sessions_of_figure_1() -> None:
    names = [[job.name for job in session.jobs] for session in figure_1()]
    assert names == [["j1", "j2"], ["j3"], ["j4", "j5"], ["j6"]]


def test_the_graph_of_figure_1() -> None:
    graph = SessionGraph(figure_1())
    think_times = dict(zip(edges(graph), (graph.think_times() / MINUTE).tolist(), strict=True))
    assert think_times == {(0, 2): 50, (1, 3): 50, (2, 3): 150}


def test_the_first_two_sessions_of_figure_1_are_roots() -> None:
    assert SessionGraph(figure_1()).nb_predecessors.tolist() == [0, 0, 1, 2]


def test_all_edges_of_figure_1_add_the_implied_one() -> None:
    graph = SessionGraph(figure_1(), reduced=False)
    assert edges(graph) == [(0, 2), (0, 3), (1, 3), (2, 3)]
    assert graph.think_time(0, 3) == 300 * MINUTE


def test_the_longest_path_of_figure_1() -> None:
    assert SessionGraph(figure_1()).longest_path() == 3


def test_a_session_that_starts_as_another_finishes_depends_on_it_without_thinking() -> None:
    graph = graph_of((0, 10), (10, 20))
    assert edges(graph) == [(0, 1)]
    assert graph.think_times().tolist() == [0]


def test_overlapping_sessions_are_all_roots() -> None:
    graph = graph_of((0, 10), (5, 20), (9, 12))
    assert edges(graph) == []
    assert graph.nb_predecessors.tolist() == [0, 0, 0]


def test_a_session_may_wait_for_many_that_ran_side_by_side() -> None:
    graph = graph_of((0, 10), (1, 8), (2, 9), (20, 30))
    assert graph.predecessors(3).tolist() == [0, 1, 2]


def test_sessions_without_duration_at_one_instant_form_a_chain() -> None:
    assert edges(graph_of((5, 5), (5, 5), (5, 5))) == [(0, 1), (1, 2)]


def test_a_session_never_depends_on_one_that_was_submitted_after_it() -> None:
    assert edges(graph_of((5, 9), (5, 5))) == []


def test_a_graph_without_sessions() -> None:
    graph = graph_of()
    assert (graph.nb_edges, graph.longest_path(), edges(graph)) == (0, 0, [])


def test_the_networkx_graph_says_everything() -> None:
    graph = SessionGraph(figure_1()).to_networkx()
    assert graph.nodes[2] == {"start": 200 * MINUTE, "finish": 300 * MINUTE, "jobs": 2}
    assert graph.edges[0, 2] == {"think_time": 50 * MINUTE}


@st.composite
def spans(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Sessions in the order of their starts, with many ties and many without duration."""
    gaps = draw(st.lists(st.integers(0, 3), max_size=25))
    return [(start, start + draw(st.integers(0, 9))) for start in accumulate(gaps)]


def slow_graph(sessions: list[tuple[int, int]]) -> nx.DiGraph:
    """The definition, pair by pair."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(sessions)))
    for after, (start, _) in enumerate(sessions):
        for before, (_, finish) in enumerate(sessions[:after]):
            if finish <= start:
                graph.add_edge(before, after)
    return graph


@given(spans())
def test_all_edges_agree_with_the_definition(sessions: list[tuple[int, int]]) -> None:
    assert edges(graph_of(*sessions, reduced=False)) == sorted(slow_graph(sessions).edges)


@given(spans())
def test_the_reduced_graph_is_the_transitive_reduction(sessions: list[tuple[int, int]]) -> None:
    assert edges(graph_of(*sessions)) == sorted(nx.transitive_reduction(slow_graph(sessions)).edges)


@given(spans(), st.booleans())
def test_edges_predecessors_and_successors_tell_the_same(
    sessions: list[tuple[int, int]], reduced: bool
) -> None:
    graph = graph_of(*sessions, reduced=reduced)
    indices = range(len(sessions))
    expected = edges(graph)
    assert [(before, after) for before in indices for after in graph.successors(before)] == expected
    by_target = [(before, after) for after in indices for before in graph.predecessors(after).tolist()]
    assert sorted(by_target) == expected
    assert by_target == sorted(by_target, key=lambda edge: (edge[1], edge[0]))
    assert graph.nb_edges == len(expected)
    assert graph.nb_predecessors.tolist() == [len(graph.predecessors(i)) for i in indices]
    assert graph.nb_successors.tolist() == [len(graph.successors(i)) for i in indices]
    assert graph.think_times().tolist() == [graph.think_time(*edge) for edge in expected]
    assert np.all(graph.think_times() >= 0)


@given(spans(), st.booleans())
def test_the_longest_path_agrees_with_networkx(sessions: list[tuple[int, int]], reduced: bool) -> None:
    expected = nx.dag_longest_path_length(slow_graph(sessions)) + 1 if sessions else 0
    assert graph_of(*sessions, reduced=reduced).longest_path() == expected
