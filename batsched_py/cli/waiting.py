"""What is shown while something takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def waiting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on the terminal, moved by telling how many steps are done and of how many."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def moved(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield moved
