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

from collections import deque
from collections.abc import Generator, Iterator
from functools import partial
from heapq import heappop

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines import Simulation, Situation
from batsched_py.errors import Deadlock, InputError, RuleBroken
from batsched_py.ledger.effects import Effect
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
_EXACT = {ev.ExecuteJob, ev.RejectJob, ev.KillJobs, ev.CallMeLater}
_EXACT |= {ev.SetHostsState, ev.SetJobMetadata, ev.QueryEnergy}


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
        self.world = World(setup, self.outputs)
        self.machines = self.world.machines
        self.ledger = self.world.ledger
        self._agenda = self.world.agenda
        self._decisions: deque[ev.Event] = deque()
        self._reply_now = 0.0
        self._ended = False

    # --- the loop --------------------------------------------------------------------------------

    def turns(self, process: DecisionProcess) -> Generator[Cluster, bool | None, None]:
        """Go through the simulation with a decision process that shares the ledger.

        This stops whenever it is the policy's turn, when all of the instant has happened and was told.
        """
        world, agenda = self.world, self._agenda
        world.listener = process
        world.begin()
        process.join(world.begins, world.ledger)
        effects = yield from process.turns(0.0)
        self._happen_at_the_beginning()
        self._carry_out(effects)
        while (now := self._next_instant()) is not None or self._leaves_jobs(process):
            effects = yield from process.turns(agenda.now if now is None else now)
            if effects or agenda.now > agenda.clock or world.courier is not None:
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
        world, agenda = self.world, self._agenda
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
            if world.courier is not None and heap[0][0] != clock:
                agenda.draw_near(world.unnoticed)
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
        if not self.world.news:
            agenda.give_notices()
        if agenda.now > agenda.clock:
            self.world.ready = False
            agenda.at(agenda.now, self._carry_out_late, effects)
        else:
            self._carry_out_late(effects)

    def _carry_out_late(self, effects: list[Effect]) -> None:
        if self.world.courier is not None:
            self.world.ready = False
            self._carry_out_by_messages(deque(effects))
        else:
            self._carry_out_now(effects)
            self.world.ready = True

    def _carry_out_by_messages(self, effects: deque[Effect]) -> None:
        """As in Batsim, the master tells itself of each decision, and at last that it is ready again."""
        if effects:
            apply = partial(self.world.apply, effects.popleft())
            self.world.carry_out(apply, partial(self._carry_out_by_messages, effects))
        else:
            self.world.carry_out(self._be_ready)

    def _carry_out_now(self, effects: list[Effect]) -> None:
        apply, start_plain = self.world.apply, self.world.runner.plain.start
        for effect in effects:
            if not (type(effect) is RunningJob and start_plain(effect)):
                apply(effect)

    def _leaves_jobs(self, process: DecisionProcess) -> bool:
        """Whether the policy has one more turn, to leave the jobs that wait although nothing will happen."""
        return bool(self.ledger.queue) and process.leaves_jobs()

    def _check_end(self) -> None:
        if (fault := self.world.why_stuck()) is not None:
            raise Deadlock(f"deadlock at {self._agenda.clock:f}: nothing else will happen, yet {fault}")

    # --- by messages -----------------------------------------------------------------------------

    def begin(self) -> ev.Message:
        """What is said first."""
        self.world.speak_in_messages()
        self.world.begin()
        self._happen_at_the_beginning()
        return ev.Message(0.0, [self.world.begins])

    def advance(self, reply: ev.Message) -> ev.Message | None:
        """Apply a reply; what is said next, or nothing when the simulation is over."""
        if self._ended:
            if reply.events:
                raise RuleBroken(
                    f"{name_of(reply.events[0])} came in the reply to SIMULATION_ENDS, when all is over"
                )
            self.world.end()
            return None
        if reply.events or reply.now > self._agenda.clock or self.world.courier is not None:
            if not self.world.news:
                self._agenda.give_notices()
            self._read(reply)
            self.world.ready = False
            self._go_on_deciding(None)
        if (now := self._next_instant()) is not None:
            return self.world.messenger.message(now)
        self._check_end()
        self._ended = True
        return ev.Message(self._agenda.now, [ev.SimulationEnds(time=self._agenda.now)])

    def _read(self, reply: ev.Message) -> None:
        self.ledger.registry.next_reply()
        for decision in reply.events:
            fault = ""
            if decision.time > reply.now:
                fault = f" lies after its message's `now` {reply.now:f}"
            elif decision.extra and type(decision) in _EXACT:
                fault = f": it may not have the members {', '.join(decision.extra)}"
            if fault:
                raise RuleBroken(f"{name_of(decision)} at {decision.time:f}{fault}")
            if type(decision) in _REGISTRATIONS:
                if type(decision) is ev.RegisterJob:
                    decision.job = as_told(decision.job)
                self._decide(decision)
        self._decisions.extend(reply.events)
        self._reply_now = reply.now

    def _go_on_deciding(self, _: None = None) -> None:
        """Carry decisions out in order, each at its time; then the decision process is ready again."""
        decisions, agenda, world = self._decisions, self._agenda, self.world
        while decisions:
            decision = decisions[0]
            if decision.time > agenda.clock:
                agenda.at(decision.time, self._go_on_deciding)
                return
            decisions.popleft()
            if world.courier is not None:
                world.carry_out(partial(self._carry_out_decision, decision), self._go_on_deciding)
                return
            self._carry_out_decision(decision)
        if self._reply_now > agenda.clock:
            agenda.at(self._reply_now, self._go_on_deciding)
        else:
            world.carry_out(self._be_ready)

    def _carry_out_decision(self, decision: ev.Event) -> None:
        if type(decision) not in _REGISTRATIONS:
            self._decide(decision)
        elif type(decision) is ev.RegisterJob and self._settings.acknowledge_dynamic_jobs:
            self.world.acknowledge(decision.job)

    def _decide(self, decision: ev.Event) -> None:
        """Take a decision down, and carry it out."""
        try:
            self.world.apply(self.ledger.decide(decision, self._agenda.clock))
        except RuleBroken as broken:
            raise RuleBroken(f"{name_of(decision)} at {decision.time:f}: {broken}") from None

    def _be_ready(self, _: None = None) -> None:
        self.world.ready = True


def name_of(decision: ev.Event) -> str:
    """How a decision is called, and the job that it is about.

    >>> name_of(ev.RejectJob("w0!7"))
    'RejectJob w0!7'
    """
    if isinstance(decision, ev.Unknown):
        return decision.type
    job_id = decision.job.id if isinstance(decision, ev.RegisterJob) else getattr(decision, "job_id", "")
    return f"{type(decision).__name__} {job_id}".rstrip()


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
        ledger, now = self._batsim.ledger, self._batsim.world.agenda.now
        return Situation(now, len(ledger.queue), len(ledger.running), ledger.free.resources())

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return self._batsim.world.drawn_joules

    def run(self) -> Results:
        """Run the whole simulation."""
        return simulate(self._batsim, self.process)

    def turns(self) -> Iterator[Cluster]:
        """Go through the whole simulation, but leave each turn of the policy to the caller."""
        assert isinstance(self.process, DecisionProcess)
        return turns(self._batsim, self.process)
