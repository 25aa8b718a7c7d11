"""Single keys from a terminal."""

from __future__ import annotations

import os
import select
import sys

from batsched_py.errors import InputError

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
