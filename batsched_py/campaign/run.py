"""One run of a campaign: simulated in a folder of its own, which gets its name when all is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, field

import batsched_py
from batsched_py.blame import culprit
from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.digest import digest_of_code, digest_of_file, identity
from batsched_py.campaign.folders import is_name, publish, workspace
from batsched_py.campaign.manifest import FileDigest, Manifest, host_facts, versions
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.results import simulate_into
from batsched_py.errors import BatschedError, InputError
from batsched_py.experiment import Experiment

RUNS = "runs"
WORK = "work"


class Task(Struct, frozen=True):
    """A run to be done, for a worker in any process on any machine that shares the files."""

    run: str
    axes: dict[str, str]
    experiment: Experiment
    identity: str
    campaign: str
    """The campaign's folder."""
    command: str
    """What makes this run alone, for its manifest."""
    simulator: str = BUILT_IN
    """The command of a Batsim, or the one that is built in."""
    time_limit: float | None = None
    """In seconds."""


class Done(Struct, frozen=True):
    """What became of a task."""

    run: str
    seconds: float
    failure: str | None = None
    """What went wrong, in one line."""
    warnings: list[str] = field(default_factory=list)
    """What was remarkable, such as bad lines in a log that was read."""


def execute(task: Task) -> Done:
    """Do a run. Whatever goes wrong in it is told, not raised, so that others go on."""
    began = time.perf_counter()
    failure = None
    with _warnings() as warnings:
        try:
            _run(task)
        except BatschedError as error:
            failure = str(error)
        except Exception as error:
            failure = f"{type(error).__name__}: {error} ({culprit(error)})"
    return Done(task.run, time.perf_counter() - began, failure, warnings)


@contextmanager
def _warnings() -> Iterator[list[str]]:
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


def run_identity(experiment: Experiment, simulator: str) -> str:
    """What tells a run from any other, here and now."""
    return identity(experiment, BUILT_IN if simulator == BUILT_IN else str(find_simulator(simulator)))


def is_finished(folder: Path, identity: str) -> bool:
    """Whether a folder holds a whole run of this identity, each result as its manifest tells of it."""
    try:
        manifest = Manifest.read(folder)
        return manifest.identity == identity and all(
            is_name(result.path) and digest_of_file(folder / result.path) == result.sha256
            for result in manifest.results
        )
    except InputError:
        return False


def _run(task: Task) -> None:
    started = datetime.now(UTC)
    simulator = None if task.simulator == BUILT_IN else find_simulator(task.simulator)
    if run_identity(task.experiment, task.simulator) != task.identity:
        raise InputError("an input file or the code is not what it was when the campaign began; run it again")
    campaign = Path(task.campaign)
    target = campaign / RUNS / task.run
    if is_finished(target, task.identity):
        return
    with workspace(campaign / WORK, task.run) as folder:
        seconds = simulate_into(folder, task.experiment, simulator, task.time_limit)
        Manifest(
            run=task.run,
            identity=task.identity,
            axes=task.axes,
            experiment=task.experiment,
            command=task.command,
            simulator=task.simulator if simulator is None else str(simulator),
            code=digest_of_code(task.experiment),
            inputs=[_digest(Path(file), file) for file in task.experiment.files],
            results=[_digest(file, file.name) for file in sorted(folder.iterdir())],
            versions=versions(),
            host=host_facts(),
            started=started.isoformat(timespec="seconds"),
            seconds={step: round(duration, 3) for step, duration in seconds.items()},
        ).write(folder)
        if not is_finished(target, task.identity):
            publish(folder, target)


def _digest(path: Path, name: str) -> FileDigest:
    return FileDigest(name, digest_of_file(path), path.stat().st_size)
