"""A live view of a simulation on a terminal: a dashboard that moves, and keys that pause, step and go on."""

from __future__ import annotations

import os
import select
import sys
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from itertools import islice
from math import ceil, inf
from typing import Any

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from batsched_py.api.console import TextConsole
from batsched_py.api.terminal import duration
from batsched_py.errors import InputError
from batsched_py.ledger.effects import RejectedJob
from batsched_py.ledger.free_nodes import FreeNodes
from batsched_py.ledger.ledger import Ledger
from batsched_py.outside.curve import NOTHING_KNOWN
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.watch import telling
from batsched_py.watch.scenes import Scene

_EIGHTHS = " ▁▂▃▄▅▆▇█"


class History:
    """A figure over simulated time; when there are many samples, every other one is forgotten."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._times: list[float] = []
        self._values: list[float] = []

    def add(self, time: float, value: float) -> None:
        """The figure is this from a time on."""
        if self._times and self._times[-1] == time:
            self._values[-1] = value
            return
        if len(self._times) >= self._most:
            del self._times[1::2], self._values[1::2]
        self._times.append(time)
        self._values.append(value)

    def columns(self, count: int) -> list[float]:
        """The figure at so many times, at even distances from the first sample to the last."""
        if not self._times:
            return []
        first, last = self._times[0], self._times[-1]
        step = (last - first) / max(1, count - 1)
        times = (first + place * step for place in range(count))
        return [self._values[max(0, bisect_right(self._times, time) - 1)] for time in times]


def curve(values: Sequence[float], height: int, top: float) -> list[str]:
    """The values as columns up to a height of so many lines, which stands for ``top``.

    >>> curve([0, 1, 2, 3, 4], 2, 4)
    ['   ▄█', ' ▄███']
    """
    eighths = [round(min(1.0, value / top if top else 0.0) * 8 * height) for value in values]
    return [
        "".join(_EIGHTHS[max(0, min(8, each - 8 * line))] for each in eighths)
        for line in range(height - 1, -1, -1)
    ]


KEYS = "space pause/go on   s step   + faster   - slower   m as fast as possible   q quit"

#: How hosts without a job are shown, by their state.
_MARKS = {
    "free": ("·", "dim"),
    "away": ("x", "red"),
    "closed": ("#", "yellow"),
    "reserved": ("r", "yellow"),
    "asleep": ("z", "blue"),
    "switching": ("z", "blue"),
}

#: How a character is filled, by the quarters of its hosts that have jobs.
_LEVELS = "▁▂▄▆█"

#: Running jobs go round these, in the order of their starts.
_COLOURS = ("green", "cyan", "magenta", "yellow", "bright_blue", "bright_red")


class Dashboard:
    """How a simulation stands, as far as scenes have told."""

    def __init__(self, title: str, nb_jobs: int) -> None:
        self._title = title
        self._nb_jobs = nb_jobs
        """How many jobs there are; 0 where nobody knows."""
        self._begin()

    def _begin(self) -> None:
        self.now = 0.0
        self._ledger: Ledger | None = None
        self._outside = NOTHING_KNOWN
        self._nb_over = 0
        self._busy = History()
        self._waiting = History()
        self._recent: deque[tuple[float, Callable[[Any], str], Any]] = deque(maxlen=50)
        """When, how to tell it, and what."""

    def note(self, scene: Scene) -> None:
        """The simulation went on."""
        if any(isinstance(event, ev.SimulationBegins) for event in scene.happened):
            self._begin()
        ledger = scene.ledger
        self.now, self._ledger, self._outside = scene.now, ledger, scene.outside
        self._nb_over += sum(isinstance(event, ev.JobCompleted) for event in scene.happened)
        self._nb_over += sum(isinstance(each, RejectedJob | ev.RejectJob) for each in scene.decided)
        usable = ledger.nb_hosts - len(ledger.states.unavailable)
        self._busy.add(scene.now, 1 - ledger.free.count / usable if usable else 0.0)
        self._waiting.add(scene.now, float(len(ledger.queue)))
        self._recent.extend((scene.now, telling.happening, event) for event in scene.happened)
        self._recent.extend((scene.now, telling.decision, effect) for effect in scene.decided)

    def picture(self, state: str, speed: float, elapsed: float, width: int, height: int) -> Layout:
        """All of it, for a terminal of this size."""
        waiting = "0 waiting" if self._ledger is None else telling.waiting_text(self._ledger)
        nb_running = 0 if self._ledger is None else len(self._ledger.running)
        outside = telling.outside_text(self._outside, self.now)
        machine = "hosts" if self._nodes is None else f"cores of {len(self._nodes.machine.nodes):,} nodes"
        layout = Layout()
        body = Layout(name="body", minimum_size=5)
        body.split_row(
            Layout(Panel(self._queue(height), title=waiting), ratio=3),
            Layout(Panel(self._running(height), title=f"{nb_running:,} running"), ratio=3),
            Layout(Panel(self._events(height), title="recent"), ratio=4),
        )
        layout.split_column(
            Layout(Panel(self._head(state, speed, elapsed)), size=3),
            Layout(Panel(self._hosts(width - 4), title=machine, subtitle=outside), size=4),
            Layout(self._curves(width), size=6),
            body,
            Layout(Text(KEYS, style="dim"), size=1),
        )
        return layout

    def _head(self, state: str, speed: float, elapsed: float) -> Text:
        over = f"{self._nb_over:,} jobs over"
        if self._nb_jobs:
            over = f"{self._nb_over:,} of {self._nb_jobs:,} jobs over ({self._nb_over / self._nb_jobs:.1%})"
        faster = f"{speed:,.0f} s/s" if speed else ""
        told = [self._title, telling.clock(self.now), state, over, f"for {duration(elapsed)}", faster]
        return Text("   ".join(filter(None, told)), no_wrap=True, overflow="ellipsis")

    @property
    def _nodes(self) -> FreeNodes | None:
        """The nodes, if they are more than single hosts."""
        nodes = None if self._ledger is None else telling.nodes_of(self._ledger)
        return None if nodes is None or nodes.machine.are_hosts else nodes

    def _hosts(self, width: int) -> Group:
        """A strip of all hosts in the colours of their jobs, and how many are in which state."""
        ledger = self._ledger
        if ledger is None:
            return Group(Text("no simulation yet"))
        states = telling.host_states(ledger, self.now)
        per_cell = max(1, ceil(ledger.nb_hosts / max(1, width)))
        jobs = _jobs_in_cells(ledger, per_cell)
        strip = Text(no_wrap=True)
        idle = [(states[state], mark) for state, mark in _MARKS.items()]
        for number, first in enumerate(range(0, ledger.nb_hosts, per_cell)):
            size = min(per_cell, ledger.nb_hosts - first)
            if number in jobs:
                colour = max(jobs[number], key=jobs[number].__getitem__)
                strip.append(_LEVELS[4 * sum(jobs[number].values()) // size], colour)
            else:
                cell = HostSet(((1 << size) - 1) << first)
                strip.append(*max((len(cell & hosts), mark) for hosts, mark in idle)[1])
        order = ("busy", *_MARKS)
        words = "   ".join(f"{len(states[state]):,} {state}" for state in order if states[state])
        if self._nodes is not None:
            words += "   " + telling.nodes_text(self._nodes)
        each = "" if per_cell == 1 else f"   ({per_cell} hosts to a character)"
        return Group(strip, Text(words + each))

    def _curves(self, width: int) -> Layout:
        columns = max(10, width // 2 - 4)
        busy, waiting = self._busy.columns(columns), self._waiting.columns(columns)
        most = max(waiting, default=0.0)
        utilization = f"utilization {busy[-1]:.0%}" if busy else "utilization "
        queue = f"queue {waiting[-1] if waiting else 0:,.0f}, at most {most:,.0f}"
        curves = Layout()
        curves.split_row(
            Layout(Panel(Text("\n".join(curve(busy, 4, 1.0)), style="green"), title=utilization)),
            Layout(Panel(Text("\n".join(curve(waiting, 4, most)), style="yellow"), title=queue)),
        )
        return curves

    def _queue(self, height: int) -> Table:
        nodes = self._nodes
        table = _table("job", "hosts", *([] if nodes is None else ["asks for"]), "walltime", "waits")
        for job in islice(self._ledger.queue if self._ledger is not None else (), height):
            limit = "-" if job.walltime == inf else duration(job.walltime)
            asked = [] if nodes is None else [telling.asked_text(nodes.demand(job).request)]
            size = f"{job.size:,}{telling.sizes_text(job)}"
            table.add_row(job.id, size, *asked, limit, duration(self.now - job.submission_time))
        return table

    def _running(self, height: int) -> Table:
        table = _table("job", "hosts", "ran", "at most")
        for running in islice(self._ledger.running if self._ledger is not None else (), height):
            left = running.expected_end - self.now
            limit = "-" if left == inf else duration(max(0.0, left))
            size = f"{running.nb_hosts:,}{telling.sizes_text(running.job)}"
            table.add_row(running.job.id, size, duration(self.now - running.start), limit)
        return table

    def _events(self, height: int) -> Text:
        recent = islice(reversed(self._recent), height)
        lines = [f"{telling.clock(time)} {tell(what)}" for time, tell, what in recent]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _jobs_in_cells(ledger: Ledger, per_cell: int) -> dict[int, dict[str, int]]:
    """How many hosts of each cell of the strip have jobs of which colour."""
    cells: dict[int, dict[str, int]] = {}
    for running in ledger.running:
        colour = _COLOURS[running.number % len(_COLOURS)]
        for first, last in running.hosts.runs():
            for number in range(first // per_cell, last // per_cell + 1):
                here = min(last + 1, (number + 1) * per_cell) - max(first, number * per_cell)
                cell = cells.setdefault(number, {})
                cell[colour] = cell.get(colour, 0) + here
    return cells


def _table(*columns: str) -> Table:
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True, overflow="ellipsis")
    return table


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
        with ExitStack() as entered:
            entered.enter_context(self._keyboard)
            self._live.start()
            entered.callback(self._live.stop)
            self._entered = entered.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.close()

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
