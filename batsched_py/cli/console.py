"""Where tables are printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

#: Wider than any table.
_WIDE = 10_000


def console_for_tables() -> Console:
    """The terminal; in a file or a pipe, tables are as wide as they need to be, so that nothing is cut."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=_WIDE)
