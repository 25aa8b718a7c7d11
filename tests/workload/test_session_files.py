"""Session graphs written to files."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import pytest

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph, write_session_graphml, write_session_json
from batsched_py.workload.sessions import Delimiter, Session

FIRST = Job("w0!1", 0.0, 4, 120.0, "short", {"user": 7})
SECOND = Job("w0!2", 10.5, 1, inf, "long", {"user": 7, "queue": 3})
THIRD = Job("w0!3", 5000.0, 1, 120.0, "short", {"user": 7})
WORKLOAD = Workload(
    "w0",
    [FIRST, SECOND, THIRD],
    {
        "short": Delay(60),
        "long": Delay(600),
        "foreign": Delay(1),
    },
    nb_hosts=8,
)


def graph(reduced: bool = True) -> SessionGraph:
    """Two sessions side by side, one after both, one after all."""
    sessions = [
        Session([FIRST], 0.0, 70.0),
        Session([SECOND], 10.5, 610.5),
        Session([THIRD], 5000.0, 5060.0),
        Session([], 5060.0, 5060.0),
    ]
    return SessionGraph(sessions, reduced)


def written(tmp_path: Path, reduced: bool = True) -> dict[str, Any]:
    path = tmp_path / "user.json"
    write_session_json(path, "7", graph(reduced), WORKLOAD, Delimiter("arrival", 60))
    return msgspec.json.decode(path.read_bytes())


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    content = written(tmp_path)
    assert (content["format"], content["version"]) == ("batsched-py sessions", 1)
    assert (content["user"], content["delimiter"], content["nb_res"]) == ("7", "arrival:60", 8)


def test_a_session_has_its_times_and_what_it_depends_on(tmp_path: Path) -> None:
    session = written(tmp_path)["sessions"][2]
    del session["jobs"]
    assert session == {
        "id": 2,
        "start": 5000.0,
        "finish": 5060.0,
        "predecessors": [0, 1],
        "think_times": [4930.0, 4389.5],
    }


def test_a_root_has_no_predecessors(tmp_path: Path) -> None:
    session = written(tmp_path)["sessions"][1]
    assert (session["predecessors"], session["think_times"]) == ([], [])


def test_jobs_are_in_the_form_of_batsim(tmp_path: Path) -> None:
    jobs = [job for session in written(tmp_path)["sessions"] for job in session["jobs"]]
    assert jobs[:2] == [
        {"id": "1", "subtime": 0.0, "res": 4, "walltime": 120.0, "profile": "short", "user": 7},
        {"id": "2", "subtime": 10.5, "res": 1, "profile": "long", "user": 7, "queue": 3},
    ]


def test_only_the_profiles_of_its_jobs_are_in_a_file(tmp_path: Path) -> None:
    assert written(tmp_path)["profiles"] == {
        "short": {"type": "delay", "delay": 60},
        "long": {"type": "delay", "delay": 600},
    }


@pytest.mark.parametrize(
    ("reduced", "edges", "predecessors"), [(True, "reduced", [2]), (False, "all", [0, 1, 2])]
)
def test_the_file_says_which_edges_it_has(
    tmp_path: Path, reduced: bool, edges: str, predecessors: list[int]
) -> None:
    content = written(tmp_path, reduced)
    assert content["edges"] == edges
    assert content["sessions"][3]["predecessors"] == predecessors


def test_every_session_has_a_line_of_its_own(tmp_path: Path) -> None:
    written(tmp_path)
    lines = (tmp_path / "user.json").read_text().splitlines()
    assert [msgspec.json.decode(line.rstrip(","))["id"] for line in lines[1:-1]] == [0, 1, 2, 3]


def test_graphml_is_the_networkx_graph(tmp_path: Path) -> None:
    path = tmp_path / "user.graphml"
    write_session_graphml(path, "7", graph())
    read = nx.read_graphml(path, node_type=int)
    expected = graph().to_networkx()
    assert dict(read.nodes(data=True)) == dict(expected.nodes(data=True))
    assert list(read.edges(data="think_time")) == list(expected.edges(data="think_time"))
    assert read.is_directed()


def test_graphml_survives_a_user_with_any_name(tmp_path: Path) -> None:
    path = tmp_path / "user.graphml"
    write_session_graphml(path, '<a> & "b"', graph())
    assert nx.read_graphml(path).number_of_nodes() == 4
