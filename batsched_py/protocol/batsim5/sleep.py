"""Which hosts sleep.

Batsim 5 has one event for hosts that fall asleep or wake up, which takes them time, and another one for a
change of the power state that is done at once. A policy says only which power state it wants.
"""

from __future__ import annotations

from collections.abc import Sequence

from batsched_py.errors import RuleBroken
from batsched_py.protocol.events import ChangeHostsPState, Event, SetHostsState
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, HostState


class Sleep:
    """The hosts that sleep, or were told to, as one side of a conversation knows it."""

    def __init__(self) -> None:
        self._sleep_pstates: dict[int, frozenset[int]] = {}
        """The power states in which each host sleeps."""
        self._asleep = HostSet()

    def begin(self, hosts: Sequence[Host]) -> None:
        """These hosts are there."""
        self._sleep_pstates = {host.id: frozenset(host.sleep_pstates) for host in hosts if host.sleep_pstates}
        self._asleep = HostSet.of(host.id for host in hosts if host.state is HostState.SLEEPING)

    def reach(self, hosts: HostSet, pstate: int) -> None:
        """Hosts are put into a power state."""
        self._asleep = self._asleep - hosts | self._sleeping_in(hosts, pstate)

    def divide(self, request: SetHostsState) -> list[Event]:
        """The events by which a decision process says what it wants: hosts on or off, and the others."""
        hosts, pstate, time = request.hosts, request.pstate, request.time
        turned = self._sleeping_in(hosts, pstate) | hosts & self._asleep
        self.reach(hosts, pstate)
        events: list[Event] = []
        if turned:
            events.append(SetHostsState(turned, pstate, time=time, extra=request.extra))
        if changed := hosts - turned:
            events.append(ChangeHostsPState(changed, pstate, time=time, extra=request.extra))
        return events

    def check(self, request: SetHostsState) -> None:
        """Refuse to turn on hosts that are on, as a Batsim 5 does."""
        awake = request.hosts - self._asleep - self._sleeping_in(request.hosts, request.pstate)
        if awake:
            raise RuleBroken(
                f"TurnOnOffHostsEvent at {request.time:f}: hosts {awake} are on already; "
                "ChangeHostsPStateEvent changes their power state"
            )

    def _sleeping_in(self, hosts: HostSet, pstate: int) -> HostSet:
        """Those of the hosts that sleep in a power state."""
        if not self._sleep_pstates:
            return HostSet()
        return HostSet.of(host for host in hosts if pstate in self._sleep_pstates.get(host, ()))
