"""A real terminal to run commands in: tmux, whose screen can be read and whose keys can be pressed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.processes import PATIENCE

PROMPT = "READY>"


class Terminal:
    """A shell in a terminal of 120 columns and 40 lines."""

    def __init__(self, server: str) -> None:
        self._server = server

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self._tmux("send-keys", *keys)

    def type(self, line: str) -> None:
        """Type a line and press enter."""
        self._tmux("send-keys", "-l", line)
        self.press("Enter")

    def screen(self) -> str:
        """What is to be seen."""
        return self._tmux("capture-pane", "-p")

    def settings(self) -> str:
        """How the terminal treats what is typed."""
        tty = self._tmux("display-message", "-p", "#{pane_tty}").strip()
        return subprocess.run(["stty", "-a", "-F", tty], check=True, capture_output=True, text=True).stdout

    @property
    def shows_the_other_screen(self) -> bool:
        """Whether a program has taken the whole terminal."""
        return self._tmux("display-message", "-p", "#{alternate_on}").strip() == "1"

    def until(self, seen: Callable[[str], object]) -> str:
        """Wait for something to be seen; the screen then."""
        end = time.monotonic() + PATIENCE
        while not seen(screen := self.screen()):
            assert time.monotonic() < end, f"it was not seen:\n{screen}"
            time.sleep(0.1)
        return screen

    def until_ready(self) -> str:
        """Wait for the prompt of the shell, at the end of what is to be seen."""
        return self.until(lambda screen: screen.rstrip().endswith(PROMPT))

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-L", self._server, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@contextmanager
def new_terminal(folder: Path) -> Iterator[Terminal]:
    """A terminal of one's own in a folder; where there is no tmux, the test is skipped."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux for a real terminal, which is not installed")
    server = f"test-{uuid4().hex[:12]}"
    shell = f"PATH={Path(sys.executable).parent}:$PATH PS1='{PROMPT} ' bash --norc --noprofile"
    subprocess.run(
        [
            "tmux",
            "-L",
            server,
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-c",
            str(folder),
            "-x",
            "120",
            "-y",
            "40",
            shell,
        ],
        check=True,
    )
    try:
        terminal = Terminal(server)
        terminal.until_ready()
        yield terminal
    finally:
        subprocess.run(["tmux", "-L", server, "kill-server"], check=False, capture_output=True)
