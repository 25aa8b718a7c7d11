"""Zones of a platform: the points in them, and the ways between these points.

A zone knows the ways between its own points only. A point is a host, a router or a zone inside; a way between
two zones leads from a gateway in the first to a gateway in the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot

from msgspec import Struct

from batsched_py.simulator.network.links import Link


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
        self._coordinates: dict[Point, tuple[float, float, float]] = {}

    def connect(self, point: Point, up: Iterable[Link], down: Iterable[Link]) -> None:
        """Set the links from a point to the middle, and back."""
        self._up[point], self._down[point] = tuple(up), tuple(down)

    def put_at(self, point: Point, coordinates: tuple[float, float, float]) -> None:
        """Set where a point is: in a plane, and above it, in milliseconds."""
        self._coordinates[point] = coordinates

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
        if not self._coordinates:
            return 0.0
        try:
            (x, y, height), (there_x, there_y, there_height) = (
                self._coordinates[point] for point in (source, target)
            )
        except KeyError as error:
            raise ValueError(f"{error.args[0].name!r} has no coordinates") from None
        return (hypot(x - there_x, y - there_y) + abs(height) + abs(there_height)) / 1000.0
