"""What the native engine writes of a simulation beside its jobs: energy, states of hosts, a Paje trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from batsched_py.outside.curve import NOTHING_KNOWN
from batsched_py.protocol.jobs import Watts
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup

if TYPE_CHECKING:
    from batsched_py.schedulers.idle_hosts import SleepStates
    from batsched_py.simulator.energy import Bill
    from batsched_py.simulator.paje import PajeTrace
    from batsched_py.simulator.platform import PlatformHost, PowerState


class _SleepKind(NamedTuple):
    """In which power states a host sleeps and computes, and its ways there: number, seconds, watts."""

    pstate_asleep: int
    pstate_awake: int
    asleep: Watts
    awake: Watts
    to_sleep: tuple[int, float, Watts]
    back: tuple[int, float, Watts]
    load: float

    @classmethod
    def of(cls, host: PlatformHost, asleep: int, awake: int) -> _SleepKind:
        state, watts = host.sleep_states[asleep], [_watts(each) for each in host.pstates]
        off, on = [
            (way, 1 / host.pstates[way].speed, watts[way]) for way in (state.switch_off, state.switch_on)
        ]
        return cls(asleep, awake, watts[asleep], watts[awake], off, on, 1 / host.cores)


def _watts(state: PowerState) -> Watts:
    """A state of speed 0 counts as fully loaded."""
    idle = state.full_watts if state.speed <= 0 else state.idle_watts
    return idle, state.epsilon_watts, state.full_watts


class Traces:
    """The files that tell what hosts do and draw, as far as they are asked for.

    The library counts the energy; what it costs is added up here.
    """

    def __init__(self, engine: Any, setup: Setup, outputs: Outputs) -> None:
        self._engine = engine
        self._setup = setup
        self._outputs = outputs
        self._bill: Bill | None = None
        self._paje: PajeTrace | None = None
        if setup.energy:
            self._count_energy()
        if outputs.machine_states:
            from batsched_py.simulator.energy import MACHINE_STATES_HEADER

            engine.set_write_states(outputs.open("machine_states", MACHINE_STATES_HEADER))
        if outputs.schedule_trace:
            from batsched_py.simulator.paje import PajeTrace

            self._paje = PajeTrace([host.name for host in setup.platform.hosts], outputs.open_schedule_trace)
            engine.set_trace(self._paje)
        if setup.energy:
            from batsched_py.simulator.energy import begin_power_states

            self._write_power_states = begin_power_states(setup.platform.hosts, outputs)

    def _count_energy(self) -> None:
        from batsched_py.simulator import energy

        hosts, outputs = self._setup.platform.hosts, self._outputs
        energy.check_power(hosts)
        states = [host.pstates[host.pstate] for host in hosts]
        watts = map(_watts, states)
        write = outputs.open("consumed_energy", energy.ENERGY_HEADER)
        self._engine.set_energy(*map(list, zip(*watts, strict=True)), write if outputs.files else None)
        self._bill = energy.Bill(self._setup.known)
        if self._setup.known is not NOTHING_KNOWN:
            self._engine.set_bill(self._bill)

    def let_hosts_sleep(self, sleep_states: SleepStates) -> None:
        """Hosts may go over to other power states."""
        kinds: dict[_SleepKind, int] = {}
        kind_of = []
        for host in self._setup.platform.hosts:
            asleep = sleep_states.sleeps_in.get(host.id)
            kind = None if asleep is None else _SleepKind.of(host, asleep, sleep_states.wakes_in[host.id])
            kind_of.append(-1 if kind is None else kinds.setdefault(kind, len(kinds)))
        self._engine.set_sleep_kinds(
            list(kinds), kind_of, self._write_power_states if self._outputs.files else None
        )

    def complete(self) -> None:
        """The simulation ended well."""
        results = self._outputs.results
        if self._bill is not None:
            results.consumed_joules, results.bill = self._engine.consumed_joules, self._bill.sums()
        if self._setup.known is not NOTHING_KNOWN:
            from batsched_py.simulator.energy import write_outside

            write_outside(self._setup.known, self._outputs, results.makespan)
        if self._paje is not None:
            self._paje.complete(self._engine.clock)
