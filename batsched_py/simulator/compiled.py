"""The compiled classes of the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from batsched_py import _native
from batsched_py._native import Agenda
from batsched_py.ledger.ledger import Effect
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.simulator import machines, outputs, runner, submitter, world
from batsched_py.simulator.agenda import Action
from batsched_py.simulator.audience import Audience
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.setup import Setup

if TYPE_CHECKING:
    from batsched_py.simulator.engine import Batsim

__all__ = ["Agenda", "Machines", "Outputs", "Results", "Runner", "Submitter", "World"]


class Machines(_native.Machines, machines.Machines):
    """How many hosts are in which state over time, when each host has one job at most."""


class Results(_native.Results, outputs.Results):
    """Sums over finished jobs."""


class Outputs(_native.Outputs, outputs.Outputs):
    """Writes one simulation's files, or only counts when there is no prefix."""

    def __init__(
        self,
        prefix: str | None,
        machine_states: bool = False,
        new_file: outputs.NewFile = outputs.OutputFile,
    ) -> None:
        super().__init__(prefix, machine_states, new_file)
        self._results = self._sums = Results()
        self._writes = bool(prefix)

    def rejected(self, job: Job, metadata: str) -> None:
        """A job was refused."""
        self._append(self._results.count((job, JobState.REJECTED, None, 0.0, 0.0, 0.0, metadata)))

    def _flush(self) -> None:
        if rows := self._take():
            self._write_jobs(rows)


class Submitter(_native.Submitter, submitter.Submitter):
    """Submits static jobs; those of one instant workload by workload, in the string order of their ids."""


class Runner(runner.Runner):
    """The running jobs, but for those of which nothing is to be known but how long they take."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_simple, self._simple = self._simple, False

    def take_over(self, running: _native.RunningJob) -> tuple[Action, Execution]:
        """One of those is to be like all others: what will happen to it."""
        job, speeds, start = running.executed, self.computing.even_speeds, running.begun
        assert speeds is not None
        profile = self._catalog.profile_of(job)
        self.running[job.id] = execution = Execution(
            job, running.hosts, running.nb_hosts, speeds, start, job.walltime, job.profile, profile, start
        )
        execution.agenda_number = running.agenda_number
        return (self._reach_walltime if running.reaches_walltime else self._end_task), execution


class World(_native.World, world.World):
    """Hosts, jobs and their profiles, and whoever hears what happens to them."""

    def __init__(self, setup: Setup, outputs: outputs.Outputs) -> None:
        super().__init__(setup, outputs)
        runner, registry = self.runner, self.ledger.registry
        self._exact, self._mail, self._profiles = runner.exact, runner._mail, registry.profiles
        self._end_action = self._end
        speeds = runner.computing.even_speeds
        if (
            runner.is_simple
            and speeds is not None
            and not registry.collects
            and isinstance(self.machines, Machines)
            and isinstance(outputs, Outputs)
        ):
            self._native_machines, self._native_outputs = self.machines, outputs
            self._speed = speeds.slowest

    def carry_out(self, effect: Effect) -> None:
        """Do what was decided, which is in the ledger already."""
        if type(effect) is _native.RunningJob:
            self._start(effect)
            return
        if type(effect) is ev.KillJobs:
            self.hand_over()
        super().carry_out(effect)

    def _tell(self, event: ev.Event) -> None:
        self.write_down()
        super()._tell(event)

    def _job_is_over(self, execution: Execution, state: JobState, return_code: int, joules: float) -> None:
        self.write_down()
        super()._job_is_over(execution, state, return_code, joules)

    def _occur(self, event: ev.Event) -> None:
        self.hand_over()
        super()._occur(event)

    def go_on(self, batsim: Batsim, audience: Audience, on_decisions: Callable[[], None] | None) -> None:
        """Go through a simulation that has begun, until nothing else will happen."""
        parts = audience.parts()
        if parts is not None:
            self._listen_to(audience, *parts)
        self._go_on(batsim, audience, on_decisions)
