"""The power that hosts draw, the energy that it adds up to, and hosts that change their power state.

The model is that of SimGrid: F. Heinrich et al., "Predicting the Energy-Consumption of MPI Applications at
Scale Using Only a Single Node", CLUSTER 2017. A host draws a power that depends on its power state and on the
busy share of its cores, and that changes only at instants the simulation knows; its energy is the sum of
power times duration. What the energy costs, and the carbon that it causes, is added up on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from batsched_py.errors import InputError, RuleBroken
from batsched_py.outside.curve import CURVES, Curve, Known
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.machines import Machines
from batsched_py.simulator.outputs import Outputs, Write, added
from batsched_py.simulator.platform import PlatformHost, PowerState

if TYPE_CHECKING:
    from batsched_py.simulator.runner import Runner
    from batsched_py.simulator.world import Context


class Meter:
    """Joules drawn so far, by each host and by all together."""

    def __init__(self, hosts: Sequence[PlatformHost], agenda: Agenda, bill: Bill) -> None:
        check_power(hosts)
        self._agenda = agenda
        self._bill = bill
        self._billed = 0.0
        """Until when the bill has what was drawn."""
        known: dict[PowerState, PowerState] = {}
        self._pstates = [[known.setdefault(state, state) for state in host.pstates] for host in hosts]
        """Those that are equal are one object."""
        self._states = [states[host.pstate] for states, host in zip(self._pstates, hosts, strict=True)]
        self._loads = [0.0] * len(hosts)
        self._watts = [state.watts(0.0) for state in self._states]
        self._joules = [0.0] * len(hosts)
        self._since = [0.0] * len(hosts)
        self._all_watts = added(self._watts)
        self._all_joules = 0.0
        self._all_since = 0.0
        self.least_watts = added(state.epsilon_watts for state in self._states)
        """The power that all hosts would draw at a load of almost nothing."""

    def put_load(self, host: int, load: float) -> None:
        """From now on, this share of the host's cores is busy."""
        if load != self._loads[host]:
            self._loads[host] = load
            self._draw(host, self._states[host].watts(load))

    def put_loads(self, hosts: Iterable[int], loads: Iterable[float]) -> None:
        """From now on, these shares of the cores of these hosts are busy."""
        before = self._loads
        changed = [(host, load) for host, load in zip(hosts, loads, strict=False) if load != before[host]]
        if not changed:
            return
        now = self._begin_to_change()
        states, all_watts, drawn_joules, since = self._states, self._watts, self._joules, self._since
        total, state, last, watts = self._all_watts, None, 0.0, 0.0
        for host, load in changed:
            before[host] = load
            if load != last or states[host] is not state:
                state, last = states[host], load
                watts = state.watts(load)
            drawn = all_watts[host]
            drawn_joules[host] += drawn * (now - since[host])
            since[host] = now
            all_watts[host] = watts
            total += watts - drawn
        self._all_watts = total

    def put_in_state(self, host: int, pstate: int) -> None:
        """From now on, the host is in another power state."""
        state = self._pstates[host][pstate]
        self.least_watts += state.epsilon_watts - self._states[host].epsilon_watts
        self._states[host] = state
        self._draw(host, state.watts(self._loads[host]))

    def _draw(self, host: int, watts: float) -> None:
        """From now on, the host draws another power."""
        now, drawn = self._begin_to_change(), self._watts[host]
        self._joules[host] += drawn * (now - self._since[host])
        self._since[host] = now
        self._watts[host] = watts
        self._all_watts += watts - drawn

    def _begin_to_change(self) -> float:
        """Add up what was drawn until now, since other power is drawn from now on."""
        now = self._agenda.clock
        if now != self._billed:
            self.bill_drawn()
        if now != self._all_since:
            self._all_joules = self.total()
            self._all_since = now
        return now

    def bill_drawn(self) -> None:
        """Put on the bill what was drawn since this was last done."""
        now = self._agenda.clock
        self._bill.draw(self._billed, now, self._all_watts)
        self._billed = now

    def total(self) -> float:
        """Joules that all hosts have drawn."""
        return self._all_joules + self._all_watts * (self._agenda.clock - self._all_since)

    def drawn_by(self, hosts: HostSet) -> float:
        """Joules that these hosts have drawn."""
        now, joules, watts, since = self._agenda.clock, self._joules, self._watts, self._since
        return added([joules[host] + watts[host] * (now - since[host]) for host in hosts])


