"""Idle hosts: since when they are, and how they fall asleep and wake up."""

from collections.abc import Iterable, Sequence

from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host
from batsched_py.schedulers.cluster import Cluster


class SleepStates:
    """In which power states hosts sleep and compute; one that cannot sleep never does."""

    def __init__(self, machines: Sequence[Host], pstate: int | None = None) -> None:
        """They sleep in this power state, or in the first that each has for it."""
        self.sleeps_in = {
            host.id: state for host in machines if (state := _sleep_pstate(host, pstate)) is not None
        }
        self.wakes_in = {host.id: host.computing_pstate for host in machines}
        self.hosts = HostSet.of(self.sleeps_in)
        """Those that can sleep."""

    def put_to_sleep(self, cluster: Cluster, hosts: Iterable[int]) -> None:
        """Let hosts fall asleep."""
        _switch(cluster, hosts, self.sleeps_in)

    def wake(self, cluster: Cluster, hosts: Iterable[int]) -> None:
        """Wake hosts."""
        _switch(cluster, hosts, self.wakes_in)


class IdleTimes:
    """Since when hosts are idle."""

    def __init__(self) -> None:
        self.since: list[tuple[float, HostSet]] = []

    def note(self, idle: HostSet, now: float) -> None:
        """These hosts are idle now; those of them that were before have been ever since."""
        before = [(since, hosts & idle) for since, hosts in self.since]
        for _, hosts in before:
            idle = idle - hosts
        self.since = [(since, hosts) for since, hosts in (*before, (now, idle)) if hosts]


def nodes_of(machines: Sequence[Host]) -> list[HostSet]:
    """The hosts of each node, which sleep together; a host of no node is alone."""
    nodes: dict[str, list[int]] = {}
    for host in machines:
        nodes.setdefault(host.properties.get("node") or f" {host.id}", []).append(host.id)
    return [HostSet.of(hosts) for hosts in nodes.values()]


def _sleep_pstate(host: Host, pstate: int | None) -> int | None:
    states = host.sleep_pstates
    if pstate is None:
        return next(iter(states), None)
    return pstate if pstate in states else None


def _switch(cluster: Cluster, hosts: Iterable[int], states: dict[int, int]) -> None:
    """Switch hosts, those with the same power state together."""
    groups: dict[int, list[int]] = {}
    for host in hosts:
        groups.setdefault(states[host], []).append(host)
    for pstate, group in sorted(groups.items()):
        cluster.switch(HostSet.of(group), pstate)
