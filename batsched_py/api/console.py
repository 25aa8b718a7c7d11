"""A console for tables and pictures whose text may come from files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import IO

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from batsched_py.protocol.shown import printable


class TextConsole(Console):
    """Takes text as text: brackets are no markup, and control characters are written out."""

    def __init__(self, stderr: bool = False, file: IO[str] | None = None, width: int | None = None) -> None:
        super().__init__(stderr=stderr, file=file, width=width, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is shown; only segments that control the console itself stay as they are."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


#: Wider than any table.
_WIDE = 10_000


def console_for_tables() -> TextConsole:
    """The terminal; in a file or a pipe, tables are as wide as they need to be, so that nothing is cut."""
    return TextConsole() if sys.stdout.isatty() else TextConsole(width=_WIDE)


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Print a table with names on the left, which are not wrapped if they have no head, and figures."""
    table = Table(title=title, box=SIMPLE)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left", no_wrap=not head)
    for row in rows:
        table.add_row(*map(Text, row))
    console_for_tables().print(table)