def check_power(hosts: Iterable[PlatformHost]) -> None:
    """The platform must say what power all hosts draw."""
    for host in hosts:
        if not host.has_power:
            raise InputError(
                f"host {host.name!r} does not say what power it draws; give it the property "
                "wattage_per_state in the platform file, or leave out --energy"
            )


JOULES_PER_KWH = 3.6e6

OUTSIDE_HEADER = "name,time,value\n"


class _Account(Struct):
    """The sum of one curve's value over the energy that was drawn."""

    name: str
    curve: Curve
    total: float = 0.0
    counted: float = 0.0
    """What it was at the last end of a job."""


class Bill:
    """Multiplies energy by its price and its carbon intensity.

    As in the account of energy, what counts is what was drawn until the last end of a job.
    """

    def __init__(self, known: Known) -> None:
        curves = ("energy_cost", known.price), ("carbon_grams", known.carbon)
        self._accounts = [_Account(name, curve) for name, curve in curves if curve is not None]

    def draw(self, start: float, end: float, watts: float) -> None:
        """Add the energy of this power from one time to another."""
        for account in self._accounts:
            for since, until, value in account.curve.steps(start, end):
                account.total += (until - since) * watts / JOULES_PER_KWH * value

    def job_ends(self) -> None:
        """A job ends: count what was drawn until now."""
        for account in self._accounts:
            account.counted = account.total

    def sums(self) -> dict[str, float]:
        """What is to be paid in the end, by name."""
        return {account.name: account.counted for account in self._accounts}


def write_outside(known: Known, outputs: Outputs, end: float) -> None:
    """Write down what prices, carbon, temperature and power cap were until the end."""
    write = outputs.open("outside", OUTSIDE_HEADER)
    for name in CURVES:
        curve = getattr(known, name)
        for since, _, value in () if curve is None else curve.steps(0.0, end):
            write(f"{name},{since:.6f},{value:.10g}\n")


MACHINE_STATES_HEADER = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing\n"
ENERGY_HEADER = "time,energy,event_type,wattmin,epower\n"
POWER_STATES_HEADER = "time,machine_id,new_pstate\n"

#: Two rows that are closer than this in time have no mean power between them.
LEAST_INTERVAL = 1e-6


#: The states in which a host neither computes nor is idle, as the trace has them.
_APART = (HostState.SLEEPING, HostState.SWITCHING_ON, HostState.SWITCHING_OFF)


class MachineStateTrace:
    """How many hosts are in which state, in ``machine_states.csv``."""

    def __init__(self, machines: Machines, agenda: Agenda, outputs: Outputs) -> None:
        self._machines = machines
        self._agenda = agenda
        self._write = outputs.open("machine_states", MACHINE_STATES_HEADER)

    def row(self) -> None:
        """Write down what is now. Storage hosts are not among the idle ones until they have worked."""
        machines = self._machines
        asleep, on, off = [len(machines.away[state]) for state in _APART]
        away = asleep + on + off + len(machines.away[HostState.UNAVAILABLE])
        idle = machines.count - machines.computing - away - machines.storages
        self._write(f"{self._agenda.clock:g},{asleep},{on},{off},{idle},{machines.computing}\n")


