"""A limit on the time that something takes, even if it never comes back by itself."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

#: Who takes no notice is interrupted again after so many seconds.
AGAIN = 1.0


class OutOfTime(BaseException):
    """The time is over. It is no :class:`Exception`, lest a policy that catches those goes on."""


@contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Interrupt what is done meanwhile after so many seconds; only the main thread can be."""
    if seconds is None or current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: FrameType | None) -> None:
    raise OutOfTime
