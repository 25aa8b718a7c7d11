"""Hosts that change their power state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from batsched_py.protocol.events import Event, HostsPStateChanged, HostsStateChanged
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState
from batsched_py.simulator.context import Context
from batsched_py.simulator.runner import Runner
from batsched_py.simulator.traces import PowerStateTrace

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


class Power:
    """The hosts' power states, and the requests to change them.

    From one computing state to another a host changes at once. To fall asleep or wake up it passes through a
    state of its own for this, in which it executes one flop. Where messages take time, each host then says
    that it has arrived.
    """

    def __init__(
        self, context: Context, runner: Runner, tell: Callable[[Event], None], send: Send | None
    ) -> None:
        assert context.energy is not None
        self._hosts = context.hosts
        self._agenda = context.agenda
        self._machines = context.machines
        self._energy_trace = context.energy
        self._meter = context.energy.meter
        self._state_trace = context.states
        self._pstate_trace = PowerStateTrace(context.hosts, context.agenda, context.outputs)
        self._results = context.outputs.results
        self._runner = runner
        self._tell = tell
        self._send = send
        self._pstates = [host.pstate for host in context.hosts]
        self.asleep: dict[HostState, HostSet] = {
            state: HostSet()
            for state in (HostState.SLEEPING, HostState.SWITCHING_ON, HostState.SWITCHING_OFF)
        }
        """The hosts that sleep or are on their way, also while they are unavailable."""

    def request(self, hosts: HostSet, pstate: int) -> None:
        """Begin to put hosts into a power state."""
        first = self._hosts[next(iter(hosts))]
        self._energy_trace.power_states_change()
        self._pstate_trace.row(hosts, FALLING_ASLEEP if pstate in first.sleep_states else WAKING)
        self._results.nb_grouped_switches += 1
        self._results.nb_machine_switches += len(hosts)
        request = Request(hosts, pstate, hosts.mask)
        at_once: list[int] = []
        ways: dict[float, list[int]] = {}
        for host in hosts:
            seconds = self._leave(host, pstate)
            (at_once if seconds is None else ways.setdefault(seconds, [])).append(host)
        for seconds, travellers in ways.items():
            self._agenda.at(self._agenda.clock + seconds, self._arrive, (request, HostSet.of(travellers)))
        if at_once:
            self._count_off((request, HostSet.of(at_once)), trace_states=False)
        if self._state_trace is not None:
            self._state_trace.row()

    def change(self, hosts: HostSet, pstate: int) -> None:
        """Put hosts into a power state at once, without the time and energy of falling asleep or waking."""
        self._energy_trace.power_states_change()
        self._pstate_trace.row(hosts, pstate)
        for host in hosts:
            self._put(host, pstate)
        self._tell(HostsPStateChanged(hosts, pstate))

    def _leave(self, number: int, pstate: int) -> float | None:
        """Let a host leave its power state for another; how long it is on its way, if it is at all."""
        host, present = self._hosts[number], self._pstates[number]
        if present in host.sleep_states:
            way, state = host.sleep_states[present].switch_on, HostState.SWITCHING_ON
        elif pstate in host.sleep_states:
            way, state = host.sleep_states[pstate].switch_off, HostState.SWITCHING_OFF
        else:
            self._put(number, pstate)
            return None
        self._turn(number, state)
        self._put(number, way)
        self._meter.put_load(number, 1 / host.cores)
        return 1 / host.pstates[way].speed

    def _arrive(self, arrival: tuple[Request, HostSet]) -> None:
        """Hosts are in the power state they were put into; this is told when all others have arrived too."""
        request, hosts = arrival
        for number in hosts:
            self._meter.put_load(number, 0.0)
            self._put(number, request.pstate)
            asleep = request.pstate in self._hosts[number].sleep_states
            after = HostState.SLEEPING if asleep else HostState.IDLE
            self._turn(number, after)
        if self._send is None:
            self._agenda.at(self._agenda.clock, self._count_off, arrival)
        else:
            for number in hosts:
                self._send(number, partial(self._count_off, (request, HostSet.of([number]))))

    def _turn(self, number: int, state: HostState) -> None:
        """A host is in a state; one that is unavailable stays so, and is in this state when it comes back."""
        host = HostSet.of([number])
        for other in self.asleep:
            self.asleep[other] = self.asleep[other] - host
        if state in self.asleep:
            self.asleep[state] = self.asleep[state] | host
        if not host & self._machines.away[HostState.UNAVAILABLE]:
            self._machines.turn(host, state, HostSet(), self._agenda.clock)

    def _put(self, number: int, pstate: int) -> None:
        host = self._hosts[number]
        self._pstates[number] = pstate
        self._meter.put_in_state(number, pstate)
        if host.computes_in(pstate):
            self._runner.computing.set_speed(number, host.pstates[pstate].speed)

    def _count_off(self, arrival: tuple[Request, HostSet], trace_states: bool = True) -> None:
        request, hosts = arrival
        request.left &= ~hosts.mask
        if request.left:
            return
        self._pstate_trace.row(request.hosts, request.pstate)
        self._energy_trace.power_states_change()
        if trace_states and self._state_trace is not None:
            self._state_trace.row()
        self._tell(HostsStateChanged(request.hosts, request.pstate))
