"""Where trials are done: here, in processes of this machine, or on a Dask cluster.

Processes of this machine are forked, so that the log is read once, and gone when their parent is gone. A Dask
worker reads the log when it is given its first trial.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache, partial
from multiprocessing import connection as connections
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from msgspec.structs import replace

import batsched_py
from batsched_py.campaign.dask_cluster import BatchSystem, Connection, DaskCluster
from batsched_py.campaign.executors import Processes
from batsched_py.errors import BatschedError, InputError
from batsched_py.tuning.parts import Divided, Stretch
from batsched_py.tuning.plan import Source, TuningPlan
from batsched_py.tuning.trials import Task, Trial

#: Where trials can be done.
Executor = Processes | DaskCluster | BatchSystem

#: What trials are done on: the stretches that are searched, under False, and those that are held out.
Stretches = Mapping[bool, Sequence[Stretch]]

_stretches: Stretches = {}


#: Does tasks, and gives the trials in their order.
Doing = Callable[[Sequence[Task]], Iterator[Trial]]


class Workers:
    """Does tasks, and counts them."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self.done = 0
        """How many tasks are done."""

    def run(self, tasks: Sequence[Task]) -> list[Trial]:
        """What comes of tasks, in their order; those that were done before are not done again."""
        return list(self._counted(tasks))

    def _counted(self, tasks: Sequence[Task]) -> Iterator[Trial]:
        for trial in self._doing(tasks):
            self.done += 1
            yield trial


@contextmanager
def working(plan: TuningPlan, parts: Divided, where: Executor) -> Iterator[Workers]:
    """The workers of an executor of campaigns; a single one of this machine is this process."""
    global _stretches
    if not isinstance(where, Processes):
        with where.connected(plan.folder, plan.batch) as connection:
            yield Workers(partial(_on_dask, connection, plan.source))
        return
    _stretches = stretches_of(parts)
    try:
        if where.workers == 1:
            yield Workers(partial(map, _do))
            return
        pool = ProcessPoolExecutor(where.workers, get_context("fork"), _begin)
        try:
            yield Workers(partial(_in_processes, pool))
        finally:
            pool.shutdown(cancel_futures=True)
    finally:
        _stretches = {}


def stretches_of(parts: Divided) -> Stretches:
    """What trials of the search, and those on held-out parts, are done on."""
    return {False: parts.searched, True: parts.kept}


def _in_processes(pool: ProcessPoolExecutor, tasks: Sequence[Task]) -> Iterator[Trial]:
    try:
        yield from pool.map(_do, tasks)
    except BrokenProcessPool:
        raise InputError(
            "a process that did a trial was killed; the trials that are done are kept, and the same "
            "command goes on with them"
        ) from None


def _on_dask(connection: Connection, source: Source, tasks: Sequence[Task]) -> Iterator[Trial]:
    """Trials come in any order, and are told of in that of their tasks."""
    done: dict[Path, Trial] = {}
    waiting = deque(tasks)
    for task, trial in connection.each(partial(do_far_away, source), tasks):
        if isinstance(trial, BatschedError):
            raise trial
        if isinstance(trial, Exception):
            raise InputError(f"{task.file.stem}, on its Dask worker: {trial}")
        done[task.file] = trial
        while waiting and waiting[0].file in done:
            yield done[waiting.popleft().file]


def do_far_away(source: Source, task: Task) -> Trial:
    """Do a task in a process that knows nothing of its plan yet."""
    plan, stretches = _known(source)
    if plan.study != task.study:
        raise InputError(
            "the code, the plan or a log is not what it is where the search was started (batsched_py "
            f"{batsched_py.__version__} of this worker is in {Path(batsched_py.__file__).parent})"
        )
    # Files may have been named from another working directory.
    experiments = [] if task.error else plan.experiments(task.settings) if task.settings else plan.today
    return replace(task, experiments=experiments).done(stretches[task.held_out])


@lru_cache(maxsize=1)
def _known(source: Source) -> tuple[TuningPlan, Stretches]:
    plan = source.read()
    return plan, stretches_of(plan.divided())


def _do(task: Task) -> Trial:
    return task.done(_stretches[task.held_out])


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    """A process whose parent was killed would wait for ever."""
    parent = parent_process()
    assert parent is not None
    connections.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
