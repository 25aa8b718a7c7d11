"""The command as a whole: its commands, its exit codes, and how it speaks of errors."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules

import click
import pytest
from click.testing import CliRunner, Result

from batsched_py import __version__, cli, native
from batsched_py.cli.main import COMMANDS, batsched_py
from tests.processes import COMMAND, PATIENCE, ROOT, call_here, environment

SAMPLE = ROOT / "workloads" / "sample.swf"

#: What takes long to load.
LIBRARIES = {"numpy", "pandas", "networkx", "rich", "zmq", "matplotlib"}


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, list(map(str, arguments)))


def test_it_knows_its_version() -> None:
    assert invoke("--version").stdout == f"batsched-py {__version__} ({native.describe()})\n"


def test_every_command_in_a_module_is_listed() -> None:
    names = {f"cli.{module.name}" for module in iter_modules(cli.__path__)} | {
        m for m, _ in COMMANDS.values()
    }
    modules = [importlib.import_module(f"batsched_py.{name}") for name in names]
    members = [member for module in modules for member in vars(module).values()]
    commands = {id(member): member for member in members if isinstance(member, click.Command)}.values()
    inner = {id(each) for group in commands for each in getattr(group, "commands", {}).values()}
    defined = [command.name for command in commands if id(command) not in inner | {id(batsched_py)}]
    assert sorted(map(str, defined)) == list(COMMANDS) == sorted(COMMANDS)
    listed = invoke("--help").stdout
    for name, (_, use) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(use)}$", listed, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_teaches_by_example(name: str) -> None:
    result = invoke(name, "--help")
    assert result.exit_code == 0
    assert f"batsched-py {name}" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["options"],
        ["run", "--fly"],
        ["run"],
        ["run", "-s", "easy"],
        ["run", "-w", "x.swf"],
        ["run", "-w", "x.swf", "-s", "easy", "--mmax", "-1"],
        ["serve"],
    ],
)
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
        timeout=PATIENCE,
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
    process.wait(timeout=PATIENCE)


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        ("--help", LIBRARIES),
        ("--version", LIBRARIES),
        *((f"{name} --help", LIBRARIES) for name in COMMANDS),
        (f"run -w {SAMPLE} -s easy -e {{tmp_path}}/out", LIBRARIES),
        *(
            (f"run -w {SAMPLE} -s easy --users {users} -e {{tmp_path}}/out", LIBRARIES)
            for users in ("rigid", "think-time")
            if native.library is not None
        ),
        ("serve -s easy --endpoint nonsense", LIBRARIES - {"numpy", "zmq"}),
        ("schedulers easy", LIBRARIES - {"numpy"}),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: str, absent: set[str], tmp_path: Path) -> None:
    """A quick start is worth more than a quick look at what is not asked for."""
    check = (
        "import sys; from batsched_py.cli.main import batsched_py\n"
        f"try: batsched_py({arguments.format(tmp_path=tmp_path).split()!r})\n"
        f"finally: print(sorted({absent!r} & set(sys.modules)), file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", check],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert process.stderr.splitlines()[-1] == "[]", process.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["rum"], "No such command 'rum' (did you mean 'run'?)."),
        (["list", "scheduler"], "(did you mean 'schedulers'?)."),
        (["plot", "gant"], "No such command 'gant' (did you mean 'gantt'?)."),
        (["schedulers", "eazy"], "there is no scheduler 'eazy' (did you mean 'easy'?); known are"),
    ],
)
def test_a_name_that_is_nearly_right_is_recognised(words: list[str], meant: str) -> None:
    code, _, err = call_here(words)
    assert code
    assert meant in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_prints_what_the_shell_needs(shell: str) -> None:
    line = f"_BATSCHED_PY_COMPLETE={shell}_source batsched-py"
    assert line in (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    script = complete(_BATSCHED_PY_COMPLETE=f"{shell}_source")
    assert f"_BATSCHED_PY_COMPLETE={shell}_complete" in script
    assert "batsched-py" in script


def test_words_are_completed() -> None:
    words = {"_BATSCHED_PY_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    assert complete(COMP_WORDS="batsched-py sched", **words) == "plain,schedulers\n"
    words["COMP_CWORD"] = "2"
    assert complete(COMP_WORDS="batsched-py describe --out", **words) == "plain,--output\n"


def complete(**words: str) -> str:
    """What the command answers to a shell that asks for completion."""
    done = subprocess.run(
        COMMAND, env=environment(**words), capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stderr == ""
    return done.stdout
