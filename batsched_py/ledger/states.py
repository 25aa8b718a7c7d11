"""Which hosts are away, asleep or on their way to another power state."""

from collections.abc import Sequence
from functools import cached_property

from batsched_py.errors import RuleBroken
from batsched_py.ledger import rules
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import NOWHERE, HostSet
from batsched_py.protocol.jobs import Host


class HostStates:
    """The states of hosts, whatever runs on them, with the rules for changing them."""

    def __init__(self, machines: Sequence[Host], energy: bool, nb_pstates: Sequence[int] | None) -> None:
        """Without ``energy``, no host can change its power state."""
        self._machines = machines
        self._energy = energy
        self._nb_pstates = nb_pstates
        self.unavailable = NOWHERE
        """The hosts that were taken away."""
        self.asleep = NOWHERE
        """The hosts that sleep, or slept when they began to switch."""
        self.switching = NOWHERE
        """The hosts that are on their way to another power state."""

    def check_usable(self, hosts: HostSet) -> None:
        """Hosts must be there, awake and not switching."""
        if away := hosts & self.unavailable:
            raise RuleBroken(f"hosts {away} are unavailable")
        if asleep := hosts & (self.asleep | self.switching):
            raise RuleBroken(f"hosts {asleep} sleep or are switching their power state")

    def check_energy(self, decision: ev.Event) -> None:
        """What is decided needs an account of energy."""
        if not self._energy:
            rules.refuse_without_energy(decision)

    def check_switch(self, hosts: HostSet, pstate: int, at_once: bool) -> None:
        """Hosts are to go over to a power state."""
        if switching := hosts & self.switching:
            raise RuleBroken(f"hosts {switching} are switching their power state already")
        for host in hosts:
            states = self._sleep_pstates[host]
            if pstate < 0 or (self._nb_pstates is not None and pstate >= self._nb_pstates[host]):
                raise RuleBroken(f"host {host} has no power state {pstate}")
            if any(pstate in ways for ways in states.values()):
                raise RuleBroken(f"host {host} only passes through power state {pstate}")
            if pstate in states and host in self.asleep and not at_once:
                raise RuleBroken(f"host {host} sleeps already; it can only wake up")

    def switched(self, hosts: HostSet, pstate: int) -> HostSet:
        """Hosts have reached a power state; those of them that compute in it."""
        asleep = HostSet.of(host for host in hosts if pstate in self._sleep_pstates[host])
        self.switching = self.switching - hosts
        self.asleep = self.asleep - hosts | asleep
        return hosts - asleep

    @cached_property
    def _sleep_pstates(self) -> list[dict[int, tuple[int, int]]]:
        return [host.sleep_pstates for host in self._machines]
