"""The network of a platform: how hosts reach each other."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TypeGuard

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.simulator.network import zones
from batsched_py.simulator.network.clusters import Cluster, FatTree, Topology, Wiring
from batsched_py.simulator.network.zones import Link, NoRoute, Point, Route, Router, Way, Zone

#: TCP sends this many bytes before it waits for an answer (``network/TCP-gamma`` of SimGrid).
TCP_GAMMA = 4194304.0

#: So many routes, and so many allocations, are kept.
MOST_ROUTES = 200_000
MOST_ALLOCATIONS = 1_000


class Everyone(Struct):
    """How hosts use links and latency when each sends one byte to each other."""

    bytes: dict[Link, float] = {}
    """What each link carries."""
    latency: float = 0.0
    """Of the longest way."""


class Network:
    """Zones, links and routes. Routes are found when they are needed, and kept.

    Hosts have the numbers that the platform gives them.
    """

    def __init__(
        self, points: Sequence[Point], master: Point | None, tcp_gamma: float = TCP_GAMMA, path: str = ""
    ) -> None:
        self.tcp_gamma = tcp_gamma
        self._points = points
        self._master = master
        self._path = path
        self._routes: dict[tuple[int, int], Route] = {}
        self._all_to_all: dict[tuple[int, ...], Everyone] = {}
        self._to_master: dict[int | None, Route] = {}

    def route(self, source: int, target: int) -> Route:
        """The way from one host to another."""
        route = self._routes.get((source, target))
        if route is None:
            try:
                way = between(self._points[source], self._points[target])
            except ValueError as error:
                raise InputError(f"{self._path}: {error}" if self._path else str(error)) from None
            route = _as_route(way)
            if len(self._routes) >= MOST_ROUTES:
                self._routes.clear()
            self._routes[source, target] = route
        return route

    def route_to_master(self, host: int | None) -> Route:
        """The way to the master from a host or from itself; without any, messages arrive at once."""
        route = self._to_master.get(host)
        if route is None:
            route = Route((), 0.0)
            if self._master is not None:
                source = self._master if host is None else self._points[host]
                with suppress(ValueError):
                    route = _as_route(between(source, self._master))
            self._to_master[host] = route
        return route

    @cached_property
    def delays_messages(self) -> bool:
        """Whether the way to the master has latency, from any host."""
        seen: set[Zone] = set()
        for host, point in enumerate(self._points):
            if is_flat(point.zone):
                if point.zone in seen:
                    continue
                seen.add(point.zone)
            if self.route_to_master(host).latency > 0:
                return True
        return False

    def switches(self, count: int) -> list[str]:
        """The switch of each of the first hosts."""
        return [
            point.name if point.zone is None else point.zone.switch_of(point)
            for point in self._points[:count]
        ]

    def all_to_all(self, hosts: Sequence[int]) -> Everyone:
        """What it takes if each of these hosts, which are different, sends one byte to each other."""
        key = tuple(hosts)
        if key not in self._all_to_all:
            if len(self._all_to_all) >= MOST_ALLOCATIONS:
                self._all_to_all.clear()
            self._all_to_all[key] = self._count(key)
        return self._all_to_all[key]

    def _count(self, hosts: tuple[int, ...]) -> Everyone:
        everyone = Everyone()
        zone = self._points[hosts[0]].zone
        if is_flat(zone) and len(hosts) > 1 and all(self._points[host].zone is zone for host in hosts):
            self._count_in_cluster(hosts, zone, everyone)
            return everyone
        carried = everyone.bytes
        for source in hosts:
            for target in hosts:
                if source != target:
                    route = self.route(source, target)
                    everyone.latency = max(everyone.latency, route.latency)
                    for link in route.links:
                        carried[link] = 1.0 if link.fatpipe else carried.get(link, 0.0) + 1.0
        return everyone

    def _count_in_cluster(self, hosts: tuple[int, ...], zone: Cluster, everyone: Everyone) -> None:
        """In a cluster all ways are alike: as much goes up and down the links of each host."""
        others, carried = len(hosts) - 1.0, everyone.bytes
        everyone.latency = self.route(hosts[0], hosts[1]).latency
        backbone = zone.wiring.backbone
        for host in hosts:
            for link in (*zone.up(self._points[host]), *zone.down(self._points[host])):
                carried[link] = carried.get(link, 0.0) + others
        if backbone is not None:
            carried[backbone] = 1.0 if backbone.fatpipe else others * len(hosts)


def _as_route(way: Way) -> Route:
    return Route(way.links, sum([link.latency for link in way.links]) + way.extra_latency)


def is_flat(zone: Zone | None) -> TypeGuard[Cluster]:
    """Whether all hosts of a zone are connected in the same way."""
    return isinstance(zone, Cluster) and not isinstance(zone, Topology)


def between(source: Point, target: Point) -> Way:
    """The way between two points, through all zones that are on it.

    >>> from batsched_py.simulator.network.zones import Star
    >>> between(Point("a", room := Star("room", None)), Point("b", room)).links
    ()
    """
    home, away = _zones_around(source), _zones_around(target)
    while len(home) > 1 and len(away) > 1 and home[-2] is away[-2]:
        home.pop()
        away.pop()
    common = home[-1]
    if common is not away[-1]:
        raise NoRoute(source, target)
    if len(home) == len(away) == 1:
        return common.way(source, target)
    if len(home) == 1 or len(away) == 1:
        lonely = source if len(home) == 1 else target
        raise ValueError(
            f"{lonely.name!r} stands in zone {common.name!r} beside other zones, so there are no routes "
            "between them; put it into a zone of its own"
        )
    middle = common.way(home[-2], away[-2])
    if middle.gateways is None:
        raise NoRoute(source, target)
    links, extra = middle.links, middle.extra_latency
    way_out, way_in = middle.gateways
    if way_out is not source:
        first = between(source, way_out)
        links, extra = first.links + links, extra + first.extra_latency
    if way_in is not target:
        last = between(way_in, target)
        links, extra = links + last.links, extra + last.extra_latency
    return Way(links, None, extra)


def _zones_around(point: Point) -> list[Zone]:
    """The zones in which a point is, the innermost first."""
    return [] if point.zone is None else [point.zone, *_zones_around(point.zone)]


class SimpleNetwork(Struct, frozen=True):
    """What is said of a network: bandwidths and latencies with units, the shape of a fat tree."""

    bandwidth: str
    latency: str = "0"
    backbone: str | None = None
    fat_tree: str | None = None

    def build(self, hosts: int) -> Network:
        """The network of so many hosts, called host0, host1 and so on. The master stands at the router."""
        bandwidth = self._read("bandwidth", zones.parse_bandwidth, self.bandwidth)
        latency = self._read("latency", zones.parse_latency, self.latency)
        backbone = None
        if self.backbone is not None:
            if self.fat_tree is not None:
                raise InputError("--backbone is for hosts behind one switch; a --fat-tree has none")
            backbone = Link("backbone", self._read("backbone", zones.parse_bandwidth, self.backbone), latency)
        kind = Cluster if self.fat_tree is None else FatTree
        names = [f"host{number}" for number in range(hosts)]
        cluster = kind("network", None, names, range(hosts), Wiring(bandwidth, latency, backbone=backbone))
        if isinstance(cluster, FatTree):
            try:
                cluster.shape(self.fat_tree or "")
            except ValueError as error:
                raise InputError(f"--fat-tree {self.fat_tree}: {error}") from None
        return Network(cluster.hosts, Router("master", cluster))

    @staticmethod
    def _read(name: str, parse: Callable[[str], float], text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from None
