"""A console for tables and pictures whose text may come from files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

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
