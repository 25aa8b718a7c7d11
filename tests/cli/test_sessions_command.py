"""The command ``sessions`` as its users see it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import networkx as nx
import pytest
from click.testing import CliRunner, Result

from batsched_py.cli import logs
from batsched_py.errors import InputError

#: number, submit, wait, run time, processors and user; the rest is unknown
RECORDS = [
    (1, 100, 0, 60, 2, 7),
    (2, 160, 40, 600, 1, 7),
    (3, 200, 0, 10, 1, 12),
    (4, 4400, 0, 60, 2, 7),
    (5, 9000, 10, 60, 2, 7),
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    lines = [f"{n} {a} {w} {r} {p} -1 -1 -1 -1 -1 1 {u} -1 -1 -1 -1 -1 -1" for n, a, w, r, p, u in RECORDS]
    path.write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(logs.sessions_command, [str(argument) for argument in arguments])


def error_of(*arguments: str | Path) -> str:
    error = run(*arguments).exception
    assert isinstance(error, InputError)
    assert "\n" not in str(error)
    return str(error)


def test_the_table_shows_all_users_and_the_busiest(log: Path) -> None:
    result = run(log)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert lines[0] == ["2", "users", "of", "log.swf,", "sessions", "by", "arrival:60"]
    assert lines[1] == ["all", "users", "user", "7", "user", "12"]
    assert ["jobs", "5", "4", "1"] in lines
    assert ["sessions", "4", "3", "1"] in lines
    assert ["longest", "path", "3", "3", "1"] in lines


def test_json_has_every_user(log: Path) -> None:
    report = msgspec.json.decode(run(log, "--json").stdout)
    assert report["delimiter"] == "arrival:60"
    assert list(report["users"]) == ["7", "12"]
    assert report["all"]["sessions"] == 4
    assert report["users"]["7"]["think_time_quartiles"] == [3835.0, 4070.0, 4305.0]
    assert report["users"]["12"]["think_time_quartiles"] is None


def test_the_delimiter_decides(log: Path) -> None:
    assert msgspec.json.decode(run(log, "--json", "--delimit", "arrival:0").stdout)["all"]["sessions"] == 5
    assert msgspec.json.decode(run(log, "--json", "--delimit", "max:70").stdout)["all"]["sessions"] == 3


def test_all_edges_keeps_those_that_others_imply(log: Path) -> None:
    assert msgspec.json.decode(run(log, "--json").stdout)["users"]["7"]["edges"] == 2
    assert msgspec.json.decode(run(log, "--json", "--all-edges").stdout)["users"]["7"]["edges"] == 3


def test_the_graphs_of_every_user_are_written(log: Path, tmp_path: Path) -> None:
    directory = tmp_path / "new/graphs"
    assert run(log, "--output", directory).exit_code == 0
    names = sorted(path.name for path in directory.iterdir())
    assert names == ["user-12.graphml", "user-12.json", "user-7.graphml", "user-7.json"]
    content = msgspec.json.decode((directory / "user-7.json").read_bytes())
    assert [session["think_times"] for session in content["sessions"]] == [[], [3600.0], [4540.0]]
    assert nx.read_graphml(directory / "user-7.graphml").number_of_edges() == 2


def test_a_bad_delimiter_is_explained(log: Path) -> None:
    assert "arrival:MINUTES" in error_of(log, "--delimit", "hourly")


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    assert "absent.swf" in error_of(tmp_path / "absent.swf")


def test_a_directory_that_cannot_be_made_is_named(log: Path, tmp_path: Path) -> None:
    assert str(log) in error_of(log, "--output", log / "graphs")


def test_a_log_without_users_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "anonymous.swf"
    path.write_text("1 0 0 10 1" + " -1" * 13 + "\n")
    assert "anonymous.swf has no user" in error_of(path)


def test_more_edges_than_can_be_listed_are_refused(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_EDGES", 2)
    assert "3 edges are too many" in error_of(log, "--all-edges")
