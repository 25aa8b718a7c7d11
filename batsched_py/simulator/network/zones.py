"""Zones of a platform: the points in them, the links, and the ways between these points.

A zone knows the ways between its own points only. A point is a host, a router or a zone inside; a way between
two zones leads from a gateway in the first to a gateway in the second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from math import hypot, isfinite
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np

_DECIMAL = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")
_BANDWIDTHS = {"": 1.0} | {
    f"{prefix}{unit}": scale * factor
    for unit, scale in (("Bps", 1.0), ("bps", 0.125))
    for prefix, factor in (
        ("", 1.0),
        *((prefix, 1000.0**power) for power, prefix in enumerate(_DECIMAL, 1)),
        *((prefix, 1024.0**power) for power, prefix in enumerate(_BINARY, 1)),
    )
}
_TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_TIMES |= {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12}
_QUANTITY = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")


def parse_bandwidth(text: str) -> float:
    """Read a bandwidth in bytes per second, which must be more than 0.

    >>> parse_bandwidth("125MBps"), parse_bandwidth("1Gbps"), parse_bandwidth("1KiBps")
    (125000000.0, 125000000.0, 1024.0)
    """
    bandwidth = quantity(text, _BANDWIDTHS)
    if bandwidth is None or not isfinite(bandwidth):
        raise ValueError(f"{text.strip()!r} is not a bandwidth like '125MBps' or '1Gbps'")
    if bandwidth == 0:
        raise ValueError("a bandwidth must be more than 0")
    return bandwidth


def parse_latency(text: str) -> float:
    """Read a latency in seconds.

    >>> parse_latency("2ms"), parse_latency("0")
    (0.002, 0.0)
    """
    latency = quantity(text, _TIMES)
    if latency is None or not isfinite(latency):
        raise ValueError(f"{text.strip()!r} is not a latency like '50us' or '1ms'")
    return latency


def quantity(text: str, units: dict[str, float]) -> float | None:
    """A number with one of these units, times what the unit stands for; nothing if it is none."""
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]


class Link(Struct, frozen=True, eq=False, gc=False):
    """What messages travel over. Two links are never the same, even if they look the same."""

    name: str
    bandwidth: float
    """In bytes per second."""
    latency: float = 0.0
    """In seconds."""
    fatpipe: bool = False
    """Whether each task gets the whole bandwidth, however many there are."""


class Duplex(Struct, frozen=True, eq=False, gc=False):
    """A cable that is one link in each direction."""

    up: Link
    down: Link


def duplex(name: str, bandwidth: float, latency: float) -> Duplex:
    """A cable with the full bandwidth in each direction."""
    return Duplex(Link(f"{name}_UP", bandwidth, latency), Link(f"{name}_DOWN", bandwidth, latency))


def cable(name: str, bandwidth: float, latency: float, split: bool) -> Duplex:
    """A cable; if it is not split, both directions share one link."""
    if split:
        return duplex(name, bandwidth, latency)
    link = Link(name, bandwidth, latency)
    return Duplex(link, link)


class Route(Struct, frozen=True, gc=False):
    """The way from one host to another."""

    links: tuple[Link, ...]
    """In order; one that is passed twice is named twice."""
    latency: float
    """Of all links together, in seconds."""


class NoRoute(ValueError):
    """There is no way between two points."""

    def __init__(self, source: Point, target: Point) -> None:
        super().__init__(f"there is no route from {source.name!r} to {target.name!r}")


class Point:
    """A place in a zone."""

    def __init__(self, name: str, zone: Zone | None) -> None:
        self.name = name
        self.zone = zone
        self.number = -1 if zone is None else zone.add(self)
        """Among the points of its zone."""


class Host(Point):
    """A machine."""


class Router(Point):
    """A place where ways meet."""


class Way(Struct, frozen=True, gc=False):
    """A piece of a route, between two points of one zone."""

    links: tuple[Link, ...] = ()
    gateways: tuple[Point, Point] | None = None
    """Where it leaves the first zone and enters the second, if it leads from zone to zone."""
    extra_latency: float = 0.0
    """On top of that of the links."""


class Zone(Point):
    """A part of the platform, with its rule of routing. This one knows no way at all (``routing="None"``)."""

    def __init__(self, name: str, zone: Zone | None) -> None:
        self.points: list[Point] = []
        self.has_zones = False
        super().__init__(name, zone)
        if zone is not None:
            zone.has_zones = True

    def add(self, point: Point) -> int:
        """Take in a point; the number it gets."""
        self.points.append(point)
        return len(self.points) - 1

    def holds(self, point: Point) -> bool:
        """Whether a point is in this zone, or in one that is inside."""
        zone = point.zone
        while zone is not None and zone is not self:
            zone = zone.zone
        return zone is self

    def way(self, source: Point, target: Point) -> Way:
        """The way between two points of this zone."""
        raise NoRoute(source, target)

    def switch_of(self, point: Point) -> str:
        """The name of what connects a host with those next to it: the zone, if nothing else is known."""
        return self.name


class Star(Zone):
    """All points are connected through one place in the middle: zones of kind Cluster and Vivaldi."""

    def __init__(self, name: str, zone: Zone | None) -> None:
        super().__init__(name, zone)
        self._up: dict[Point, tuple[Link, ...]] = {}
        self._down: dict[Point, tuple[Link, ...]] = {}
        self.coordinates: dict[Point, tuple[float, float, float]] = {}
        """Where points are: in a plane, and above it, in milliseconds."""

    def connect(self, point: Point, up: Iterable[Link], down: Iterable[Link]) -> None:
        """Set the links from a point to the middle, and back."""
        self._up[point], self._down[point] = tuple(up), tuple(down)

    def up(self, point: Point) -> tuple[Link, ...]:
        """The links from a point to the middle."""
        return self._up.get(point, ())

    def down(self, point: Point) -> tuple[Link, ...]:
        """The links from the middle to a point."""
        return self._down.get(point, ())

    def way(self, source: Point, target: Point) -> Way:
        links = tuple(dict.fromkeys(self.up(source) + self.down(target)))
        return Way(links, None, self._distance(source, target))

    def _distance(self, source: Point, target: Point) -> float:
        if not self.coordinates:
            return 0.0
        for point in (source, target):
            if point not in self.coordinates:
                raise ValueError(f"{point.name!r} has no coordinates")
        x, y, height = self.coordinates[source]
        there_x, there_y, there_height = self.coordinates[target]
        return (hypot(x - there_x, y - there_y) + abs(height) + abs(there_height)) / 1000.0


#: Finds the way between two points anywhere, for routes that cross a zone from gateway to gateway.
Between = Callable[[Point, Point], Way]


class Routed(Zone):
    """A zone whose ways are made of those that are told."""

    def __init__(self, name: str, zone: Zone | None, loopback: Link, between: Between) -> None:
        super().__init__(name, zone)
        self._loopback = loopback
        self._between = between
        self.told: dict[tuple[Point, Point], Way] = {}

    def tell(self, source: Point, target: Point, way: Way) -> None:
        """Make a way known."""
        if (source, target) in self.told:
            raise ValueError(
                f"the route from {source.name!r} to {target.name!r} is given twice "
                '(a route is the way back, too, unless it says symmetrical="NO")'
            )
        self.told[source, target] = way

    def way(self, source: Point, target: Point) -> Way:
        if source is not target:
            return self._find(source, target)
        if (told := self.told.get((source, target))) is not None:
            return told
        if self.has_zones:
            raise NoRoute(source, target)
        return Way((self._loopback,))

    def _find(self, source: Point, target: Point) -> Way:
        raise NotImplementedError

    def _joined(self, points: list[Point]) -> Way:
        """The way over all these points; where they are zones, it crosses them from gateway to gateway."""
        first, *rest = [self.told[pair] for pair in pairwise(points)]
        links, gateways, extra = first.links, first.gateways, 0.0
        for way in rest:
            if gateways is not None and way.gateways is not None:
                if gateways[1] is not way.gateways[0]:
                    crossing = self._between(gateways[1], way.gateways[0])
                    links += crossing.links
                    extra += crossing.extra_latency
                gateways = gateways[0], way.gateways[1]
            links += way.links
        return Way(links, gateways, extra)


class Full(Routed):
    """No ways but those that are told."""

    def _find(self, source: Point, target: Point) -> Way:
        told = self.told.get((source, target))
        if told is None:
            raise NoRoute(source, target)
        return told


class Floyd(Routed):
    """The ways with the fewest links, as the algorithm of Floyd and Warshall finds them.

    Points with one neighbour are never in the middle of a way, so the table is made of the others only. Among
    equally short ways, the order of the points decides, as in SimGrid.
    """

    def _find(self, source: Point, target: Point) -> Way:
        places, inner, before = self._table
        first, last = self._entry(source, target, False), self._entry(target, source, True)
        if first not in places or last not in places:
            raise NoRoute(source, target)
        middle = [last]
        while middle[-1] is not first:
            step = before[places[first], places[middle[-1]]]
            if step < 0:
                raise NoRoute(source, target)
            middle.append(inner[step])
        ends = ([source] if first is not source else []), ([target] if last is not target else [])
        return self._joined([*ends[0], *reversed(middle), *ends[1]])

    def _entry(self, point: Point, other: Point, is_last: bool) -> Point:
        """The point of the table at which a way begins or ends."""
        if point in self._table[0]:
            return point
        neighbour = self._neighbours.get(point)
        if not neighbour or ((neighbour[0], point) if is_last else (point, neighbour[0])) not in self.told:
            raise NoRoute(*((other, point) if is_last else (point, other)))
        return neighbour[0]

    @cached_property
    def _table(self) -> tuple[dict[Point, int], list[Point], np.ndarray]:
        """The place of each point, the points, and the place before the last on the way between two."""
        import numpy as np

        far = np.iinfo(np.int64).max // 4
        neighbours: dict[Point, dict[Point, None]] = {}
        for source, target in self.told:
            if source is not target:
                neighbours.setdefault(source, {})[target] = None
                neighbours.setdefault(target, {})[source] = None
        self._neighbours = {point: list(others) for point, others in neighbours.items()}
        connected = [point for point in self.points if point in neighbours]
        inner = [point for point in connected if len(neighbours[point]) > 1] or connected
        places = {point: place for place, point in enumerate(inner)}
        cost = np.full((len(inner), len(inner)), far, dtype=np.int64)
        before = np.full((len(inner), len(inner)), -1, dtype=np.int64)
        for (source, target), way in self.told.items():
            if source in places and target in places:
                cost[places[source], places[target]] = len(way.links)
                before[places[source], places[target]] = places[source]
        for place in range(len(inner)):
            through = cost[:, place, None] + cost[place]
            better = through < np.minimum(cost, far)
            cost[better] = through[better]
            before[better] = np.broadcast_to(before[place], before.shape)[better]
        return places, inner, before


class Dijkstra(Routed):
    """The ways with the fewest links, found from one point to all others at a time.

    Among equally short ways, the order in which points were first told decides, as in SimGrid.
    """

    def __init__(self, name: str, zone: Zone | None, loopback: Link, between: Between) -> None:
        super().__init__(name, zone, loopback, between)
        self._order: dict[Point, int] = {}
        self._out: dict[Point, list[tuple[Point, int]]] = {}
        self._before: dict[Point, dict[Point, Point]] = {}

    def tell(self, source: Point, target: Point, way: Way) -> None:
        super().tell(source, target, way)
        for point in (source, target):
            self._order.setdefault(point, len(self._order))
        self._out.setdefault(source, []).append((target, len(way.links)))

    def _find(self, source: Point, target: Point) -> Way:
        if source not in self._before:
            self._before[source] = self._search(source)
        before = self._before[source]
        points = [target]
        while points[-1] is not source:
            if points[-1] not in before:
                raise NoRoute(source, target)
            points.append(before[points[-1]])
        return self._joined(points[::-1])

    def _search(self, source: Point) -> dict[Point, Point]:
        """The point before each other on its way from ``source``."""
        before: dict[Point, Point] = {}
        costs = {source: 0}
        by_order = list(self._order)
        heap = [(0, self._order[source])] if source in self._order else []
        while heap:
            cost, number = heappop(heap)
            point = by_order[number]
            if cost > costs[point]:
                continue
            for neighbour, length in self._out.get(point, ()):
                if neighbour not in costs or cost + length < costs[neighbour]:
                    costs[neighbour] = cost + length
                    before[neighbour] = point
                    heappush(heap, (cost + length, self._order[neighbour]))
        return before
