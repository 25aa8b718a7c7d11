"""A limit on the time that something takes, even if it never comes back by itself."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, current_thread, get_ident, main_thread
from types import FrameType

#: What goes on in spite of it is interrupted again after so many seconds.
AGAIN = 1.0


class OutOfTime(BaseException):
    """The time is over. It is no :class:`Exception`, so that a policy that catches those does not go on."""


@contextmanager
def alarm(seconds: float | None) -> Iterator[None]:
    """Interrupt what this thread does meanwhile after so many seconds."""
    if seconds is None:
        yield
        return
    with _signal(seconds) if current_thread() is main_thread() else _watch(seconds):
        yield


@contextmanager
def _signal(seconds: float) -> Iterator[None]:
    """The main thread hears signals, even in the middle of a wait."""
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: FrameType | None) -> None:
    raise OutOfTime


@contextmanager
def _watch(seconds: float) -> Iterator[None]:
    """Any other, such as that of a Dask worker, can be made to raise something before its next step."""
    over, here = Event(), get_ident()
    watcher = Thread(target=_interrupt, args=(here, seconds, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        with suppress(OutOfTime):  # what is pending is raised here: the interpreter looks for it until it is
            _raise_in(here)
            while True:
                pass


def _interrupt(thread: int, seconds: float, over: Event) -> None:
    while not over.wait(seconds):
        _raise_in(thread)
        seconds = AGAIN


def _raise_in(thread: int) -> None:
    """Let a thread raise that its time is over before its next step; there is at most one to be raised."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))
