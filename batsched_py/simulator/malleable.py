"""Malleable jobs: tasks that go on with more or fewer hosts.

How much of a task is done is kept exactly, as a fraction: the sum over its sizes of its speed with that size,
times how long it had it. Only the time of its end is rounded, to what a clock can show.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from batsched_py.ledger.running import RESIZES_HEADER, ResizedJob
from batsched_py.protocol.profiles import Computation, Delay
from batsched_py.protocol.sizes import Malleable, malleable_of
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.computing import Computing, DoneIn
from batsched_py.simulator.energy import Meter
from batsched_py.simulator.execution import Execution
from batsched_py.simulator.outputs import Outputs, Write, quoted


class Share(Struct, eq=False):
    """How much of its task a job has to do, and how fast it does that."""

    malleable: Malleable
    left: Fraction
    """Of the whole task."""
    since: float
    """When that was so."""
    speed: Fraction
    """How much of the task is done in a second; 0 for a task that takes no time."""

    def left_at(self, now: float) -> Fraction:
        """How much is to be done at a time."""
        return max(self.left - (Fraction(now) - Fraction(self.since)) * self.speed, Fraction(0))

    def seconds(self) -> float:
        """How long the rest takes with the present size."""
        return float(self.left / self.speed) if self.speed else 0.0


class MalleableTasks:
    """An execution model: one task on hosts of its own, whose number may change.

    The profile says how long the task takes with as many hosts as the job asks for. With others it is as much
    faster or slower as the job's speedup says. All hosts go at the pace of the slowest.
    """

    def __init__(
        self, computing: Computing, agenda: Agenda, done_in: DoneIn, meter: Meter | None, outputs: Outputs
    ) -> None:
        self._computing = computing
        self._agenda = agenda
        self._done_in = done_in
        self._meter = meter
        self._outputs = outputs
        self._write: Write | None = None
        self._shares: dict[str, Share] = {}

    def has(self, execution: Execution) -> bool:
        """Whether this is the execution of a malleable job."""
        return execution.job.id in self._shares

    def begin(self, execution: Execution) -> None:
        """The task of a malleable job begins."""
        if self._write is None:
            self._write = self._outputs.open("resizes", RESIZES_HEADER)
        malleable = malleable_of(execution.job)
        assert malleable is not None
        share = Share(malleable, Fraction(1), self._agenda.clock, self._speed(execution, malleable))
        self._shares[execution.job.id] = share
        self._load(execution)
        self._done_in(execution, share.seconds())

    def go_on(self, execution: Execution, resized: ResizedJob) -> None:
        """The task has other hosts from now on, which the execution knows already."""
        now, share = self._agenda.clock, self._shares[execution.job.id]
        share.left, share.since = share.left_at(now), now
        share.speed = self._speed(execution, share.malleable)
        if self._meter is not None:
            for host in resized.before - resized.hosts:
                self._meter.put_load(host, 0.0)
        self._load(execution)
        assert self._write is not None
        cells = (execution.job.id, f"{now:.6f}", resized.before.text(), resized.hosts.text())
        self._write(",".join(map(quoted, cells)) + "\n")
        self._done_in(execution, share.seconds())

    def stop(self, execution: Execution) -> None:
        """The task is over."""
        del self._shares[execution.job.id]

    def done(self, execution: Execution) -> float:
        """Which part of the task is done."""
        return float(1 - self._shares[execution.job.id].left_at(self._agenda.clock))

    def _speed(self, execution: Execution, malleable: Malleable) -> Fraction:
        size, task = execution.job.size, execution.task
        if isinstance(task, Delay):
            seconds = task.seconds
        else:
            assert isinstance(task, Computation)
            seconds = task.seconds(size, execution.speeds)
        if not seconds:
            return Fraction(0)
        return malleable.speedup(execution.nb_hosts) / malleable.speedup(size) / Fraction(seconds)

    def _load(self, execution: Execution) -> None:
        """Hosts that compute for a malleable job use one core all the time."""
        if self._meter is not None and isinstance(execution.task, Computation):
            for host in execution.hosts:
                self._meter.put_load(host, self._computing.speed(host) / self._computing.capacity(host))