class EnergyTrace:
    """The energy at starts and ends of jobs and at changes of power states, in ``consumed_energy.csv``."""

    def __init__(self, hosts: Sequence[PlatformHost], agenda: Agenda, outputs: Outputs, known: Known) -> None:
        self.bill = Bill(known)
        self.meter = Meter(hosts, agenda, self.bill)
        self._agenda = agenda
        self._write = outputs.open("consumed_energy", ENERGY_HEADER)
        self._before = (0.0, 0.0)
        self._first_submission = self._last_end = -1.0

    @property
    def consumed_joules(self) -> float:
        """What was drawn from the first submission of a static job to the last end of a job.

        Batsim begins with -1 for both.
        """
        return self._last_end - self._first_submission

    def first_submission(self, _: None) -> None:
        """The first static job is submitted now."""
        self._first_submission = self.meter.total()

    def job_starts(self, hosts: HostSet) -> float:
        """A job is about to start; what its hosts have drawn before."""
        self._row("s")
        return self.meter.drawn_by(hosts)

    def job_ends(self, hosts: HostSet) -> float:
        """A job has left its hosts; what they have drawn until now."""
        self._last_end = self._row("e")
        self.meter.bill_drawn()
        self.bill.job_ends()
        return self.meter.drawn_by(hosts)

    def job_resizes(self, taken: HostSet, left: HostSet) -> float:
        """A job is about to take some hosts and to leave others; what the former have drawn more so far."""
        self._row("r")
        return self.meter.drawn_by(taken) - self.meter.drawn_by(left)

    def power_states_change(self) -> None:
        """Power states are about to change, or have changed."""
        self._row("p")

    def _row(self, kind: str) -> float:
        now, joules = self._agenda.clock, self.meter.total()
        (time, before), self._before = self._before, (now, joules)
        power = f"{(joules - before) / (now - time):.6f}" if now - time >= LEAST_INTERVAL else "NA"
        self._write(f"{now:.6f},{joules:.6f},{kind},{self.meter.least_watts:.6f},{power}\n")
        return joules


#: What the trace of power states calls the way to a computing state, and to a sleeping one.
WAKING, FALLING_ASLEEP = -1, -2


#: Sends a message from a host to the master, and says what happens when it arrives.
Send = Callable[[int, Callable[[], None]], None]


class Request(Struct, eq=False):
    """A request to put hosts into a power state."""

    hosts: HostSet
    pstate: int
    left: int
    """The hosts that are not there yet, as a mask."""


def begin_power_states(hosts: Sequence[PlatformHost], outputs: Outputs) -> Write:
    """Begin the trace of power states with those in which hosts are at the beginning; what writes to it."""
    write = outputs.open("pstate_changes", POWER_STATES_HEADER)
    for pstate in sorted({host.pstate for host in hosts}):
        write(_power_states_row(0.0, HostSet.of(host.id for host in hosts if host.pstate == pstate), pstate))
    return write


def _power_states_row(time: float, hosts: HostSet, pstate: int) -> str:
    return f"{time:g},{hosts},{pstate}\n"


