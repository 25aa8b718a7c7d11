"""Doing the runs of a campaign: one of them, or many in processes of this machine.

A run is done in a folder of its own, which gets its name when all is done.

A process pool of the standard library breaks when one of its processes is killed, and its processes go on
when their parent is killed. Here each worker has a pipe of its own: when one dies, only its run is tried
again, in a new worker; and workers stop when their parent is gone.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import batsched_py
from batsched_py.blame import culprit
from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.files import identity, publish, remove_leftovers, workspace
from batsched_py.campaign.finished import is_finished, simulator_of
from batsched_py.campaign.plan import BUILT_IN, EXECUTORS
from batsched_py.campaign.results import simulate_into
from batsched_py.campaign.run import WORK, Manifest, Run, RunResult, State
from batsched_py.errors import BatschedError, InputError
from batsched_py.trust import trusting

if TYPE_CHECKING:
    from batsched_py.campaign.dask_cluster import BatchSystem, DaskCluster


def execute(run: Run) -> RunResult:
    """Do a run. Whatever goes wrong in it is told, not raised, so that others go on."""
    began = time.perf_counter()
    error = None
    with untold() as warnings:
        try:
            with trusting() if run.trusted else nullcontext():
                _execute(run)
        except BatschedError as fault:
            error = str(fault)
        except Exception as fault:
            error = f"{type(fault).__name__}: {fault} ({culprit(fault)})"
    return RunResult(
        run=run,
        state=State.DONE if error is None else State.FAILED,
        folder=run.folder,
        seconds=time.perf_counter() - began,
        error=error,
        warnings=warnings,
    )


@contextmanager
def untold() -> Iterator[list[str]]:
    """What this package warns of meanwhile, in place of its being printed by whatever process this is."""
    logger = logging.getLogger(batsched_py.__name__)
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield messages
    finally:
        logger.propagate = propagate
        logger.removeHandler(handler)


def run_identity(run: Run, simulator: str) -> str:
    """What tells a run from any other, here and now."""
    assert run.experiment is not None, "runs of a plan have one"
    return identity(run.experiment, simulator_of(simulator), run.measures, run.windows)


def _execute(run: Run) -> None:
    started = datetime.now(UTC)
    simulator = None if run.simulator == BUILT_IN else find_simulator(run.simulator)
    if run_identity(run, run.simulator) != run.identity:
        code = Path(batsched_py.__file__).parent
        raise InputError(
            "an input file or the code is not what it was when the campaign began; run it again "
            f"(batsched_py {batsched_py.__version__} of this worker is in {code})"
        )
    if is_finished(run.folder, run):
        return
    with workspace(Path(run.campaign) / WORK, run.name) as folder:
        assert run.experiment is not None
        engine, seconds = simulate_into(
            folder, run.experiment, simulator, run.time_limit, run.measures, run.windows
        )
        Manifest.of(run, folder, str(simulator or run.simulator), engine, started, seconds).write(folder)
        if not is_finished(run.folder, run):
            publish(folder, run.folder)


#: A run whose worker died so many times is given up: it may be the reason, by the memory it takes.
ATTEMPTS = 3

#: How long a worker may take to clean up when it is stopped, in seconds.
GRACE = 30.0

#: How often :attr:`Processes.meanwhile` is called.
SECONDS_BETWEEN_CALLS = 0.2

#: Workers are forked from a process that has loaded what they need, so that they start at once.
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["batsched_py.campaign.preloaded"])


#: What stops a command from outside.
STOPPING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@contextmanager
def _not_stopped() -> Iterator[None]:
    """These signals wait meanwhile, here and in the processes that are started, until they let them in."""
    former = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


#: How many files this process and the one that forks have open, and how many more for each worker.
OPEN_FILES, OPEN_FILES_EACH = 24, 4


def _check_descriptors(workers: int) -> None:
    """So many workers can be started, which is not seen from how they would fail."""
    needed, allowed = OPEN_FILES + OPEN_FILES_EACH * workers, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if 0 <= allowed < needed:
        raise InputError(
            f"a process may have only {allowed} files open here; {workers} workers need {needed}: give fewer "
            f"by -j, or allow more by `ulimit -n {needed}`"
        )


#: The variables that say where Python looks for modules. The process from which workers are forked gets the
#: path of this one; otherwise it would look into the current folder first, where any file may be.
_SEARCHED = ("PYTHONSAFEPATH", "PYTHONPATH")


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


class Processes:
    """So many workers, one for each core unless told otherwise."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()
        """How many there are."""
        self.meanwhile: Callable[[], None] | None = None
        """Called now and then, to show the progress of all runs."""

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""
        waiting = deque((run, 1) for run in runs)
        workers: list[_Worker] = []
        _check_descriptors(min(self.workers, len(runs)))
        try:
            while len(workers) < min(self.workers, len(runs)):
                workers.append(_Worker())
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
        given = {name: os.environ.get(name) for name in _SEARCHED}
        self._process = _CONTEXT.Process(target=_work, args=(end, given), daemon=True)
        try:
            _set_variables(
                {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
            )
            with _not_stopped():
                self._process.start()
        finally:
            _set_variables(given)
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


def _set_variables(values: Mapping[str, str | None]) -> None:
    """Set variables of the environment, and remove those without a value."""
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _work(pipe: Connection, variables: Mapping[str, str | None]) -> None:
    """What a worker does, with the variables that its parent had."""
    _set_variables(variables)
    with suppress(EOFError, OSError, _Stopped):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        Thread(target=_watch_parent, daemon=True).start()
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


def executor_of(kind: str, address: str | None, workers: int | None) -> Processes | DaskCluster | BatchSystem:
    """The executor of this name, with the address of a Dask scheduler or so many workers."""
    from batsched_py.campaign.dask_cluster import BatchSystem, DaskCluster

    if kind not in EXECUTORS:
        raise InputError(f"there is no executor {kind!r}; known are {', '.join(EXECUTORS)}")
    if kind == "dask":
        if address is None:
            raise InputError(
                "--executor dask needs the --address of a Dask scheduler, such as tls://host:8786"
            )
        return DaskCluster(address)
    if address is not None:
        raise InputError("--address is for --executor dask")
    return Processes(workers) if kind == "processes" else BatchSystem(kind, workers or usable_cores())
