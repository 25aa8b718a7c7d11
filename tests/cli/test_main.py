"""The command as a whole: its commands, its exit codes, and how it speaks of errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py import __version__
from batsched_py.cli.main import batsched_py
from tests.processes import COMMAND, environment


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, list(map(str, arguments)))


def test_it_knows_its_version() -> None:
    assert invoke("--version").stdout == f"batsched-py, version {__version__}\n"


def test_every_module_with_a_command_is_a_command() -> None:
    listed = invoke("--help").stdout
    for name in ("run", "serve", "batsim", "schedulers"):
        assert f"\n  {name} " in listed
    for name in ("main", "options", "figures"):
        assert f"\n  {name} " not in listed


@pytest.mark.parametrize("name", ["run", "serve", "batsim", "schedulers"])
def test_every_command_teaches_by_example(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert f"batsched-py {name}" in result.stdout


@pytest.mark.parametrize("arguments", [["fly"], ["options"], ["run", "--fly"], ["run"], ["serve"]])
def test_a_mistake_in_the_command_line_exits_with_2(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr


def test_an_error_is_one_line_and_exits_with_1() -> None:
    result = invoke("run", "-w", "nowhere.swf", "-s", "easy")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "batsched-py: error: nowhere.swf: there is no such file\n"


def test_verbose_shows_where_an_error_comes_from() -> None:
    lines = invoke("-v", "run", "-w", "nowhere.swf", "-s", "easy").stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "batsched-py: error: nowhere.swf: there is no such file"


def test_a_warning_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 0 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\nnonsense\n2 0 0\n")
    process = subprocess.run(
        [*COMMAND, "run", "-w", log, "--hosts", "1", "-s", "fcfs", "-e", tmp_path / "out"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (line,) = process.stderr.splitlines()
    assert line.startswith(f"batsched-py: warning: {log}: 2 of 3 records left out: 2 bad lines (line 2: ")


def test_a_reader_that_goes_away_is_no_error() -> None:
    process = subprocess.Popen(
        [*COMMAND, "schedulers"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.wait(timeout=60)


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("from batsched_py.cli.main import main", ["numpy", "pandas", "zmq", "rich"]),
        ("import batsched_py.cli.run", ["pandas", "networkx", "matplotlib", "zmq"]),
        ("import batsched_py.cli.serve", ["pandas", "networkx", "matplotlib"]),
    ],
)
def test_a_command_imports_only_what_it_needs(code: str, absent: list[str]) -> None:
    check = f"{code}; import sys; print([name for name in {absent!r} if name in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", check],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert process.stdout == "[]\n"
