"""A live view of a simulation on a terminal: a dashboard that moves, and keys that pause, step and go on."""

from __future__ import annotations

import time
from contextlib import suppress

from batsched_py.watch.dashboard import Dashboard
from batsched_py.watch.scenes import Scene
from batsched_py.watch.screen import Screen

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
