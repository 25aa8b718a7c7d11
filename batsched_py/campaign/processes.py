"""Executing runs in processes of this machine.

A process pool of the standard library breaks when one of its processes is killed, and its processes go on
when their parent is killed. Here each worker has a pipe of its own: when one dies, only its run is tried
again, in a new worker; and workers stop when their parent is gone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any, NoReturn

from batsched_py.campaign.execute import execute
from batsched_py.campaign.folders import remove_leftovers
from batsched_py.campaign.run import WORK, Run, RunResult

#: A run whose worker died so many times is given up: it may be the reason, by the memory it takes.
ATTEMPTS = 3

#: How long a worker may take to clean up when it is stopped, in seconds.
GRACE = 30.0

#: How often :attr:`Processes.meanwhile` is called.
SECONDS_BETWEEN_CALLS = 0.2

#: Workers are forked from a process that has loaded what they need, so that they start at once.
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["batsched_py.campaign.preloaded"])


def usable_cores() -> int:
    """How many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """So many workers, one for each core unless told otherwise."""

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or usable_cores()
        self.meanwhile: Callable[[], None] | None = None
        """Called now and then, to show the progress of all runs."""

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""
        waiting = deque((run, 1) for run in runs)
        workers = [_Worker() for _ in range(min(self._workers, len(runs)))]
        try:
            while True:
                for worker in workers:
                    if worker.run is None and waiting:
                        worker.give(*waiting.popleft())
                busy = {worker.pipe: worker for worker in workers if worker.run is not None}
                if not busy:
                    return
                for pipe in self._ready(list(busy)):
                    worker = busy[pipe]
                    result = worker.take()
                    if result is not None:
                        yield result
                        continue
                    workers[workers.index(worker)] = _Worker()
                    assert worker.run is not None
                    if worker.attempt < ATTEMPTS:
                        waiting.appendleft((worker.run, worker.attempt + 1))
                    else:
                        error = f"its process died {ATTEMPTS} times: {worker.exit_reason()}"
                        yield RunResult.failed(worker.run, error)
        finally:
            for worker in workers:
                worker.stop()
            for worker in workers:
                worker.join()

    def _ready(self, pipes: list[Connection]) -> list[Any]:
        """Wait for those that have something to tell."""
        while self.meanwhile is not None:
            if ready := connection.wait(pipes, SECONDS_BETWEEN_CALLS):
                return ready
            self.meanwhile()
        return connection.wait(pipes)


class _Worker:
    """A process that does one run after another, seen from its parent."""

    def __init__(self) -> None:
        self.pipe, end = _CONTEXT.Pipe()
        self.run: Run | None = None
        self.attempt = 0
        self._process = _CONTEXT.Process(target=_work, args=(end,), daemon=True)
        self._process.start()
        end.close()

    def give(self, run: Run, attempt: int) -> None:
        """Let it do a run. If it is dead already, that shows when the result is taken."""
        self.run, self.attempt = run, attempt
        with suppress(BrokenPipeError):
            self.pipe.send(run)

    def take(self) -> RunResult | None:
        """What came of its run, or nothing when the worker has died over it."""
        try:
            result: RunResult = self.pipe.recv()
        except (EOFError, OSError):
            return None
        self.run = None
        return result

    def exit_reason(self) -> str:
        """How it died."""
        self._process.join()
        code = self._process.exitcode or 0
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """Ask it to clean up and end, or to end after its run if code that it calls drops the request."""
        self._process.terminate()
        self.pipe.close()

    def join(self) -> None:
        """Wait until it has ended, but not for ever."""
        self._process.join(GRACE)
        self._process.kill()
        self._process.join()
        if self.run is not None:
            remove_leftovers(Path(self.run.campaign) / WORK, self.run.name)


def _work(pipe: Connection) -> None:
    """What a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    Thread(target=_watch_parent, daemon=True).start()
    with suppress(EOFError, OSError, _Stopped):
        while True:
            pipe.send(execute(pipe.recv()))


class _Stopped(BaseException):
    """The worker was told to end. A policy may raise :class:`SystemExit`, but not this."""


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Stopped


def _watch_parent() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
