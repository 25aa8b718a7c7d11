"""What each host is doing, and for how long it did what."""

from __future__ import annotations

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState


class Machines:
    """The hosts' states over time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._in: dict[HostState, int] = dict.fromkeys(HostState, 0)
        self._in[HostState.IDLE] = HostSet.range(count).mask
        self._since = [0.0] * count
        self.seconds: dict[HostState, float] = dict.fromkeys(HostState, 0.0)
        """Time that hosts spent in each state, up to each host's last change."""

    def hosts_in(self, state: HostState) -> HostSet:
        """The hosts that are in a state."""
        return HostSet(self._in[state])

    def change(self, hosts: HostSet, before: HostState, after: HostState, now: float) -> None:
        """Hosts leave one state for another."""
        since = self._since
        for first, last in hosts.runs():
            length = last + 1 - first
            self.seconds[before] += length * now - sum(since[first : last + 1])
            since[first : last + 1] = [now] * length
        self._in[before] &= ~hosts.mask
        self._in[after] |= hosts.mask
