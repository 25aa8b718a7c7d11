"""Windows of measurement: the part of a run over which it is measured.

A simulation begins on an empty machine and ends when nothing is submitted any more. What happens near both
ends says little about the machine in use. So a run is simulated as a whole, and measured over a window of it,
or over several of the same length, one after the other (batch means): then each is a repetition that begins
with the queue that the one before has left.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct

from batsched_py.errors import InputError

#: What stands for the first submission.
_BEGIN = ("", "0", "0d")


class Window(Struct, frozen=True):
    """A period of a run, in seconds since its first submission; a job is in it that is submitted then."""

    begin: float = 0.0
    end: float | None = None
    """The first moment that is not in it; none for a window that lasts until the last submission."""

    @classmethod
    def parse(cls, text: str) -> Window:
        """What ``FROM:TO`` says; each is a span since the first submission, and may be left out.

        >>> Window.parse("7d:300d"), Window.parse("12h:")
        (Window(begin=604800.0, end=25920000.0), Window(begin=43200.0, end=None))
        """
        from batsched_py.workload.changes.selecting import span

        begin, colon, end = (part.strip() for part in text.partition(":"))
        if not colon:
            raise InputError(f"{text!r} is no window; write FROM:TO, like 7d:300d, 7d: or :300d")
        window = cls(0.0 if begin in _BEGIN else span(begin), span(end) if end else None)
        if window.end is not None and window.end <= window.begin:
            raise InputError(f"the window {text!r} ends before it begins")
        return window

    @property
    def is_whole(self) -> bool:
        """Whether it leaves out nothing."""
        return self.begin == 0.0 and self.end is None

    def contains(self, begin: float, end: float) -> bool:
        """Whether a period lies in it."""
        return self.begin <= begin and end <= (inf if self.end is None else self.end)

    def __str__(self) -> str:
        end = "to the last one" if self.end is None else f"to {_shown(self.end)}"
        return f"jobs submitted from {_shown(self.begin)} {end}"


def _shown(seconds: float) -> str:
    """A span in the largest unit that makes it 1 or more.

    >>> _shown(604800), _shown(0), _shown(5400)
    ('7 d', '0 d', '1.5 h')
    """
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length or not seconds:
            return f"{seconds / length:.4g} {unit}"
    return f"{seconds:.4g} s"
