"""Clusters: zones of equal hosts, of which a platform file gives no more than a few numbers.

The links of a host are made when a route needs them.
"""

from collections.abc import Iterable, Sequence
from math import prod

from msgspec import Struct

from batsched_py.simulator.network.zones import Duplex, Host, Link, Point, Router, Way, Zone, cable


class Wiring(Struct, frozen=True):
    """The links of a cluster."""

    bandwidth: float
    latency: float
    split: bool = True
    """Whether each direction has the whole bandwidth."""
    loopback: tuple[float, float] | None = None
    """Bandwidth and latency of a host's link to itself."""
    limiter: float | None = None
    """The bandwidth of all that a host sends and receives together."""
    backbone: Link | None = None
    """What all messages pass, in a cluster without topology."""


class Cluster(Zone):
    """Hosts that are connected through one place in the middle; a router stands there."""

    def __init__(
        self, name: str, zone: Zone | None, hosts: Sequence[str], numbers: Sequence[int], wiring: Wiring
    ) -> None:
        super().__init__(name, zone)
        self.hosts = [Host(host, self) for host in hosts]
        self.wiring = wiring
        self._numbers = numbers
        """Of the hosts, in the names of links."""
        self._made: dict[str, Link] = {}
        self._cables: dict[str, Duplex] = {}

    def way(self, source: Point, target: Point) -> Way:
        if source is target and self.wiring.loopback is not None and isinstance(source, Host):
            name = f"{self._numbers[source.number]}_loopback"
            return Way((self._link(name, *self.wiring.loopback, fatpipe=True),))
        return Way(tuple(self._passed(source, target)))

    def _passed(self, source: Point, target: Point) -> Iterable[Link]:
        """The links from one point to another."""
        return dict.fromkeys((*self.up(source), *self.down(target)))

    def up(self, point: Point) -> tuple[Link, ...]:
        """The links from a point to the middle."""
        return () if isinstance(point, Router) else self._ways(point)[0]

    def down(self, point: Point) -> tuple[Link, ...]:
        """The links from the middle to a point."""
        return () if isinstance(point, Router) else self._ways(point)[1]

    def _ways(self, point: Point) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        links = self._cable(f"{self.name}_link_{self._numbers[point.number]}")
        limiter = self._limiter(self._numbers[point.number])
        backbone = () if self.wiring.backbone is None else (self.wiring.backbone,)
        return (*limiter, links.up, *backbone), (*backbone, links.down, *limiter)

    def _cable(self, name: str, times: int = 1) -> Duplex:
        if name not in self._cables:
            wiring = self.wiring
            self._cables[name] = cable(name, wiring.bandwidth * times, wiring.latency, wiring.split)
        return self._cables[name]

    def _link(self, name: str, bandwidth: float, latency: float = 0.0, fatpipe: bool = False) -> Link:
        if name not in self._made:
            self._made[name] = Link(f"{self.name}_link_{name}", bandwidth, latency, fatpipe)
        return self._made[name]

    def _limiter(self, number: int | str) -> tuple[Link, ...]:
        limiter = self.wiring.limiter
        return () if limiter is None else (self._link(f"{number}_limiter", limiter),)


class Topology(Cluster):
    """A cluster with switches between its hosts. What comes from outside begins or ends at no cost."""

    def _passed(self, source: Point, target: Point) -> Iterable[Link]:
        if isinstance(source, Router) or isinstance(target, Router):
            return ()
        return self.links_between(source.number, target.number)

    def shape(self, parameters: str) -> None:
        """Read how the switches are arranged; raises ``ValueError``."""
        raise NotImplementedError

    def links_between(self, source: int, target: int) -> list[Link]:
        """The links from one host to another, both by their places in the cluster."""
        raise NotImplementedError


