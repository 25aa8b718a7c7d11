"""Text from files on a terminal: whatever it holds, the terminal is not controlled by it."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.table import Table

from batsched_py.api.console import TextConsole
from batsched_py.api.terminal import say
from batsched_py.cli.main import batsched_py
from tests.processes import COMMAND, PATIENCE, environment

#: Changes the title of the window, clears the screen; closes a markup of rich that was never opened.
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b2J[/]"

SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b2J[/]"


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Two jobs with such names, one after the other."""
    jobs = [
        {"id": f"{name}{EVIL}", "subtime": 0, "res": 4, "walltime": 20, "profile": "p"} for name in ("a", "b")
    ]
    profiles = {"p": {"type": "delay", "delay": 10}}
    file = tmp_path / "w.json"
    file.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    return file


def is_harmless(text: str) -> bool:
    return all(letter == "\n" or letter.isprintable() for letter in text)


def test_a_stepper_writes_the_names_of_jobs_out(workload: Path, tmp_path: Path) -> None:
    arguments = ["run", "-w", str(workload), "-s", "easy", "-e", str(tmp_path / "o"), "--step"]
    result = CliRunner().invoke(batsched_py, arguments, input="next\nqueue\nrunning\ncontinue\n")
    assert result.exit_code == 0
    assert f"w0!a{SHOWN}" in result.stderr
    assert is_harmless(result.output)


def test_commands_on_schedules_write_them_out(workload: Path, tmp_path: Path) -> None:
    run = ["run", "-w", str(workload), "-s", "easy", "-e", str(tmp_path / "o")]
    assert CliRunner().invoke(batsched_py, run).exit_code == 0
    jobs = tmp_path / "o_jobs.csv"
    explained = CliRunner().invoke(batsched_py, ["explain", str(tmp_path / "o"), f"w0!b{EVIL}"])
    jobs.write_text(jobs.read_text().replace("10.000000", "11.000000"))
    validated = CliRunner().invoke(batsched_py, ["validate", str(jobs), "-w", str(workload)])
    for result in (explained, validated):
        assert SHOWN in result.output
        assert is_harmless(result.output)


def test_a_table_shows_text_as_text() -> None:
    table = Table(title=EVIL)
    table.add_column(f"heading {EVIL}", no_wrap=True)
    table.add_row(f"cell {EVIL}")
    console = TextConsole(file=io.StringIO())
    console.print(table)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert is_harmless(shown)
    assert f"cell {SHOWN}"[:12] in shown


def test_json_stays_json(capsys: pytest.CaptureFixture[str]) -> None:
    say(json.dumps({"user": EVIL}, ensure_ascii=False).encode())
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert json.loads(shown) == {"user": EVIL}


def test_the_live_view_writes_the_names_of_jobs_out(workload: Path, tmp_path: Path) -> None:
    """On a real terminal: what arrives there is rich's own, and no sequence of the job's name."""
    mine, theirs = pty.openpty()
    arguments = ["run", "-w", str(workload), "-s", "easy", "-e", str(tmp_path / "o"), "--live"]
    command = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(TERM="xterm", COLUMNS="160", LINES="40"),
    )
    os.close(theirs)
    seen = b""
    while command.poll() is None:
        if not select.select([mine], [], [], PATIENCE)[0]:
            break
        try:
            seen += os.read(mine, 1 << 16)
        except OSError:
            break
        if b"any key leaves" in seen:
            os.write(mine, b" ")
    assert command.wait(PATIENCE) == 0
    os.close(mine)
    assert rb"w0!a\x1b]0;owned" in seen
    assert b"\x1b]0;owned" not in seen
