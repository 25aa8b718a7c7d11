"""A terminal that shows one thing after another and tells which keys are pressed."""

from __future__ import annotations

import os
import select
import sys

from rich.console import RenderableType
from rich.live import Live

from batsched_py.api.console import TextConsole
from batsched_py.errors import InputError

#: What terminals send for keys that have no letter.
_NAMES = {b"\x1b[C": "right", b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b": "escape", b"\r": "\n"}


class Keyboard:
    """Reads keys as they are pressed, without waiting for a line and without a thread.

    Meanwhile the terminal shows nothing of what is typed; afterwards it is as it was, whatever happened.
    """

    def __enter__(self) -> Keyboard:
        try:
            import termios
            import tty

            self._file = sys.stdin.fileno()
            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
        except (ImportError, OSError, ValueError, termios.error):
            raise InputError("a live view needs a terminal to read keys from") from None
        return self

    def __exit__(self, *error: object) -> None:
        import termios

        termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def key(self, patience: float = 0.0) -> str | None:
        """The next key, if one is pressed within so many seconds."""
        readable, _, _ = select.select([self._file], [], [], patience)
        if not readable:
            return None
        pressed = os.read(self._file, 8)
        return _NAMES.get(pressed) or pressed[:1].decode(errors="replace")


class Screen:
    """The whole terminal, as long as it is used; afterwards it is as it was, whatever happened."""

    def __init__(self) -> None:
        self._console = TextConsole(stderr=True)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._keyboard = Keyboard()

    def __enter__(self) -> Screen:
        if not self._console.is_terminal:
            raise InputError("a live view needs a terminal to show itself on")
        self._keyboard.__enter__()
        try:
            self._live.start()
        except BaseException:
            self._keyboard.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._live.stop()
        finally:
            self._keyboard.__exit__()

    @property
    def size(self) -> tuple[int, int]:
        """How many columns and lines there are."""
        return self._console.size

    def show(self, picture: RenderableType) -> None:
        """Show this now."""
        self._live.update(picture, refresh=True)

    def key(self, patience: float = 0.0) -> str | None:
        """The next key, if one is pressed within so many seconds; one of those that quit raises."""
        pressed = self._keyboard.key(patience)
        if pressed in ("q", "escape"):
            raise KeyboardInterrupt("stopped by a key")
        return pressed
