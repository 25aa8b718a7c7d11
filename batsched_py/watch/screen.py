"""A terminal that shows one thing after another and tells which keys are pressed."""

from __future__ import annotations

from rich.console import RenderableType
from rich.live import Live

from batsched_py.api.console import TextConsole
from batsched_py.errors import InputError
from batsched_py.watch.keyboard import Keyboard


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
