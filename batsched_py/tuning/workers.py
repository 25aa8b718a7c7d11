"""Processes that do trials: forked, so that the log is read once, and gone when their parent is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, get_context, parent_process
from threading import Thread

from batsched_py.errors import InputError
from batsched_py.tuning.parts import Stretch
from batsched_py.tuning.trials import Task, Trial

#: What trials are done on: the stretches that are searched, under False, and those that are held out.
Stretches = Mapping[bool, Sequence[Stretch]]

_stretches: Stretches = {}


class Workers:
    """Does tasks, here or in several processes."""

    def __init__(self, stretches: Stretches, pool: ProcessPoolExecutor | None) -> None:
        self._stretches = stretches
        self._pool = pool
        self.done = 0
        """How many tasks are done."""

    def run(self, tasks: Sequence[Task]) -> list[Trial]:
        """What comes of tasks, in their order; those that were done before are not done again."""
        try:
            return list(self._counted(tasks))
        except BrokenProcessPool:
            raise InputError(
                "a process that did a trial was killed; the trials that are done are kept, and the same "
                "command goes on with them"
            ) from None

    def _counted(self, tasks: Sequence[Task]) -> Iterator[Trial]:
        trials = (
            (task.done(self._stretches[task.held_out]) for task in tasks)
            if self._pool is None
            else self._pool.map(_do, tasks)
        )
        for trial in trials:
            self.done += 1
            yield trial


@contextmanager
def working(stretches: Stretches, count: int) -> Iterator[Workers]:
    """So many workers; a single one is this process."""
    if count == 1:
        yield Workers(stretches, None)
        return
    global _stretches
    _stretches = stretches
    pool = ProcessPoolExecutor(count, get_context("fork"), _begin)
    try:
        yield Workers(stretches, pool)
    finally:
        pool.shutdown(cancel_futures=True)
        _stretches = {}


def _do(task: Task) -> Trial:
    return task.done(_stretches[task.held_out])


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    """A process whose parent was killed would wait for ever."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
