"""One simulation into one folder, in limited time: the files of a Batsim, and what is measured of them.

Whatever changes the results of a run is in this module or reached from it.
"""

from __future__ import annotations

import ctypes
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from threading import Event, Thread, current_thread, get_ident, main_thread
from types import FrameType
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from batsched_py.analysis.steadiness import Steadiness
from batsched_py.analysis.windows import Window
from batsched_py.blame import culprit
from batsched_py.campaign.batsim import Simulator, SimulatorFailed, run_batsim
from batsched_py.campaign.files import digest_of_file
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment, Scenario, Workloads
from batsched_py.experiment.build import read_workloads, words_of
from batsched_py.experiment.run import run_experiment
from batsched_py.output_files import write_file
from batsched_py.simulator.outputs import OutputFile
from batsched_py.workload.model import Workload

if TYPE_CHECKING:
    from batsched_py.workload.requests import NodeWords


#: What is measured of a run.
METRICS_FILE = "metrics.json"

#: Whether it is steady, and what is measured over windows of it.
WINDOWS_FILE = "windows.json"

#: How the names of a Batsim's files begin, as they do by default, and how they end.
PREFIX = "out"
_ENDINGS = (".csv", ".json", ".trace")


def is_result(name: str) -> bool:
    """Whether a file of this name can be one of a run's results.

    >>> [is_result(name) for name in ("metrics.json", "out_jobs.csv", "out_jobs.py", "out_/../a.csv")]
    [True, True, False, False]
    """
    is_of_batsim = name.startswith(f"{PREFIX}_") and name.endswith(_ENDINGS)
    return name in (METRICS_FILE, WINDOWS_FILE) or (is_of_batsim and name.isprintable() and "/" not in name)


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

    def interrupt() -> None:
        wait = seconds
        while not over.wait(wait):
            _raise_in(here)
            wait = AGAIN

    watcher = Thread(target=interrupt, daemon=True)
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


def _raise_in(thread: int) -> None:
    """Let a thread raise that its time is over before its next step; there is at most one to be raised."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))


def simulate_into(
    folder: Path,
    experiment: Experiment,
    simulator: Simulator | None,
    time_limit: float | None,
    measures: Sequence[str] = (),
    windows: Mapping[str, Window] | None = None,
) -> tuple[str, dict[str, float]]:
    """Simulate, measure, and write all results into ``folder``; ``measures`` are metrics that are not ours.

    What is measured of the whole run is also measured over each of the ``windows``.

    Returns which engine simulated, empty if it was another simulator, and how many seconds each step took.
    """
    engine = ""
    began = time.perf_counter()
    workloads = _workloads(experiment.scenario)
    read = time.perf_counter()
    prefix = folder / PREFIX
    if simulator is None:
        try:
            engine = run_experiment(
                experiment,
                workloads,
                str(prefix),
                new_file=partial(OutputFile, visible=True),
                meanwhile=lambda simulation: alarm(time_limit),
            ).engine
        except OutOfTime as late:
            scheduler = experiment.actors.scheduler.name
            raise SimulatorFailed(
                f"not finished after {time_limit:g} s, the time limit; "
                f"scheduler {scheduler!r} ({culprit(late)})"
            ) from None
    elif experiment.remarks:
        raise InputError(
            "remarks are written down with the built-in simulator only; take them out of the plan"
        )
    elif experiment.decisions:
        raise InputError(
            "decisions are measured with the built-in simulator only; take `decisions` out of the plan"
        )
    else:
        run_batsim(simulator, experiment, workloads, prefix, time_limit)
    simulated = time.perf_counter()
    _measure(folder, f"{prefix}_jobs.csv", measures, windows or {})
    return engine, {
        "read": read - began,
        "simulate": simulated - read,
        "measure": time.perf_counter() - simulated,
    }


def _workloads(scenario: Scenario) -> list[Workload]:
    """The workloads, read once for all runs of this process that need the same."""
    workloads = scenario.workloads
    return _read(workloads, tuple(map(digest_of_file, workloads.files)), words_of(scenario.machine))


@lru_cache(maxsize=4)
def _read(workloads: Workloads, digests: tuple[str, ...], words: NodeWords | None) -> list[Workload]:
    return read_workloads(workloads, words=words)


class Measurement(Struct, frozen=True, omit_defaults=True):
    """What is known of a run besides its metrics."""

    steadiness: Steadiness | None = None
    windows: dict[str, Window] = {}
    """Over what it is measured, by the number of the part of the log."""
    metrics: dict[str, dict[str, float | None]] = {}
    """What is measured over each window."""


def _measure(folder: Path, jobs_file: str, measures: Sequence[str], windows: Mapping[str, Window]) -> None:
    """Write all metrics of a schedule, and of windows of it, as JSON."""
    from batsched_py.analysis import metrics, outcome, own_metrics, steadiness

    known = outcome.Outcome.read(jobs_file)
    own = [own_metrics.OWN_METRICS.create(name, {}) for name in measures]

    def measured(part: outcome.Outcome) -> dict[str, float | None]:
        theirs = {own_metrics.name_of(each): own_metrics.measured(each, part) for each in own}
        return {**metrics.measure(part), **theirs}

    found = Measurement(
        steadiness.steadiness(known),
        dict(windows),
        {part: measured(known.within(window)) for part, window in windows.items()},
    )
    for file, content in ((METRICS_FILE, measured(known)), (WINDOWS_FILE, found)):
        write_file(folder / file, msgspec.json.format(msgspec.json.encode(content)))
