"""Doing one run of a campaign, in a folder of its own that gets its name when all is done."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import batsched_py
from batsched_py.blame import culprit
from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.digest import code_of, digest_of_code, identity
from batsched_py.campaign.folders import publish, workspace
from batsched_py.campaign.plan import BUILT_IN
from batsched_py.campaign.results import is_result, simulate_into
from batsched_py.campaign.run import (
    WORK,
    FileDigest,
    Manifest,
    Run,
    RunResult,
    State,
    host_facts,
    is_finished,
    versions,
)
from batsched_py.errors import BatschedError, InputError
from batsched_py.experiment import Experiment
from batsched_py.trust import trusting


def execute(run: Run) -> RunResult:
    """Do a run. Whatever goes wrong in it is told, not raised, so that others go on."""
    began = time.perf_counter()
    error = None
    with _warnings() as warnings:
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


def run_identity(experiment: Experiment, simulator: str, measures: Sequence[str] = ()) -> str:
    """What tells a run from any other, here and now."""
    who = BUILT_IN if simulator == BUILT_IN else str(find_simulator(simulator))
    return identity(experiment, who, measures)


def _execute(run: Run) -> None:
    started = datetime.now(UTC)
    simulator = None if run.simulator == BUILT_IN else find_simulator(run.simulator)
    experiment = run.experiment
    assert experiment is not None, "runs of a plan have one"
    if run_identity(experiment, run.simulator, run.measures) != run.identity:
        raise InputError("an input file or the code is not what it was when the campaign began; run it again")
    if is_finished(run.folder, run.identity):
        return
    with workspace(Path(run.campaign) / WORK, run.name) as folder:
        engine, seconds = simulate_into(folder, experiment, simulator, run.time_limit, run.measures)
        Manifest(
            run=run.name,
            identity=run.identity,
            axes=run.axes,
            experiment=experiment,
            command=run.command,
            simulator=run.simulator if simulator is None else str(simulator),
            engine=engine,
            code=digest_of_code(experiment),
            inputs=[FileDigest.of(Path(file), file) for file in (*experiment.files, *code_of(run.measures))],
            results=[
                FileDigest.of(file, file.name) for file in sorted(folder.iterdir()) if is_result(file.name)
            ],
            versions=versions(),
            host=host_facts(),
            started=started.isoformat(timespec="seconds"),
            seconds={step: round(duration, 3) for step, duration in seconds.items()},
        ).write(folder)
        if not is_finished(run.folder, run.identity):
            publish(folder, run.folder)
