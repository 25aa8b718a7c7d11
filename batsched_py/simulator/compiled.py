"""The compiled classes of the simulator."""

from __future__ import annotations

from collections.abc import Callable, Generator

from batsched_py import _native
from batsched_py._native import Agenda
from batsched_py.ledger.ledger import Effect
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.simulator import machines, outputs, submitter, world
from batsched_py.simulator.audience import Audience
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.setup import Setup

__all__ = ["Agenda", "Machines", "Outputs", "Results", "Submitter", "World"]


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
        self._append(self._results.reject(job, metadata))

    def _flush(self) -> None:
        if rows := self._take():
            self._write_jobs(rows)


class Submitter(_native.Submitter, submitter.Submitter):
    """Submits static jobs; those of one instant workload by workload, in the string order of their ids."""


class World(_native.World, world.World):
    """Hosts, jobs and their profiles, and whoever hears what happens to them."""

    def __init__(self, setup: Setup, outputs: outputs.Outputs) -> None:
        super().__init__(setup, outputs)
        runner, registry = self.runner, self.ledger.registry
        self._exact, self._mail, self._profiles = runner.exact, runner.mail, registry.profiles
        self._end_action = self._end
        if isinstance(self.machines, Machines) and isinstance(outputs, Outputs):
            self._native_machines, self._native_outputs = self.machines, outputs
        else:
            self._speed = 0.0

    def apply(self, effect: Effect) -> None:
        """Do what was decided, which is in the ledger already."""
        if type(effect) is _native.RunningJob:
            self._start(effect)
        else:
            super().apply(effect)

    def _carry_out_now(self, effects: list[Effect]) -> None:
        for effect in effects:
            self.apply(effect)

    def _tell(self, event: ev.Event) -> None:
        self.write_down()
        super()._tell(event)

    def _job_is_over(self, execution: Execution, state: JobState, return_code: int, joules: float) -> None:
        self.write_down()
        super()._job_is_over(execution, state, return_code, joules)

    def go_on(self, audience: Audience, on_decisions: Callable[[], None] | None) -> None:
        """Let everything happen, and let everything be carried out that is decided, until all is over."""
        self.set_out(audience.decide(0.0))
        parts = audience.parts()
        if parts is not None:
            self._listen_to(audience, *parts)
        self._go_on(audience, on_decisions)

    def instants(self) -> Generator[float, list[Effect], None]:
        """The same, but stop whenever there is something to decide, and be sent what was decided."""
        self.set_out((yield 0.0))
        agenda = self.agenda
        while len(agenda) or self.news:
            if self.news and self.ready and agenda.instant_is_over():
                self.told()
                effects = yield agenda.now
                if effects or agenda.now > agenda.clock:
                    self.carry_out(effects)
            else:
                agenda.happen()
