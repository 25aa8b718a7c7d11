"""What each host is doing, and for how long it did what."""

from __future__ import annotations

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState

# Python 3.11 takes as long to look a member of an enumeration up as to do all the rest.
_IDLE = HostState.IDLE
_COMPUTING = HostState.COMPUTING


class Machines:
    """The hosts' states over time, when each host has one job at most."""

    def __init__(self, computing: int, storages: int = 0) -> None:
        self.count = computing + storages
        self.storages = storages
        self.awake = HostSet.range(self.count).mask
        """The hosts whose power state lets them compute, as a mask."""
        self._in: dict[HostState, int] = dict.fromkeys(HostState, 0)
        self._in[_IDLE] = self.awake
        self._since = [0.0] * self.count
        self.seconds: dict[HostState, float] = dict.fromkeys(HostState, 0.0)
        """Time that hosts spent in each state, up to each host's last change."""

    def hosts_in(self, state: HostState) -> HostSet:
        """The hosts that are in a state."""
        return HostSet(self._in[state])

    def number_in(self, state: HostState) -> int:
        """How many hosts are in a state."""
        return self._in[state].bit_count()

    def occupy(self, hosts: HostSet, now: float) -> None:
        """A job begins on hosts."""
        self._change(hosts, _IDLE, _COMPUTING, now)

    def vacate(self, hosts: HostSet, now: float) -> None:
        """A job ends. Hosts that were made unavailable meanwhile stay so."""
        computing = hosts.mask & self._in[_COMPUTING]
        self._change(HostSet(computing), _COMPUTING, _IDLE, now)

    def turn(self, hosts: HostSet, after: HostState, now: float) -> None:
        """Hosts go over to a state, whatever state each was in."""
        for before, mask in list(self._in.items()):
            if leaving := mask & hosts.mask:
                self._change(HostSet(leaving), before, after, now)

    def _change(self, hosts: HostSet, before: HostState, after: HostState, now: float) -> None:
        since, spent = self._since, 0.0
        for first, last in hosts.runs():
            length = last + 1 - first
            spent += length * now - sum(since[first : last + 1])
            since[first : last + 1] = [now] * length
        self.seconds[before] += spent
        self._in[before] &= ~hosts.mask
        self._in[after] |= hosts.mask


class SharedMachines(Machines):
    """The hosts' states, when several jobs may be on a host."""

    def __init__(self, computing: int, storages: int = 0) -> None:
        super().__init__(computing, storages)
        self._jobs = [0] * self.count

    def occupy(self, hosts: HostSet, now: float) -> None:
        """A job begins on hosts, beside those that are there."""
        for host in hosts:
            self._jobs[host] += 1
        super().occupy(hosts & self.hosts_in(_IDLE), now)

    def vacate(self, hosts: HostSet, now: float) -> None:
        """A job ends; its hosts are idle unless others are there."""
        for host in hosts:
            self._jobs[host] -= 1
        super().vacate(HostSet.of(host for host in hosts if not self._jobs[host]), now)
