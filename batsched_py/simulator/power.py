"""Hosts that change their power state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from batsched_py.errors import RuleBroken
from batsched_py.protocol.events import Event, HostsStateChanged
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.computing import Computing
from batsched_py.simulator.machines import Machines
from batsched_py.simulator.outputs import Results
from batsched_py.simulator.platform import PlatformHost
from batsched_py.simulator.traces import EnergyTrace, MachineStateTrace, PowerStateTrace

#: What the trace of power states calls the way to a computing state, and to a sleeping one.
WAKING, FALLING_ASLEEP = -1, -2


class Request(Struct, eq=False):
    """A request to put hosts into a power state."""

    hosts: HostSet
    pstate: int
    left: int
    """The hosts that are not there yet, as a mask."""


class Power:
    """The hosts' power states, and the requests to change them.

    From one computing state to another a host changes at once. To fall asleep or wake up it passes through a
    state of its own for this, in which it executes one flop.
    """

    def __init__(
        self,
        hosts: Sequence[PlatformHost],
        agenda: Agenda,
        machines: Machines,
        computing: Computing,
        pstates: PowerStateTrace,
        energy: EnergyTrace,
        states: MachineStateTrace | None,
        results: Results,
        tell: Callable[[Event], None],
    ) -> None:
        self._hosts = hosts
        self._agenda = agenda
        self._machines = machines
        self._computing = computing
        self._meter = energy.meter
        self._pstate_trace = pstates
        self._energy_trace = energy
        self._state_trace = states
        self._results = results
        self._tell = tell
        self._pstates = [host.pstate for host in hosts]
        machines.awake = HostSet.of(host.id for host in hosts if host.computes_in(host.pstate)).mask

    def request(self, hosts: HostSet, pstate: int, busy: int) -> None:
        """Begin to put hosts into a power state; those in the mask ``busy`` have jobs and may not change."""
        self._check(hosts, pstate, busy)
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

    def _check(self, hosts: HostSet, pstate: int, busy: int) -> None:
        if not hosts:
            raise RuleBroken("no host was given")
        if hosts.mask >> len(self._hosts):
            raise RuleBroken(f"hosts {hosts - HostSet.range(len(self._hosts))} do not exist")
        if taken := hosts.mask & busy:
            raise RuleBroken(f"hosts {HostSet(taken)} run jobs and cannot change their power state")
        for number in hosts:
            host, present = self._hosts[number], self._pstates[number]
            if not (host.computes_in(pstate) or pstate in host.sleep_states):
                raise RuleBroken(f"host {number} has no power state {pstate} to compute or sleep in")
            if not (host.computes_in(present) or present in host.sleep_states):
                raise RuleBroken(f"host {number} is switching and cannot change its power state now")
            if present in host.sleep_states and pstate in host.sleep_states:
                raise RuleBroken(f"host {number} sleeps already (power state {present}); it can only wake up")

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
        self._machines.turn(HostSet.of([number]), state, self._agenda.clock)
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
            self._machines.turn(HostSet.of([number]), after, self._agenda.clock)
        self._agenda.at(self._agenda.clock, self._count_off, arrival)

    def _put(self, number: int, pstate: int) -> None:
        host = self._hosts[number]
        self._pstates[number] = pstate
        self._meter.put_in_state(number, pstate)
        if host.computes_in(pstate):
            self._computing.set_speed(number, host.pstates[pstate].speed)
            self._machines.awake |= 1 << number
        else:
            self._machines.awake &= ~(1 << number)

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
