"""Where tables are printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from batsched_py.api.console import TextConsole

#: Wider than any table.
_WIDE = 10_000


def console_for_tables() -> TextConsole:
    """The terminal; in a file or a pipe, tables are as wide as they need to be, so that nothing is cut."""
    from batsched_py.api.console import TextConsole

    return TextConsole() if sys.stdout.isatty() else TextConsole(width=_WIDE)
