"""Zones of which a file tells the ways, all of them (Full) or pieces of them (Floyd, Dijkstra)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from batsched_py.simulator.network.links import Link
from batsched_py.simulator.network.zones import NoRoute, Point, Way, Zone

#: Finds the way between two points anywhere, for routes that cross a zone from gateway to gateway.
Between = Callable[[Point, Point], Way]

_FAR = np.iinfo(np.int64).max // 4


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

    _table: tuple[dict[Point, int], list[Point], np.ndarray] | None = None

    def _find(self, source: Point, target: Point) -> Way:
        if self._table is None:
            self._table = self._make_table()
        return self._joined(self._points(source, target))

    def _points(self, source: Point, target: Point) -> list[Point]:
        assert self._table is not None
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
        return [*ends[0], *reversed(middle), *ends[1]]

    def _entry(self, point: Point, other: Point, is_last: bool) -> Point:
        """The point of the table at which a way begins or ends."""
        assert self._table is not None
        if point in self._table[0]:
            return point
        neighbour = self._neighbours.get(point)
        if not neighbour or ((neighbour[0], point) if is_last else (point, neighbour[0])) not in self.told:
            raise NoRoute(*((other, point) if is_last else (point, other)))
        return neighbour[0]

    def _make_table(self) -> tuple[dict[Point, int], list[Point], np.ndarray]:
        neighbours: dict[Point, dict[Point, None]] = {}
        for source, target in self.told:
            if source is not target:
                neighbours.setdefault(source, {})[target] = None
                neighbours.setdefault(target, {})[source] = None
        self._neighbours = {point: list(others) for point, others in neighbours.items()}
        inner = [point for point in self.points if len(neighbours.get(point, ())) > 1]
        if not inner:
            inner = [point for point in self.points if point in neighbours]
        places = {point: place for place, point in enumerate(inner)}
        cost = np.full((len(inner), len(inner)), _FAR, dtype=np.int64)
        before = np.full((len(inner), len(inner)), -1, dtype=np.int64)
        for (source, target), way in self.told.items():
            if source in places and target in places:
                cost[places[source], places[target]] = len(way.links)
                before[places[source], places[target]] = places[source]
        for place in range(len(inner)):
            through = cost[:, place, None] + cost[place]
            better = through < np.minimum(cost, _FAR)
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
