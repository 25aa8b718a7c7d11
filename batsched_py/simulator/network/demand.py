"""From a profile to what a task asks of hosts and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from msgspec import Struct, field

from batsched_py.errors import RuleBroken
from batsched_py.protocol.profiles import Composed, Computation, Homogeneous, HomogeneousTotal, Parallel
from batsched_py.simulator.execution import Execution, Profiles
from batsched_py.simulator.network.links import Link, Route
from batsched_py.simulator.network.routing import Network


class Demand(Struct):
    """What a task asks for: flops of hosts, and bytes of links."""

    flops: list[tuple[int, float]] = field(default_factory=list)
    """Of each executor: its host, and what it computes."""
    bytes: dict[Link, float] = field(default_factory=dict)
    """What each link has to carry. Of a fat pipe, that is the most that one pair of hosts exchanges."""
    latency: float = 0.0
    """Of the longest route, in seconds."""
    latency_bytes: float = 0.0
    """The largest product of a route's latency and the bytes that take it."""
    stored: dict[int, float] | None = None
    """Bytes that each storage host sends and receives, where that is recorded."""

    def send(self, network: Network, source: int, target: int, amount: float) -> None:
        """Let one executor send bytes to another, by the numbers of their hosts."""
        if amount > 0:
            self.send_along(network.route(source, target), amount)
            if self.stored is not None:
                self._store((source, target), amount)

    def send_along(self, route: Route, amount: float) -> None:
        """Let bytes take a route."""
        carried = self.bytes
        for link in route.links:
            before = carried.get(link, 0.0)
            carried[link] = max(before, amount) if link.fatpipe else before + amount
        self._wait(route.latency, amount)

    def send_to_all(self, network: Network, hosts: Sequence[int], amount: float) -> None:
        """Let each executor send bytes to each other."""
        if amount <= 0 or len(hosts) < 2:
            return
        if len(set(hosts)) < len(hosts):
            for place, source in enumerate(hosts):
                for other, target in enumerate(hosts):
                    if place != other:
                        self.send(network, source, target, amount)
            return
        everyone, carried = network.all_to_all(hosts), self.bytes
        for link, count in everyone.bytes.items():
            before = carried.get(link, 0.0)
            carried[link] = max(before, amount) if link.fatpipe else before + count * amount
        self._wait(everyone.latency, amount)
        if self.stored is not None:
            self._store(hosts, 2 * (len(hosts) - 1) * amount)

    def _store(self, hosts: Iterable[int], amount: float) -> None:
        """Count what those of the hosts that are storages send or receive."""
        assert self.stored is not None
        for host in hosts:
            if host in self.stored:
                self.stored[host] += amount

    def _wait(self, latency: float, amount: float) -> None:
        self.latency = max(self.latency, latency)
        self.latency_bytes = max(self.latency_bytes, latency * amount)

    def network_bound(self, tcp_gamma: float) -> float:
        """The highest rate that TCP allows: it waits for an answer now and then."""
        return tcp_gamma / (2.0 * self.latency_bytes) if self.latency_bytes > 0 else inf


def add_computation(demand: Demand, task: Computation, hosts: Sequence[int], network: Network | None) -> None:
    """Add what a task asks for that computes, with one executor on each of these hosts.

    What a single executor sends to itself takes no time, as in SimGrid.
    """
    demand.flops += zip(hosts, task.flops(len(hosts)), strict=False)
    if network is None or not task.sends_bytes or len(hosts) < 2:
        return
    match task:
        case HomogeneousTotal(bytes_sent=amount):
            demand.send_to_all(network, hosts, amount / len(hosts))
        case Homogeneous(bytes_sent=amount):
            demand.send_to_all(network, hosts, amount)
        case Parallel(bytes_sent=amounts):
            pairs = iter(amounts)
            for source in hosts:
                for target in hosts:
                    demand.send(network, source, target, next(pairs))


def add_io(demand: Demand, execution: Execution, profiles: Profiles, network: Network | None) -> None:
    """Add what is moved beside the present task of a job: of a sequence, the part at the same place."""
    assert execution.io is not None
    hosts, profile = execution.io
    whose = f"the IO job of job {execution.job.id}"
    for frame in execution.frames:
        if not isinstance(frame.profile, Composed):
            return
        step = frame.step % len(frame.profile.sequence)
        parts = profile.sequence if isinstance(profile, Composed) else ()
        if step >= len(parts) or parts[step] not in profiles:
            raise RuleBroken(f"{whose} has no part for each task of {frame.name!r}")
        profile = profiles[parts[step]]
    if not isinstance(profile, Computation):
        raise RuleBroken(f"{whose} is of type {profile.kind}; it must be a parallel one")
    places = list(hosts)
    if isinstance(profile, Parallel) and len(profile.work) != len(places):
        raise RuleBroken(f"{whose} has {len(places)} hosts, its profile is made for {len(profile.work)}")
    add_computation(demand, profile, places, network)
