"""The energy that hosts draw: F. Heinrich et al., "Predicting the Energy-Consumption of MPI Applications at
Scale Using Only a Single Node", CLUSTER 2017, which is the model of SimGrid.

A host draws a power that depends on its power state and on the busy share of its cores, and that changes
only at instants the simulation knows; its energy is the sum of power times duration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.platform import PlatformHost

#: Is told from when to when how many watts were drawn by all hosts.
OnDrawn = Callable[[float, float, float], None]


class Meter:
    """Joules drawn so far, by each host and by all together."""

    def __init__(
        self, hosts: Sequence[PlatformHost], agenda: Agenda, on_drawn: OnDrawn | None = None
    ) -> None:
        for host in hosts:
            if not host.has_power:
                raise InputError(
                    f"host {host.name!r} does not say what power it draws; give it the property "
                    "wattage_per_state in the platform file, or leave out --energy"
                )
        self._agenda = agenda
        self._on_drawn = on_drawn
        self._told = 0.0
        """Until when it was told what was drawn."""
        self._states = [host.pstates[host.pstate] for host in hosts]
        self._loads = [0.0] * len(hosts)
        self._watts = [state.watts(0.0) for state in self._states]
        self._joules = [0.0] * len(hosts)
        self._since = [0.0] * len(hosts)
        self._all_watts = sum(self._watts)
        self._all_joules = 0.0
        self._all_since = 0.0
        self._pstates = [host.pstates for host in hosts]
        self.least_watts = sum(state.epsilon_watts for state in self._states)
        """The power that all hosts would draw at a load of almost nothing."""

    def put_load(self, host: int, load: float) -> None:
        """From now on, this share of the host's cores is busy."""
        if load != self._loads[host]:
            self._loads[host] = load
            self._change(host)

    def put_in_state(self, host: int, pstate: int) -> None:
        """From now on, the host is in another power state."""
        state = self._pstates[host][pstate]
        self.least_watts += state.epsilon_watts - self._states[host].epsilon_watts
        self._states[host] = state
        self._change(host)

    def _change(self, host: int) -> None:
        now = self._agenda.clock
        watts = self._states[host].watts(self._loads[host])
        before = self._watts[host]
        self._joules[host] += before * (now - self._since[host])
        self._since[host] = now
        self._watts[host] = watts
        self.tell_drawn()
        self._all_joules = self.total()
        self._all_since = now
        self._all_watts += watts - before

    def tell_drawn(self) -> None:
        """Tell what was drawn since this was last told."""
        if self._on_drawn is not None:
            now = self._agenda.clock
            self._on_drawn(self._told, now, self._all_watts)
            self._told = now

    def total(self) -> float:
        """Joules that all hosts have drawn."""
        return self._all_joules + self._all_watts * (self._agenda.clock - self._all_since)

    def drawn_by(self, hosts: HostSet) -> float:
        """Joules that these hosts have drawn."""
        now, joules, watts, since = self._agenda.clock, self._joules, self._watts, self._since
        return sum([joules[host] + watts[host] * (now - since[host]) for host in hosts])
