"""How far something is, for people who wait: a bar on a terminal, a line in a notebook, or some lines.

A thread looks how far it is, so that whatever is being done need not tell.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import click

from batsched_py.api.quantities import duration
from batsched_py.protocol.shown import harmless

SECONDS_BEFORE_BAR = 1.0
SECONDS_BETWEEN_UPDATES = 0.2
SECONDS_BETWEEN_LINES = 30.0

#: So that all of it fits into 80 columns, with millions of jobs too.
BAR_WIDTH = 24

#: How many are done, and of how many; when that is exceeded, as by the jobs of a population, nobody knows.
HowFar = Callable[[], tuple[int, int]]


@contextmanager
def shown(what: str, how_far: HowFar, doing: str = "") -> Iterator[None]:
    """Show on the standard error how far something is, from the moment when it has become long.

    ``what`` is counted, while one is ``doing`` something.
    """
    over = Event()
    show = _bar if sys.stderr.isatty() else _one_line if somebody_looks() else _lines
    thread = Thread(target=show, args=(over, what, how_far, doing), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def somebody_looks() -> bool:
    """Whether the standard error is a terminal, or this is a notebook."""
    ipython = sys.modules.get("IPython")
    in_notebook = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    return sys.stderr.isatty() or in_notebook


def _bar(over: Event, what: str, how_far: HowFar, doing: str) -> None:
    if over.wait(SECONDS_BEFORE_BAR):
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    words = escape(harmless(what))
    label = f"{words}, {escape(harmless(doing))}," if doing else f"{words},"
    columns = (BarColumn(BAR_WIDTH), MofNCompleteColumn(), label, TimeElapsedColumn(), "so far,")
    with Progress(
        *columns, TimeRemainingColumn(), "left", console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("")
        while not over.wait(SECONDS_BETWEEN_UPDATES):
            done, total = how_far()
            bar.update(task, completed=done, total=total if 0 < total >= done else None)


def _one_line(over: Event, what: str, how_far: HowFar, doing: str) -> None:
    """For notebooks, which write a line again from its beginning and understand nothing else."""
    if over.wait(SECONDS_BEFORE_BAR):
        return
    began, width = time.monotonic() - SECONDS_BEFORE_BAR, 0
    while not over.wait(SECONDS_BETWEEN_UPDATES):
        line = _line(what, *how_far(), time.monotonic() - began, doing)
        width = max(width, len(line))
        print(f"\r{line:<{width}}", end="", file=sys.stderr, flush=True)
    print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)


def _lines(over: Event, what: str, how_far: HowFar, doing: str) -> None:
    began = time.monotonic()
    with suppress(OSError):
        while not over.wait(SECONDS_BETWEEN_LINES):
            line = _line(what, *how_far(), time.monotonic() - began, doing)
            click.echo(f"batsched-py: {line}", err=True)


def _line(what: str, done: int, total: int, seconds: float, doing: str = "") -> str:
    """How far something is, in words.

    >>> _line("jobs", 7_000, 28_000, 20.0)
    '7,000 of 28,000 jobs, 20 s so far, 1.00 min left'
    >>> _line("jobs", 29_000, 28_000, 20.0)
    '29,000 jobs, 20 s so far'
    >>> _line("steps", 0, 0, 20.0, "drawing rows")
    'drawing rows, 20 s so far'
    """
    what = f"{what}, {doing}" if doing else what
    so_far = f"{duration(seconds)} so far"
    if done > total:
        return f"{done:,} {what}, {so_far}"
    if not total:
        return f"{doing or what}, {so_far}"
    left = f", {duration(seconds * (total - done) / done)} left" if done else ""
    return f"{done:,} of {total:,} {what}, {so_far}{left}"


@contextmanager
def waiting(what: str) -> Iterator[Callable[[int, int], None]]:
    """The same for something that tells itself how many steps are done and of how many."""
    done, total = 0, 0

    def moved(so_far: int, in_all: int) -> None:
        nonlocal done, total
        done, total = so_far, in_all

    with shown("steps", lambda: (done, total), what):
        yield moved
