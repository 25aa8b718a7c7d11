"""What people see on a terminal or in a notebook: text, figures, and how far something is.

Text that may come from files (names of jobs and users, headers, messages) could hold sequences that move the
cursor, change colours or even type keys. Here it is shown without; on a whole screen and in tables,
:class:`~batsched_py.api.console.TextConsole` does the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread

import click

from batsched_py.protocol.shown import harmless, printable


def say(text: str | bytes, err: bool = False, nl: bool = True) -> None:
    """Print a text; bytes are JSON, which stays JSON."""
    if isinstance(text, bytes):
        import json

        text = printable(text.decode(), lambda letter: json.dumps(letter)[1:-1])
    click.echo(printable(text), err=err, nl=nl)


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> duration(28_763_424), duration(5400), duration(12)
    ('332.91 d', '1.50 h', '12 s')
    """
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.2f} {unit}"
    return f"{seconds:.3g} s"


def energy(joules: float) -> str:
    """An energy in the unit in which it is paid for.

    >>> energy(7.2e9)
    '2,000.00 kWh'
    """
    return f"{joules / 3.6e6:,.2f} kWh"


def hosts_text(count: int) -> str:
    """So many hosts, in words."""
    return f"{count} host{'s' if count != 1 else ''}"


def two_columns(rows: Sequence[tuple[str, str]]) -> str:
    """Labels on the left, what they stand for on the right, with air around.

    >>> print(two_columns([("hosts", "64"), ("makespan", "12 s")]))
    <BLANKLINE>
      hosts        64
      makespan   12 s
    <BLANKLINE>
    """
    left = max(len(label) for label, _ in rows)
    right = max(len(text) for _, text in rows)
    return "\n".join(["", *(f"  {label:<{left}}   {text:>{right}}" for label, text in rows), ""])


def as_html(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns for a notebook."""
    from html import escape

    cells = (f"<tr><th>{escape(label.strip())}</th><td>{escape(text)}</td></tr>" for label, text in rows)
    return f"<table>{''.join(cells)}</table>"


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

    ``what`` is counted, while one is ``doing`` something. A thread looks how far it is, so that whatever is
    being done need not tell.
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
