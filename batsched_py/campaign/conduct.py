"""Conducting a campaign: find out which runs of a plan are not there yet, have them done, keep the books."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from batsched_py.campaign.plan import BUILT_IN, Plan, PlannedRun
from batsched_py.campaign.run import Done, Task, run_identity
from batsched_py.campaign.store import TABLE_FILE, Campaign, Failure, State, Wanted, WantedRun
from batsched_py.errors import InputError
from batsched_py.experiment.command_line import run_command

_log = logging.getLogger(__name__)


class Executor(Protocol):
    """Wherever runs are executed."""

    def run(self, tasks: Sequence[Task]) -> Iterator[Done]:
        """Do all tasks; tell of each as soon as it is done."""


class Conductor(Struct, frozen=True):
    """A plan, the folder for its results, and what simulates."""

    plan: Plan
    folder: Path
    simulator: str = BUILT_IN
    time_limit: float | None = None

    def campaign(self) -> Campaign:
        """The campaign as the plan wants it now: inputs are read and digested."""
        runs = [
            WantedRun(run.name, run_identity(run.experiment, self.simulator), run.axes)
            for run in self.plan.runs
        ]
        plan = self.plan
        wanted = Wanted(plan.name, plan.title, plan.metrics, self.simulator, runs, plan.baseline)
        return Campaign(self.folder, wanted, plan.text)

    def tasks(self, campaign: Campaign, only: Sequence[str] = ()) -> list[Task]:
        """What is left to do: all runs that are not done, or ``only`` those of them that are named."""
        names = {run.name for run in self.plan.runs}
        for name in only:
            if name not in names:
                raise InputError(
                    f"{self.plan.file}: there is no run {name!r}; see `batsched-py campaign plan`"
                )
        return [
            self._task(planned, wanted)
            for planned, wanted in zip(self.plan.runs, campaign.wanted.runs, strict=True)
            if campaign.state(wanted) is not State.DONE and (not only or wanted.name in only)
        ]

    def _task(self, planned: PlannedRun, wanted: WantedRun) -> Task:
        return Task(
            run=wanted.name,
            axes=wanted.axes,
            experiment=planned.experiment,
            identity=wanted.identity,
            campaign=str(self.folder.resolve()),
            command=self._command(planned),
            simulator=self.simulator,
            time_limit=self.time_limit,
        )

    def _command(self, planned: PlannedRun) -> str:
        """What makes a run again, alone, from the present directory."""
        if self.simulator == BUILT_IN:
            return run_command(planned.experiment.renamed(_shown), planned.name)
        plan = _shown(str(self.plan.file.resolve()))
        arguments = ["campaign", "run", plan, "--simulator", self.simulator]
        return shlex.join(["batsched-py", *arguments, "--only", planned.name, "-d", planned.name])


def conduct(campaign: Campaign, tasks: Sequence[Task], executor: Executor) -> Iterator[Done]:
    """Have the tasks done; tell of each as soon as it is in the books."""
    identities = {task.run: task.identity for task in tasks}
    warned: set[str] = set()
    with campaign.lock():
        campaign.write()
        try:
            for done in executor.run(tasks) if tasks else ():
                for warning in done.warnings:
                    if warning not in warned:
                        _log.warning(warning)
                warned.update(done.warnings)
                if done.failure is None:
                    campaign.forget_failure(done.run)
                else:
                    campaign.record_failure(Failure(done.run, identities[done.run], done.failure))
                yield done
        finally:
            campaign.write_table(campaign.folder / TABLE_FILE)


def _shown(file: str) -> str:
    """A path as one would name it from here: below the present directory, relative to it."""
    return file.removeprefix(f"{os.getcwd()}{os.sep}")
