"""The Python engine: the loop of a simulation. It does everything; the native one is held to it.

A simulation goes from instant to instant. At each,

1. what the agenda has for that time happens: jobs are submitted and end, hosts come and go, calls are made.
   The decision side hears of each thing as it happens (:meth:`Batsim._next_instant`);
2. when all of it has happened, the decision side is asked: users act, jobs that were held join the queue, the
   policy decides, and all again while what it decides makes users act at once
   (:meth:`~batsched_py.decision.process.DecisionProcess.turns`). A decision that breaks a rule is refused,
   any other stands in the ledger at once;
3. what was decided takes effect (:meth:`Batsim._carry_out`, by :meth:`World.apply
   <batsched_py.simulator.world.World.apply>`). That puts down on the agenda what will follow from it: a job
   that is started will end.

The simulation is over when the agenda is empty and all was told. If a job waits then, that is a deadlock.

A decision process elsewhere, or one that takes time to decide, does not share the ledger: the same instants
are told to it by messages, and its replies are carried out decision by decision, each at its time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from heapq import heappop

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines import Simulation, Situation
from batsched_py.errors import Deadlock, InputError, RuleBroken
from batsched_py.ledger.ledger import Effect
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import JobState, as_told, to_tick
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.decision_side import Decides
from batsched_py.simulator.outputs import Outputs, Results
from batsched_py.simulator.setup import Setup
from batsched_py.simulator.world import World

_SUCCESS = JobState.SUCCESS

#: The decisions that come alive when they are read, whatever their time.
_REGISTRATIONS = frozenset({ev.RegisterProfile, ev.RegisterJob, ev.RegistrationFinished})

#: The decisions of which Batsim counts the members.
_EXACT = frozenset(
    {
        ev.ExecuteJob,
        ev.RejectJob,
        ev.KillJobs,
        ev.CallMeLater,
        ev.SetHostsState,
        ev.SetJobMetadata,
        ev.QueryEnergy,
    }
)


class Batsim:
    """One simulation, seen from the side that knows what happens.

    There are two ways to go through it. With a decision process in this process, :meth:`turns` stops
    whenever something is to be decided. Otherwise :meth:`begin` gives the first request, and :meth:`advance`
    takes the reply to it and gives the next, until there is none; decisions that would make Batsim abort
    raise :class:`RuleBroken`.
    """

    def __init__(self, setup: Setup, outputs: Outputs | None = None) -> None:
        self.outputs = Outputs(None) if outputs is None else outputs
        self._settings = setup.settings
        self._world = World(setup, self.outputs)
        self.machines = self._world.machines
        self.ledger = self._world.ledger
        self._agenda = self._world.agenda
        self._decisions: deque[ev.Event] = deque()
        self._reply_now = 0.0
        self._ended = False

    @property
    def now(self) -> float:
        """The time that the simulation has come to."""
        return self._agenda.now

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return self._world.drawn_joules

    # --- the loop --------------------------------------------------------------------------------

    def turns(self, process: DecisionProcess) -> Generator[Cluster, bool | None, None]:
        """Go through the simulation with a decision process that shares the ledger.

        This stops whenever it is the policy's turn, when all of the instant has happened and was told.
        """
        world, agenda = self._world, self._agenda
        world.listener = process
        world.begin()
        process.join(world.begins, world.ledger)
        effects = yield from process.turns(0.0)
        self._happen_at_the_beginning()
        self._carry_out(effects)
        while (now := self._next_instant()) is not None:
            effects = yield from process.turns(now)
            if effects or now > agenda.clock:
                self._carry_out(effects)
        self._check_end()
        process.happened(ev.SimulationEnds(time=agenda.now))
        world.end()

    def _happen_at_the_beginning(self) -> None:
        """What was decided first is carried out when all that begins with the simulation has happened."""
        while not self._agenda.instant_is_over():
            self._agenda.happen()

    def _next_instant(self) -> float | None:
        """Let everything happen until something is to be decided; when that is, or nothing if all is over.

        There is something to decide when there is news, the agenda has no more of this instant but notices,
        no message is on its way to the master, and the decision process does not think any more. Plain jobs
        end right here: see :class:`~batsched_py.simulator.execution.PlainJobs`.
        """
        world, agenda = self._world, self._agenda
        heap, end_plain = agenda.heap, world.end_plain
        while heap or world.news:
            clock = agenda.clock
            if (
                world.news
                and world.ready
                and (not heap or heap[0][0] > clock or heap[0][1] == 1)
                and (world.courier is None or not world.courier.busy)
            ):
                world.told()
                return agenda.now
            time, _, _, action, argument = heappop(heap)
            if agenda.cancelled:
                agenda.drop_cancelled()
            if time != clock:
                agenda.clock = time
                agenda.now = time if time.is_integer() else to_tick(time)
            if type(argument) is RunningJob:
                end_plain(argument, action, 0 if action is _SUCCESS else -1)
            else:
                action(argument)
        return None

    def _carry_out(self, effects: list[Effect]) -> None:
        """Carry decisions out, now or when the time has come that was told as now."""
        agenda = self._agenda
        if not self._world.news:
            agenda.give_notices()
        if agenda.now > agenda.clock:
            self._world.ready = False
            agenda.at(agenda.now, self._carry_out_late, effects)
        else:
            self._carry_out_now(effects)

    def _carry_out_late(self, effects: list[Effect]) -> None:
        self._carry_out_now(effects)
        self._world.ready = True

    def _carry_out_now(self, effects: list[Effect]) -> None:
        apply, start_plain = self._world.apply, self._world.runner.plain.start
        for effect in effects:
            if not (type(effect) is RunningJob and start_plain(effect)):
                apply(effect)

    def _check_end(self) -> None:
        if (fault := self._world.why_stuck()) is not None:
            raise Deadlock(f"deadlock at {self._agenda.clock:f}: nothing else will happen, yet {fault}")

    # --- by messages -----------------------------------------------------------------------------

    def begin(self) -> ev.Message:
        """What is said first."""
        self._world.speak_in_messages()
        self._world.begin()
        self._happen_at_the_beginning()
        return ev.Message(0.0, [self._world.begins])

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
            if not self._world.news:
                self._agenda.give_notices()
            self._read(reply)
            self._world.ready = False
            self._go_on_deciding(None)
        return self._next_request()

    def _read(self, reply: ev.Message) -> None:
        self.ledger.registry.next_reply()
        for decision in reply.events:
            if decision.time > reply.now:
                raise RuleBroken(
                    f"{name_of(decision)} at {decision.time:f} lies after its message's `now` {reply.now:f}"
                )
            if decision.extra and type(decision) in _EXACT:
                members = ", ".join(decision.extra)
                raise RuleBroken(
                    f"{name_of(decision)} at {decision.time:f}: it may not have the members {members}"
                )
            if type(decision) in _REGISTRATIONS:
                if type(decision) is ev.RegisterJob:
                    decision.job = as_told(decision.job)
                self._decide(decision)
        self._decisions.extend(reply.events)
        self._reply_now = reply.now

    def _go_on_deciding(self, _: None) -> None:
        """Carry decisions out in order, each at its time; then the decision process is ready again."""
        decisions, agenda = self._decisions, self._agenda
        while decisions:
            decision = decisions[0]
            if decision.time > agenda.clock:
                agenda.at(decision.time, self._go_on_deciding)
                return
            decisions.popleft()
            if type(decision) not in _REGISTRATIONS:
                self._decide(decision)
            elif type(decision) is ev.RegisterJob and self._settings.acknowledge_dynamic_jobs:
                self._world.acknowledge(decision.job)
        if self._reply_now > agenda.clock:
            agenda.at(self._reply_now, self._be_ready)
        else:
            self._world.ready = True

    def _decide(self, decision: ev.Event) -> None:
        """Take a decision down, and carry it out."""
        try:
            self._world.apply(self.ledger.decide(decision, self._agenda.clock))
        except RuleBroken as broken:
            raise RuleBroken(f"{name_of(decision)} at {decision.time:f}: {broken}") from None

    def _be_ready(self, _: None) -> None:
        self._world.ready = True

    def _next_request(self) -> ev.Message:
        now = self._next_instant()
        if now is not None:
            return self._world.messenger.message(now)
        self._check_end()
        self._ended = True
        return ev.Message(self._agenda.now, [ev.SimulationEnds(time=self._agenda.now)])


def name_of(decision: ev.Event) -> str:
    """How a decision is called."""
    return decision.type if isinstance(decision, ev.Unknown) else type(decision).__name__


def simulate(batsim: Batsim, process: Decides) -> Results:
    """Run a whole simulation.

    If both sides are here, and the one that decides takes no time for it, they share one ledger. Otherwise
    they exchange messages.
    """
    try:
        if isinstance(process, DecisionProcess) and not process.scheduling_delay:
            process.take_turns(batsim.turns(process))
        else:
            request: ev.Message | None = batsim.begin()
            while request is not None:
                request = batsim.advance(process.react(request))
    except BaseException:
        batsim.outputs.abandon()
        raise
    return batsim.outputs.results


def turns(batsim: Batsim, process: DecisionProcess) -> Generator[Cluster, None, None]:
    """Go through a whole simulation, but leave each turn of the policy to the caller.

    At its turn, the caller looks at the cluster and says to it what to start, or lets the policy decide after
    all, by ``process.ask()``. The simulation is the same as :func:`simulate` runs, and may be left before its
    end.
    """
    if process.scheduling_delay:
        raise InputError("a slow scheduler, with a scheduling delay, has no turns that can be left to others")
    try:
        yield from batsim.turns(process)
    except BaseException:
        batsim.outputs.abandon()
        raise


class PythonSimulation(Simulation):
    """A simulation by the built-in Batsim and a decision process."""

    engine = "python"

    def __init__(self, batsim: Batsim, process: Decides) -> None:
        self._batsim = batsim
        self.process = process
        self.outputs = batsim.outputs
        self.machines = batsim.machines

    def situation(self) -> Situation:
        """How things stand."""
        ledger, now = self._batsim.ledger, self._batsim.now
        return Situation(now, len(ledger.queue), len(ledger.running), ledger.free.resources())

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return self._batsim.drawn_joules

    def run(self) -> Results:
        """Run the whole simulation."""
        return simulate(self._batsim, self.process)

    def turns(self) -> Iterator[Cluster]:
        """Go through the whole simulation, but leave each turn of the policy to the caller."""
        assert isinstance(self.process, DecisionProcess)
        return turns(self._batsim, self.process)
