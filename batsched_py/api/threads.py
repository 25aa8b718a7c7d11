"""Tasks that several threads do, with what one thread would make of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from threading import Lock, Thread
from typing import Generic, TypeVar

Made = TypeVar("Made")

#: A thread that is to stop is told so again after so many seconds.
_AGAIN = 1.0

#: So long a thread waits for the others, in seconds, before it looks whether all is over.
_PATIENCE = 0.1


def done_in_order(tasks: Iterator[Callable[[], Made]], nb_threads: int) -> list[Made]:
    """What comes of all tasks, in their order; if some fail, the first of these says why.

    This thread is one of them. If it is interrupted, the others stop, too.
    """
    doing = _Doing(tasks)
    helpers = [Thread(target=copy_context().run, args=(doing.do_all,)) for _ in range(nb_threads - 1)]
    try:
        for helper in helpers:
            helper.start()
        doing.do_all()
        for helper in helpers:
            helper.join()
    finally:
        doing.stop(helpers)
    if doing.faults:
        raise doing.faults[min(doing.faults)]
    return [doing.made[number] for number in range(len(doing.made))]


class _Doing(Generic[Made]):
    def __init__(self, tasks: Iterator[Callable[[], Made]]) -> None:
        self._tasks = tasks
        self._lock = Lock()
        self._count = 0
        self._is_over = False
        self.made: dict[int, Made] = {}
        self.faults: dict[int, Exception] = {}

    def do_all(self) -> None:
        """Do one task after the other, until there is none or one has failed."""
        while (taken := self._next()) is not None:
            number, task = taken
            try:
                self.made[number] = task()
            except Exception as error:
                self._fail(number, error)

    def _next(self) -> tuple[int, Callable[[], Made]] | None:
        """A thread may be stopped anywhere, so nobody waits for ever for one that has the lock."""
        while not self._is_over:
            if not self._lock.acquire(timeout=_PATIENCE):
                continue
            try:
                if (task := next(self._tasks, None)) is None:
                    self._is_over = True
                    return None
                self._count += 1
                return self._count - 1, task
            except Exception as error:
                self._fail(self._count, error)
            finally:
                self._lock.release()
        return None

    def _fail(self, number: int, error: Exception) -> None:
        self.faults[number] = error
        self._is_over = True

    def stop(self, helpers: Sequence[Thread]) -> None:
        """Let threads that have not ended raise something before their next step."""
        self._is_over = True
        for helper in helpers:
            while helper.is_alive():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(helper.ident or 0), ctypes.py_object(SystemExit)
                )
                helper.join(_AGAIN)
