"""Conducting a campaign: find out which runs of a plan are not done yet, do them, and record what failed."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from batsched_py.campaign.execute import run_identity
from batsched_py.campaign.plan import BUILT_IN, Plan
from batsched_py.campaign.run import Run, RunResult, State
from batsched_py.campaign.store import TABLE_FILE, Campaign, Wanted
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment
from batsched_py.experiment.command_line import run_command
from batsched_py.trust import code_named_in

_log = logging.getLogger(__name__)


class Executor(Protocol):
    """Where runs are executed."""

    def run(self, runs: Sequence[Run]) -> Iterator[RunResult]:
        """Do all runs; tell of each as soon as it is done."""


def planned_campaign(
    plan: Plan, folder: Path, simulator: str = BUILT_IN, time_limit: float | None = None
) -> Campaign:
    """The campaign in a folder as the plan wants it now: inputs are read and digested."""
    runs = []
    with code_named_in(plan.file, plan.trusted):
        for run in plan.runs:
            assert run.experiment is not None
            runs.append(
                replace(
                    run,
                    identity=run_identity(run.experiment, simulator, run.measures),
                    campaign=str(folder.resolve()),
                    command=_command(plan, run.name, run.experiment, simulator),
                    simulator=simulator,
                    time_limit=time_limit,
                    trusted=plan.trusted,
                )
            )
    wanted = Wanted(
        plan.name,
        plan.title,
        plan.metrics,
        simulator,
        runs,
        plan.baseline,
        plan.own,
        plan.remarks,
        plan.inputs,
    )
    return Campaign(folder, wanted, plan.text)


def runs_to_do(plan: Plan, campaign: Campaign, only: Sequence[str] = ()) -> list[Run]:
    """All runs of the planned campaign that are not done, or ``only`` those of them that are named."""
    names = {run.name for run in plan.runs}
    for name in only:
        if name not in names:
            raise InputError(f"{plan.file}: there is no run {name!r}; see `batsched-py campaign plan`")
    return [
        result.run
        for result in campaign.results()
        if result.state is not State.DONE and (not only or result.name in only)
    ]


def conduct(campaign: Campaign, runs: Sequence[Run], executor: Executor) -> Iterator[RunResult]:
    """Have runs executed; tell of each as soon as it is done and a failure is recorded."""
    warned: set[str] = set()
    with campaign.lock():
        campaign.write()
        try:
            for result in executor.run(runs) if runs else ():
                for warning in result.warnings:
                    if warning not in warned:
                        _log.warning(warning)
                warned.update(result.warnings)
                campaign.record(result)
                yield result
        finally:
            campaign.write_table(campaign.folder / TABLE_FILE)


def _command(plan: Plan, name: str, experiment: Experiment, simulator: str) -> str:
    """What makes a run again, alone, from the present directory."""
    if simulator == BUILT_IN:
        return run_command(experiment.renamed(_shown), name)
    file = _shown(str(plan.file.resolve()))
    arguments = ["campaign", "run", file, "--simulator", simulator, "--only", name, "-d", name]
    return shlex.join(["batsched-py", *arguments])


def _shown(file: str) -> str:
    """A path as one would name it from here: below the present directory, relative to it."""
    return file.removeprefix(f"{os.getcwd()}{os.sep}")
