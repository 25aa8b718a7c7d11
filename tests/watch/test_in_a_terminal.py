"""The live view and the stepper in a real terminal: they appear, move, step, and leave it as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import Terminal, new_terminal

RUN = "batsched-py run -w log.swf --hosts 64 -s easy -e"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal in a folder with the first jobs of the sample."""
    lines = (Path(__file__).parents[2] / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    (tmp_path / "log.swf").write_text("".join(lines[:200]))
    with new_terminal(tmp_path) as terminal:
        yield terminal


def simulated(screen: str) -> str:
    """The simulated time that a live view shows."""
    shown = re.search(r"easy   (\d+ d \d\d:\d\d:\d\d)", screen)
    return shown[1] if shown else ""


def is_whole(screen: str) -> bool:
    return all(word in screen for word in ("utilization", "queue", "running", "recent", "hosts", "q quit"))


def test_the_live_view_appears_steps_moves_and_leaves_the_terminal_as_it_was(
    terminal: Terminal, tmp_path: Path
) -> None:
    before = terminal.settings()
    terminal.type(f"{RUN} out --live paused")
    first = terminal.until(lambda screen: is_whole(screen) and "paused" in screen)
    assert terminal.shows_the_other_screen
    assert terminal.settings() != before

    terminal.press("s")
    second = terminal.until(lambda screen: simulated(screen) and "w0!1 submitted" in screen)
    terminal.press("s")
    third = terminal.until(lambda screen: simulated(screen) and "w0!1 ended" in screen)
    assert simulated(first) == simulated(second) == "0 d 00:00:00" != simulated(third)

    terminal.press("Space")
    terminal.until(lambda screen: "over, any key leaves" in screen)
    terminal.press("Space")
    last = terminal.until_ready()
    assert "mean wait" in last
    assert "q quit" not in last
    assert not terminal.shows_the_other_screen
    assert terminal.settings() == before


@pytest.mark.parametrize(("key", "words"), [("q", "stopped by a key"), ("C-c", "stopped by Ctrl-C")])
def test_whoever_stops_it_gets_the_terminal_back(
    terminal: Terminal, tmp_path: Path, key: str, words: str
) -> None:
    before = terminal.settings()
    terminal.type(f"{RUN} out --live 10000")
    terminal.until(lambda screen: is_whole(screen) and "pace 10000" in screen)
    terminal.press(key)
    assert words in terminal.until_ready()
    assert not terminal.shows_the_other_screen
    assert terminal.settings() == before
    assert not (tmp_path / "out_jobs.csv").exists()


FAILING = """
from batsched_py.schedulers import Scheduler


class Failing(Scheduler):
    name = "failing"

    def schedule(self, cluster):
        if cluster.now > 10000:
            raise ValueError("I do not know")
"""


def test_an_error_gives_the_terminal_back_too(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    before = terminal.settings()
    command = RUN.replace("easy", "failing.py:Failing")
    terminal.type(f"{command} out --live")
    terminal.until(lambda screen: "I do not know" in screen and screen.rstrip().endswith("READY>"))
    assert not terminal.shows_the_other_screen
    assert terminal.settings() == before


def test_the_stepper_asks_and_obeys(terminal: Terminal, tmp_path: Path) -> None:
    before = terminal.settings()
    terminal.type(f"{RUN} out --step 'job 9'")
    terminal.until(lambda screen: "w0!9 submitted" in screen and screen.rstrip().endswith("step>"))
    terminal.type("queue")
    terminal.until(lambda screen: "1  w0!9" in screen)
    terminal.press("Enter")
    terminal.until(lambda screen: "w0!10 submitted" in screen)
    terminal.type("when queue > 3")
    terminal.until(lambda screen: "4 waiting" in screen)
    terminal.type("continue")
    assert "mean wait" in terminal.until_ready()
    assert terminal.settings() == before


def test_beside_a_simulator_elsewhere_the_live_view_moves_too(terminal: Terminal, tmp_path: Path) -> None:
    with new_terminal(tmp_path) as other:
        before = terminal.settings()
        endpoint = "ipc://socket"
        terminal.type(f"batsched-py serve -s easy --endpoint {endpoint} --live 200000")
        terminal.until(lambda screen: "waits for a simulation" in screen)
        other.type(f"batsched-py batsim -w log.swf --hosts 64 -s {endpoint} -e out")
        screen = terminal.until(lambda screen: is_whole(screen) and simulated(screen) > "0 d 00:00:00")
        assert "pace 200000" in screen
        terminal.press("m")
        terminal.until_ready()
        assert terminal.settings() == before
        other.until_ready()
    assert (tmp_path / "out_jobs.csv").exists()


PLAN = """
[logs]
small = { file = "log.swf" }

[platforms]
full = { hosts = 64 }

[schedulers]
fcfs = {}
slow = { name = "slow.py:Slow" }
"""

SLOW = """
import time

from batsched_py.schedulers.fcfs import Fcfs


class Slow(Fcfs):
    name = "slow"

    def schedule(self, cluster):
        time.sleep(0.01)
        super().schedule(cluster)
"""


def test_a_campaign_is_shown_while_it_runs(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "slow.py").write_text(SLOW)
    before = terminal.settings()
    terminal.type("batsched-py campaign run plan.toml -d out -j 2 --live")
    terminal.until(lambda screen: "1 of 2 runs" in screen and "slow" in screen and "█" in screen)
    assert terminal.shows_the_other_screen
    assert "fcfs" in terminal.until_ready()
    assert not terminal.shows_the_other_screen
    assert terminal.settings() == before
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 2
