"""The built-in Batsim: a reply in, the next request out, no sockets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from batsched_py.errors import Deadlock, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.simulator.decisions import apply, name_of, read
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.world import World
from batsched_py.workload.model import Workload


class Batsim:
    """One simulation, seen from the side that knows what happens.

    :meth:`begin` gives the first request; :meth:`advance` takes the reply to it and gives the next, until
    there is none. Decisions that would make Batsim abort raise :class:`RuleBroken` with the rule.
    """

    def __init__(
        self,
        platform: Platform,
        workloads: Sequence[Workload],
        settings: ev.Settings = ev.Settings(),
        outputs: Outputs | None = None,
        ignore_communication: bool = False,
        energy: bool = False,
        events: Sequence[Sequence[ev.Event]] = (),
    ) -> None:
        self.outputs = Outputs(None) if outputs is None else outputs
        self._world = World(platform, workloads, settings, self.outputs, ignore_communication, energy, events)
        self.machines = self._world.machines
        self._agenda = self._world.agenda
        self._decisions: deque[ev.Event] = deque()
        self._reply_now = 0.0
        self._ready = True
        self._ended = False

    def begin(self) -> ev.Message:
        """What is said first."""
        begins = self._world.begin()
        while not self._agenda.instant_is_over():
            self._agenda.happen()
        return ev.Message(0.0, [begins])

    def advance(self, reply: ev.Message) -> ev.Message | None:
        """Apply a reply; what is said next, or nothing when the simulation is over."""
        if self._ended:
            if reply.events:
                raise RuleBroken(
                    f"{name_of(reply.events[0])} came in the reply to SIMULATION_ENDS, when all is over"
                )
            self._world.end()
            return None
        if reply.events or reply.now > self._agenda.clock:
            if not self._world.untold:
                self._agenda.give_notices()
            self._read(reply)
            self._ready = False
            self._go_on_deciding(None)
        return self._next_request()

    def _read(self, reply: ev.Message) -> None:
        for decision in reply.events:
            if decision.time > reply.now:
                raise RuleBroken(
                    f"{name_of(decision)} at {decision.time:f} lies after its message's `now` {reply.now:f}"
                )
            read(self._world, decision)
        self._decisions.extend(reply.events)
        self._reply_now = reply.now

    def _go_on_deciding(self, _: None) -> None:
        """Apply decisions in order, each at its time; then the decision process is ready again."""
        while self._decisions:
            if self._decisions[0].time > self._agenda.clock:
                self._agenda.at(self._decisions[0].time, self._go_on_deciding)
                return
            apply(self._world, self._decisions.popleft())
        if self._reply_now > self._agenda.clock:
            self._agenda.at(self._reply_now, self._be_ready)
        else:
            self._ready = True

    def _be_ready(self, _: None) -> None:
        self._ready = True

    def _next_request(self) -> ev.Message:
        world, agenda = self._world, self._agenda
        while True:
            if world.untold and self._ready and agenda.instant_is_over():
                happened, world.untold = world.untold, []
                return ev.Message(agenda.now, happened)
            if not agenda.heap:
                return self._end()
            agenda.happen()

    def _end(self) -> ev.Message:
        if (fault := self._why_stuck()) is not None:
            raise Deadlock(f"deadlock at {self._agenda.clock:f}: nothing else will happen, yet {fault}")
        self._ended = True
        return ev.Message(self._agenda.now, [ev.SimulationEnds(time=self._agenda.now)])

    def _why_stuck(self) -> str | None:
        world = self._world
        if world.waiting:
            first = next(iter(world.waiting))
            return f"{len(world.waiting)} jobs wait, {first} first; they have to be executed or rejected"
        if world.runner.running:
            return f"job {next(iter(world.runner.running))} waits for a message that it was never sent"
        if world.registration.is_open:
            return "registration was never finished"
        return None
