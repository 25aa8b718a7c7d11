"""A live view of a simulation on a terminal: a dashboard that moves, and keys that pause, step and go on."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress

from rich.console import RenderableType
from rich.live import Live

from batsched_py.api.console import TextConsole
from batsched_py.errors import InputError
from batsched_py.watch.dashboard import Dashboard
from batsched_py.watch.scenes import Scene

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


SECONDS_BETWEEN_FRAMES = 0.05
#: So many times as long as it takes to draw a frame, the simulation goes on before the next.
LEISURE = 4.0
#: How long a key is waited for while nothing moves.
PATIENCE = 0.25

#: How much faster and slower the keys make it.
FACTOR = 2.0


class LiveView:
    """Watches a simulation and shows it; with a pace, so many simulated seconds a second.

    Everything is done between two scenes, by the code that runs the simulation; there is no thread.
    """

    def __init__(
        self, screen: Screen, title: str, nb_jobs: int = 0, pace: float = 0.0, paused: bool = False
    ) -> None:
        self._screen = screen
        self._dashboard = Dashboard(title, nb_jobs)
        self._pace = pace
        self._paused = paused
        self._began = time.monotonic()
        self._next_frame = 0.0
        self._speed = 0.0
        self._last = (0.0, 0.0)
        """The real and the simulated time from which the speed is measured."""
        self._due = 0.0
        """When a scene that is to be shown at a pace has its time."""

    def __call__(self, scene: Scene) -> None:
        """A scene of the simulation: show it, now or when enough others have passed, and obey keys."""
        before = self._dashboard.now
        self._dashboard.note(scene)
        now = time.monotonic()
        if self._pace and scene.now > before:
            self._wait(now, (scene.now - before) / self._pace)
        if not self._paused and now < self._next_frame:
            return
        self._draw()
        self._obey(self._screen.key())
        while self._paused:
            if self._obey(self._screen.key(PATIENCE)):
                break
            self._draw()

    def await_simulation(self) -> None:
        """There is none yet, but one may come."""
        self._draw("waits for a simulation")

    def hold(self) -> None:
        """The simulation is over: show it until a key is pressed."""
        self._draw("over, any key leaves")
        with suppress(KeyboardInterrupt):
            while self._screen.key(PATIENCE) is None:
                pass

    def _wait(self, now: float, seconds: float) -> None:
        """Let real time pass, and obey keys meanwhile."""
        self._due = max(self._due, now - PATIENCE) + seconds
        while (left := self._due - time.monotonic()) > 0 and self._pace and not self._paused:
            if time.monotonic() >= self._next_frame:
                self._draw()
            self._obey(self._screen.key(min(left, PATIENCE)))

    def _obey(self, key: str | None) -> bool:
        """Do what a key says; whether it was a step."""
        match key:
            case " ":
                self._paused = not self._paused
                self._due = time.monotonic()
            case "s" | "right" | "\n":
                self._paused = True
                return True
            case "+" | "up":
                self._pace *= FACTOR
            case "-" | "down":
                self._pace = (self._pace or self._speed or 1.0) / FACTOR
            case "m":
                self._pace = 0.0
        return False

    def _draw(self, state: str | None = None) -> None:
        now = time.monotonic()
        real, simulated = self._last
        if now - real >= 0.5:
            self._speed = (self._dashboard.now - simulated) / (now - real) if real else 0.0
            self._last = now, self._dashboard.now
        if state is None:
            state = "paused" if self._paused else f"pace {self._pace:g} s/s" if self._pace else "running"
        elapsed = now - self._began
        self._screen.show(self._dashboard.picture(state, self._speed, elapsed, *self._screen.size))
        shown = time.monotonic()
        self._next_frame = shown + max(SECONDS_BETWEEN_FRAMES, LEISURE * (shown - now))
