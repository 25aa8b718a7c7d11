"""How far a command is: a bar on a terminal, lines elsewhere, nothing when it is quick."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from functools import partial
from threading import Event

import pytest

from batsched_py.api import terminal
from batsched_py.campaign.run import Run, RunResult, State
from batsched_py.cli.campaign_view import with_progress
from tests.campaigns import wait_until
from tests.processes import PATIENCE, PROGRESS, environment

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

#: Shows a bar at once, and ends when it has been there for a while.
SCRIPT = """
from threading import Event
from batsched_py.api import terminal

terminal.SECONDS_BEFORE_BAR = terminal.SECONDS_BETWEEN_UPDATES = 0.0
looked, enough = 0, Event()

def how_far():
    global looked
    looked += 1
    if looked == 200:
        enough.set()
    return {done}, {total}

with terminal.shown({what!r}, how_far):
    enough.wait({patience})
"""


def on_terminal(script: str, columns: int) -> str:
    """What a script writes to the standard error, if that is a terminal of so many columns."""
    screen, end = os.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    written = b""
    variables = environment(TERM="xterm", NO_COLOR="1")
    variables.pop("COLUMNS", None)
    with subprocess.Popen([sys.executable, "-c", script], stderr=end, env=variables) as process:
        os.close(end)
        while True:
            try:
                written += os.read(screen, 1 << 16)
            except OSError:
                break
    os.close(screen)
    assert process.returncode == 0
    return written.decode()


@pytest.mark.parametrize(
    ("what", "done", "total"), [("jobs", 12, 3000), ("jobs", 1_234_567, 5_700_000), ("runs", 3, 36)]
)
def test_the_bar_fits_a_terminal_of_80_columns(what: str, done: int, total: int) -> None:
    script = SCRIPT.format(what=what, done=done, total=total, patience=PATIENCE)
    lines = [line for line in re.split(r"[\r\n]+", ANSI.sub("", on_terminal(script, 80))) if line.strip()]
    assert any(f"{done}/{total} {what}," in line for line in lines)
    for line in lines:
        assert len(line) <= 80
        assert line.endswith("left"), "the bar goes over several lines"


def lines_of(what: str, done: int, total: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait until so many lines have been asked for."""
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.0)
    looked, enough = 0, Event()

    def how_far() -> tuple[int, int]:
        nonlocal looked
        looked += 1
        if looked > count:
            enough.set()
        return done, total

    with terminal.shown(what, how_far):
        assert enough.wait(PATIENCE)


def test_without_a_terminal_there_are_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines_of("jobs", 12, 3000, 3, monkeypatch)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) >= 3
    assert err.startswith("batsched-py: 12 of 3,000 jobs, ")
    assert PROGRESS.sub("", err) == ""


def test_before_anything_is_done_nobody_knows_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines_of("runs", 0, 36, 1, monkeypatch)
    assert " left" not in capsys.readouterr().err


def test_what_is_quick_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.shown("jobs", lambda: (1, 2)):
        pass
    assert capsys.readouterr() == ("", "")


def test_an_error_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Event()

    def how_far() -> tuple[int, int]:
        looked.set()
        return 1, 2

    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.0)
    with pytest.raises(KeyboardInterrupt), terminal.shown("jobs", how_far):
        assert looked.wait(PATIENCE)
        raise KeyboardInterrupt
    looked.clear()
    assert not looked.wait(0.05)


def test_a_campaign_tells_how_many_runs_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run on the standard output, and on the standard error what would be a bar on a terminal."""
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.001)
    told: list[str] = []

    def is_told(text: str) -> bool:
        out, err = capsys.readouterr()
        told.append(out)
        return text in err

    a, b = (Run(name=name, axes={}) for name in "ab")
    done = RunResult(run=a, state=State.DONE, folder=a.folder, seconds=1.0)
    for number, _ in enumerate(with_progress([done, RunResult.failed(b, "broken")], 2), start=1):
        wait_until(partial(is_told, f"batsched-py: {number} of 2 runs, "), "it is told")
    assert "".join(told) == "[1/2] a: 1.0 s\n[2/2] b: failed\n"


NOTEBOOK = """
from threading import Event
from batsched_py.api import terminal

terminal.SECONDS_BEFORE_BAR = terminal.SECONDS_BETWEEN_UPDATES = 0.0
looked, enough = 0, Event()

def how_far():
    global looked
    looked += 1
    if looked == 3:
        enough.set()
    return looked, 3000

with terminal.shown("jobs", how_far):
    enough.wait()
"""


def test_in_a_notebook_it_is_one_line_that_vanishes_in_the_end() -> None:
    nbclient = pytest.importorskip("nbclient", reason="executes notebooks")
    nbformat = pytest.importorskip("nbformat", reason="writes notebooks")
    pytest.importorskip("ipykernel", reason="executes notebooks")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    nbclient.NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    assert {output.name for output in outputs} == {"stderr"}, "rich would want ipywidgets"
    text = "".join(output.text for output in outputs)
    assert "\r1 of 3,000 jobs, " in text
    assert "\n" not in text
    assert text.endswith(" \r")


def test_what_a_notebook_needs_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipykernel", reason="what notebooks need")
    import IPython

    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert IPython.get_ipython() is None
    assert not terminal.somebody_looks()