class Torus(Topology):
    """A torus of any number of dimensions; a message goes through one dimension after another."""

    dimensions: tuple[int, ...]

    def shape(self, parameters: str) -> None:
        """Read the sizes of the dimensions, like ``4,4,2``."""
        self.dimensions = tuple(counts(parameters, None))
        check_size(prod(self.dimensions), len(self.hosts))

    def links_between(self, source: int, target: int) -> list[Link]:
        links: list[Link] = []
        here, stride = source, 1
        for dimension, size in enumerate(self.dimensions):
            start, goal = source // stride % size, target // stride % size
            half = size // 2
            forward = start < goal <= start + half or (start > half and (start + half) % size >= goal)
            while (place := here // stride % size) != goal:
                there = here + stride * ((place + (1 if forward else -1)) % size - place)
                links += self._limiter(here)
                first = here if forward else there
                between = self._cable(f"{self.name}_link_from_{first}_in_dimension_{dimension}")
                links.append(between.up if forward else between.down)
                here = there
            stride *= size
        links += self._limiter(target)
        return links

    def switch_of(self, point: Point) -> str:
        return point.name


class FatTree(Topology):
    """A tree of switches with several parents each; routes by the destination (*d-mod-k*).

    For each level from below: how many children and parents a node has, and how many cables lead to each.
    A node has a label with one digit for each level; those below its own level choose among parents, the
    others among children.
    """

    children: tuple[int, ...]
    parents: tuple[int, ...]
    cables: tuple[int, ...]
    first_position = 0
    """The position of the first host; SimGrid counts over all fat trees of a platform."""

    def shape(self, parameters: str) -> None:
        """Read levels, children, parents and cables by level, like ``2;4,4;1,2;1,2``."""
        parts = parameters.split(";")
        if len(parts) != 4:
            raise ValueError("a fat tree needs LEVELS;CHILDREN,...;PARENTS,...;CABLES,...")
        (levels,) = counts(parts[0], 1)
        self.children, self.parents, self.cables = (tuple(counts(part, levels)) for part in parts[1:])
        check_size(prod(self.children), len(self.hosts))

    def links_between(self, source: int, target: int) -> list[Link]:
        links: list[Link] = []
        goal = self._label(target)
        level, label = 0, self._label(source)
        while level == 0 or label[level:] != goal[level:]:
            port = (self.first_position + target) // prod(self.parents[:level])
            port %= self.parents[level] * self.cables[level]
            links += self._limiter_of(level, label)
            above = (*label[:level], port % self.parents[level], *label[level + 1 :])
            links.append(self._between(level, label, above, port // self.parents[level]).up)
            level, label = level + 1, above
        while level > 0:
            # The port goes on from level to level, as it does in SimGrid.
            port = (self.first_position + source) % self.cables[level - 1] * self.children[level - 1]
            while level > 0 and port < self.children[level - 1] * self.cables[level - 1]:
                which, child = divmod(port, self.children[level - 1])
                if child == goal[level - 1]:
                    below = (*label[: level - 1], child, *label[level:])
                    links.append(self._between(level - 1, below, label, which).down)
                    links += self._limiter_of(level, label)
                    level, label = level - 1, below
                port += 1
        links += self._limiter_of(0, label)
        return links

    def switch_of(self, point: Point) -> str:
        return f"{self.name}_{self._name(1, (0, *self._label(point.number)[1:]))}"

    def _label(self, place: int) -> tuple[int, ...]:
        label = []
        for size in self.children:
            place, digit = divmod(place, size)
            label.append(digit)
        return tuple(label)

    def _between(self, level: int, below: tuple[int, ...], above: tuple[int, ...], port: int) -> Duplex:
        name = f"{self.name}_{self._name(level, below)}_to_{self._name(level + 1, above)}"
        return self._cable(f"{name}_{port}" if self.cables[level] > 1 else name)

    def _name(self, level: int, label: tuple[int, ...]) -> str:
        if level == 0:
            place = sum(digit * prod(self.children[:level]) for level, digit in enumerate(label))
            return self.hosts[place].name
        return f"switch_{level}_{'.'.join(map(str, label))}"

    def _limiter_of(self, level: int, label: tuple[int, ...]) -> tuple[Link, ...]:
        return self._limiter(self._name(level, label)) if self.wiring.limiter is not None else ()


class Dragonfly(Topology):
    """Groups of chassis of blades with a router each, and some hosts at each router; minimal routing.

    All routers of a chassis are connected (green links), those of one place in all chassis of a group (black
    links), and the groups by one pair of routers each (blue links).
    """

    groups: int
    chassis: int
    blades: int
    nodes: int

    def shape(self, parameters: str) -> None:
        """Read ``GROUPS,LINKS;CHASSIS,LINKS;BLADES,LINKS;NODES``, where links are the cables of a kind."""
        parts = parameters.split(";")
        if len(parts) != 4:
            raise ValueError("a dragonfly needs GROUPS,LINKS;CHASSIS,LINKS;BLADES,LINKS;NODES")
        self.groups, self._blue = counts(parts[0], 2)
        self.chassis, self._black = counts(parts[1], 2)
        self.blades, self._green = counts(parts[2], 2)
        (self.nodes,) = counts(parts[3], 1)
        if self.groups > self.blades:
            raise ValueError(f"a dragonfly of {self.groups} groups needs as many blades, not {self.blades}")
        check_size(self.groups * self.chassis * self.blades * self.nodes, len(self.hosts))

    def links_between(self, source: int, target: int) -> list[Link]:
        group, chassis, blade = self._coordinates(source)
        goal = goal_group, goal_chassis, goal_blade = self._coordinates(target)
        links = [*self._limiter(source), self._local(source).up]
        if (group, chassis, blade) != goal:
            if goal_group != group:
                if blade != goal_group:
                    links += self._router_limiter(group, chassis, blade)
                    links.append(self._green_link(group, chassis, blade, goal_group))
                    blade = goal_group
                if chassis != 0:
                    links += self._router_limiter(group, chassis, blade)
                    links.append(self._black_link(group, blade, chassis, 0))
                    chassis = 0
                links.append(self._between("blue_link", group, goal_group, self._blue))
                links += self._router_limiter(group, chassis, blade)
                group, blade = goal_group, group
            if goal_blade != blade:
                links += self._router_limiter(group, chassis, blade)
                links.append(self._green_link(group, chassis, blade, goal_blade))
                # SimGrid goes on in the first chassis of the group from here, whichever the message was in.
                chassis, blade = 0, goal_blade
            if goal_chassis != chassis:
                links += self._router_limiter(group, chassis, blade)
                links.append(self._black_link(group, blade, chassis, goal_chassis))
        links += self._router_limiter(*goal)
        links.append(self._local(target).down)
        links += self._limiter(target)
        return links

    def switch_of(self, point: Point) -> str:
        group, chassis, blade = self._coordinates(point.number)
        return f"{self.name}_router_{group}_{chassis}_{blade}"

    def _coordinates(self, place: int) -> tuple[int, int, int]:
        router = place // self.nodes
        chassis = router // self.blades
        return chassis // self.chassis, chassis % self.chassis, router % self.blades

    def _local(self, place: int) -> Duplex:
        return self._cable(f"{self.name}_local_link_of_{self.hosts[place].name}")

    def _green_link(self, group: int, chassis: int, here: int, there: int) -> Link:
        return self._between(f"green_link_{group}_{chassis}", here, there, self._green)

    def _black_link(self, group: int, blade: int, here: int, there: int) -> Link:
        return self._between(f"black_link_{group}", here, there, self._black, f"_blade_{blade}")

    def _between(self, kind: str, here: int, there: int, times: int, end: str = "") -> Link:
        name = f"{self.name}_{kind}_between_{min(here, there)}_and_{max(here, there)}{end}"
        both = self._cable(name, times)
        return both.up if here < there else both.down

    def _router_limiter(self, group: int, chassis: int, blade: int) -> tuple[Link, ...]:
        return self._limiter(f"router_{group}_{chassis}_{blade}") if self.wiring.limiter is not None else ()


def counts(text: str, length: int | None) -> list[int]:
    """Read numbers above 0 with commas between them, of which there must be so many."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 1 << 31 for part in parts):
        raise ValueError(f"{text!r} is not a list of numbers above 0, like '4,4'")
    if length is not None and len(parts) != length:
        raise ValueError(f"{text!r} has {len(parts)} numbers where it needs {length}")
    return [int(part) for part in parts]


def check_size(wanted: int, given: int) -> None:
    """The hosts must be as many as the topology has places."""
    if wanted != given:
        raise ValueError(f"the topology has {wanted} places, but there are {given} hosts")