class Power:
    """The hosts' power states, and the requests to change them; changes stand in ``pstate_changes.csv``.

    From one computing state to another a host changes at once. To fall asleep or wake up it passes through a
    state of its own for this, in which it executes one flop. Where messages take time, each host then says
    that it has arrived.
    """

    def __init__(
        self,
        context: Context,
        energy: EnergyTrace,
        runner: Runner,
        tell: Callable[[ev.Event], None],
        send: Send | None,
    ) -> None:
        self._hosts = context.hosts
        self._agenda = context.agenda
        self._machines = context.machines
        self._energy_trace = energy
        self._meter = energy.meter
        self._state_trace = context.states
        self._write = begin_power_states(context.hosts, context.outputs)
        self._results = context.outputs.results
        self._runner = runner
        self._tell = tell
        self._send = send
        self._pstates = [host.pstate for host in context.hosts]
        states = (HostState.SLEEPING, HostState.SWITCHING_ON, HostState.SWITCHING_OFF)
        self.asleep = dict.fromkeys(states, HostSet())
        """The hosts that sleep or are on their way, also while they are unavailable."""

    def _row(self, hosts: HostSet, pstate: int) -> None:
        """Hosts are in a power state now; -1 and -2 are on the way to a computing or sleeping one."""
        self._write(_power_states_row(self._agenda.clock, hosts, pstate))

    def request(self, decision: ev.SetHostsState) -> None:
        """Begin to put hosts into a power state."""
        hosts, pstate = decision.hosts, decision.pstate
        first = self._hosts[next(iter(hosts))]
        self._energy_trace.power_states_change()
        self._row(hosts, FALLING_ASLEEP if pstate in first.sleep_states else WAKING)
        self._results.nb_grouped_switches += 1
        self._results.nb_machine_switches += len(hosts)
        request = Request(hosts, pstate, hosts.mask)
        at_once: list[int] = []
        ways: dict[float, list[int]] = {}
        for way, together in groupby(hosts, lambda host: self._way(host, pstate)):
            group = list(together)
            seconds = self._leave(group, pstate, way)
            (at_once if seconds is None else ways.setdefault(seconds, [])).extend(group)
        for seconds, switched in ways.items():
            self._agenda.at(self._agenda.clock + seconds, self._arrive, (request, HostSet.of(switched)))
        if at_once:
            self._count_off((request, HostSet.of(at_once)), trace_states=False)
        if self._state_trace is not None:
            self._state_trace.row()

    def change(self, decision: ev.ChangeHostsPState) -> None:
        """Put hosts into a power state at once, without the time and energy of falling asleep or waking."""
        hosts, pstate = decision.hosts, decision.pstate
        if turned_off := hosts & self._machines.away[HostState.SLEEPING]:
            raise RuleBroken(f"hosts {turned_off} were turned off; they have to be turned on")
        self._energy_trace.power_states_change()
        self._row(hosts, pstate)
        for host in hosts:
            self._put(host, pstate, self._hosts[host].computes_in(pstate))
        self._tell(ev.HostsPStateChanged(hosts, pstate))

    def _way(self, number: int, pstate: int) -> tuple[HostState, int, float] | None:
        """How a host gets from its power state to another: what it is called, its number, its seconds."""
        host, present = self._hosts[number], self._pstates[number]
        if present in host.sleep_states:
            way, state = host.sleep_states[present].switch_on, HostState.SWITCHING_ON
        elif pstate in host.sleep_states:
            way, state = host.sleep_states[pstate].switch_off, HostState.SWITCHING_OFF
        else:
            return None
        return state, way, 1 / host.pstates[way].speed

    def _leave(
        self, numbers: list[int], pstate: int, way: tuple[HostState, int, float] | None
    ) -> float | None:
        """Let hosts leave their power states for another; how long they are on their way, if they are."""
        if way is None:
            for number in numbers:
                self._put(number, pstate, self._hosts[number].computes_in(pstate))
            return None
        state, between, seconds = way
        self._turn(numbers, state)
        for number in numbers:
            self._put(number, between, False)
            self._meter.put_load(number, 1 / self._hosts[number].cores)
        return seconds

    def _arrive(self, arrival: tuple[Request, HostSet]) -> None:
        """Hosts are in the power state they were put into; this is told when all others have arrived too."""
        request, hosts = arrival
        for asleep, together in groupby(hosts, lambda host: request.pstate in self._hosts[host].sleep_states):
            group = list(together)
            for number in group:
                self._meter.put_load(number, 0.0)
                self._put(number, request.pstate, not asleep)
            self._turn(group, HostState.SLEEPING if asleep else HostState.IDLE)
        if self._send is None:
            self._agenda.at(self._agenda.clock, self._count_off, arrival)
        else:
            for number in hosts:
                self._send(number, partial(self._count_off, (request, HostSet.of([number]))))

    def _turn(self, numbers: list[int], state: HostState) -> None:
        """Hosts are in a state; those that are unavailable stay so, and are in it when they come back."""
        hosts = HostSet.of(numbers)
        for other, asleep in self.asleep.items():
            if other is state:
                self.asleep[other] = asleep | hosts
            elif asleep:
                self.asleep[other] = asleep - hosts
        if there := hosts - self._machines.away[HostState.UNAVAILABLE]:
            self._machines.turn(there, state, HostSet(), self._agenda.clock)

    def _put(self, number: int, pstate: int, computes: bool) -> None:
        """A host is in a power state, in which it computes or does not."""
        self._pstates[number] = pstate
        self._meter.put_in_state(number, pstate)
        if computes:
            self._runner.computing.set_speed(number, self._hosts[number].pstates[pstate].speed)

    def _count_off(self, arrival: tuple[Request, HostSet], trace_states: bool = True) -> None:
        request, hosts = arrival
        request.left &= ~hosts.mask
        if request.left:
            return
        self._row(request.hosts, request.pstate)
        self._energy_trace.power_states_change()
        if trace_states and self._state_trace is not None:
            self._state_trace.row()
        self._tell(ev.HostsStateChanged(request.hosts, request.pstate))
