"""Session graphs written to files."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import msgspec
import networkx as nx
import pytest

from batsched_py.campaign.plan_file import read_plan
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.users import USERS
from batsched_py.workload.model import Workload
from batsched_py.workload.session_files import write_session_graphml, write_session_json
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import Delimiter, Session
from tests.feedback import Record, replay, submissions, workload_of
from tests.processes import call_here

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


@pytest.fixture
def sample() -> Path:
    return Path(__file__).parents[2] / "workloads" / "sample.swf"


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


@pytest.mark.parametrize("rule", ["arrival:60", "last:20", "max:20"])
@pytest.mark.parametrize(
    "output", [["--output", "s.json"], ["--output", "s"], ["--output", "s", "--format", "batmen"]]
)
def test_a_run_with_the_files_is_the_run_with_the_rule(
    sample: Path, tmp_path: Path, rule: str, output: list[str]
) -> None:
    files = str(tmp_path / output[1])
    call_here(["sessions", sample, "--delimit", rule, "--output", files, *output[2:]])
    with_rule = replayed(sample, tmp_path / "rule", rule)
    assert replayed(sample, tmp_path / "files", files) == with_rule
    assert replayed(sample, tmp_path / "other", "arrival:0") != with_rule


def replayed(log: Path, prefix: Path, sessions: str, *options: str) -> list[bytes]:
    """The files that a run writes."""
    words = ["run", "-w", log, "--hosts", "32", "-s", "easy", "--users", "think-time", "--sessions", sessions]
    code, _, _ = call_here([*words, *options, "--no-control", "-e", prefix])
    assert code == 0
    return [Path(f"{prefix}_{name}.csv").read_bytes() for name in ("jobs", "schedule")]


def test_all_edges_are_kept_in_the_file(sample: Path, tmp_path: Path) -> None:
    files = str(tmp_path / "all.json")
    call_here(["sessions", sample, "--all-edges", "--output", files])
    with_rule = replayed(sample, tmp_path / "rule", "arrival:60", "-u", "edges=all")
    assert replayed(sample, tmp_path / "files", files) == with_rule
    assert replayed(sample, tmp_path / "reduced", "arrival:60") != with_rule


def test_python_reads_session_files(sample: Path, tmp_path: Path) -> None:
    import batsched_py as bp

    files = str(tmp_path / "a60.json")
    call_here(["sessions", sample, "--output", files])
    one, other = (
        bp.simulate(sample, "easy", hosts=32, users="think-time", sessions=sessions).jobs
        for sessions in ("arrival:60", files)
    )
    assert one.equals(other)


def test_the_same_users_have_longer_jobs_and_think_as_long(tmp_path: Path) -> None:
    """A user thinks for 5 s behind a job of 10 s; with jobs twice as long, the next one comes 10 s later."""
    log, longer, files = (tmp_path / name for name in ("log.swf", "longer.swf", "sessions.json"))
    line = "{} {} 0 {} 1 -1 -1 1 -1 -1 1 7 1 -1 1 -1 -1 -1\n"
    log.write_text("; MaxProcs: 8\n" + line.format(1, 0, 10) + line.format(2, 15, 4))
    call_here(["sessions", log, "--delimit", "arrival:0", "--output", files])
    call_here(["change", log, longer, "load", "factor=2", "by=run-times"])
    jobs, _ = replayed(longer, tmp_path / "replayed", str(files))
    assert jobs.decode().splitlines()[2].split(",")[3] == "25.000000"


def test_files_that_are_read_are_written_again(sample: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    call_here(["sessions", sample, "--output", first])
    _, out, _ = call_here(["sessions", sample, "--delimit", first, "--output", second, "--json"])
    _, by_rule, _ = call_here(["sessions", sample, "--json"])
    assert second.read_text().replace('"first.json"', '"arrival:60"') == first.read_text()
    assert out.replace('"first.json"', '"arrival:60"') == by_rule


def test_an_edited_file_is_followed(tmp_path: Path) -> None:
    """The user thinks for 100 s instead of 5, and begins at 7."""
    workload = workload_of([Record(1, 0, 10), Record(1, 15, 1)])
    sessions = [
        {"id": 0, "start": 7, "predecessors": [], "think_times": [], "jobs": [{"id": "1"}]},
        {"id": 1, "start": 15, "predecessors": [0], "think_times": [100], "jobs": [{"id": 2}]},
    ]
    users = USERS.create("think-time", {"sessions": file_of(tmp_path, sessions)}).users(workload)
    assert submissions(replay(users, hosts=1)) == {"1": 7, "2": 117}


def file_of(tmp_path: Path, sessions: list[dict[str, Any]], **head: object) -> str:
    """A file with the sessions of one user."""
    path = tmp_path / "edited.json"
    path.write_bytes(
        msgspec.json.encode({"format": "batsched-py sessions", "version": 1, **head, "sessions": sessions})
    )
    return str(path)


ROOT = {"id": 0, "start": 0, "predecessors": [], "think_times": [], "jobs": [{"id": "1"}]}
SECOND_SESSION = {"id": 1, "start": 15, "predecessors": [0], "think_times": [5], "jobs": [{"id": "2"}]}


@pytest.mark.parametrize(
    ("sessions", "head", "fault"),
    [
        ([ROOT], {}, "job 2 of user 1 is in no session"),
        ([ROOT, SECOND_SESSION | {"jobs": [{"id": 2}, {"id": 3}]}], {}, "job 3 of user 1 is not in the log"),
        ([ROOT | {"jobs": [{"id": 2}]}, SECOND_SESSION | {"jobs": [{"id": 1}]}], {}, "later session"),
        ([SECOND_SESSION, ROOT], {}, "does not come before it"),
        ([ROOT, SECOND_SESSION | {"id": 0}], {}, "is there twice"),
        ([ROOT, SECOND_SESSION | {"think_times": []}], {}, "needs one think time for each"),
        ([ROOT, SECOND_SESSION | {"think_times": [-1]}], {}, "negative or infinite"),
        ([ROOT | {"start": 20}, SECOND_SESSION], {}, "one before that of the session before it"),
        ([ROOT | {"jobs": []}, SECOND_SESSION], {}, "has no jobs"),
        ([ROOT], {"format": "other"}, "is of format 'other'"),
        ([ROOT], {"version": 2}, "is of version 2; version 1 can be read"),
        ("nothing", {}, "is no session file: Expected `array`"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(
    tmp_path: Path, sessions: Any, head: dict[str, object], fault: str
) -> None:
    workload = workload_of([Record(1, 0, 10), Record(1, 15, 1)])
    behaviour = USERS.create("think-time", {"sessions": file_of(tmp_path, sessions, **head)})
    with pytest.raises(InputError, match=fault) as error:
        behaviour.users(workload)
    assert "\n" not in str(error.value)


def test_files_that_are_not_there_are_said(tmp_path: Path) -> None:
    workload = workload_of([Record(1, 0, 10)])
    with pytest.raises(InputError, match="cannot be read: No such file"):
        USERS.create("think-time", {"sessions": str(tmp_path / "no.json")}).users(workload)
    with pytest.raises(InputError, match=r"has no files that end in \.json"):
        USERS.create("think-time", {"sessions": str(tmp_path)}).users(workload)


def test_a_plan_takes_a_file_as_an_input_and_no_folder(sample: Path, tmp_path: Path) -> None:
    call_here(["sessions", sample, "--output", tmp_path / "a60.json"])
    plan = tmp_path / "plan.toml"
    text = (
        f'[logs]\nx = {{ file = "{sample}" }}\n[platforms]\nh = {{ hosts = 64 }}\n[schedulers]\neasy = {{}}\n'
        "[users.think-time]\noptions = { sessions = "
    )
    plan.write_text(f'{text}"a60.json" }}\n')
    (run,) = read_plan(plan).runs
    assert str(tmp_path / "a60.json") in run.experiment.files
    (tmp_path / "folder").mkdir()
    plan.write_text(f'{text}"folder" }}\n')
    with pytest.raises(InputError, match="folder is a folder; a plan takes one file"):
        read_plan(plan)


def test_batmen_reads_no_file_of_all_users(sample: Path, tmp_path: Path) -> None:
    code, _, error = call_here(["sessions", sample, "--output", tmp_path / "x.json", "--format", "batmen"])
    assert (code, "Batmen reads a file for each user" in error) == (1, True)
