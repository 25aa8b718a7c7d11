"""The zones, links and routes that a SimGrid platform file declares.

What is wrong is said with the line of the file.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from typing import TypeVar
from xml.etree.ElementTree import Element

from batsched_py.simulator.network import zones
from batsched_py.simulator.network.clusters import Cluster, Dragonfly, FatTree, Topology, Torus, Wiring
from batsched_py.simulator.network.configuration import Configuration
from batsched_py.simulator.network.routing import Network, between
from batsched_py.simulator.network.zones import Duplex, Host, Link, Point, Routed, Router, Star, Way, Zone
from batsched_py.simulator.simgrid_xml import line_of, parse_radical, required

#: How tasks may share a link.
POLICIES = ("SHARED", "SPLITDUPLEX", "FULLDUPLEX", "FATPIPE")


def wiring_of(element: Element) -> Wiring:
    """The links of a cluster."""
    name = required(element, "id")
    policy = element.get("sharing_policy", "SPLITDUPLEX")
    backbone_policy = element.get("bb_sharing_policy", "SHARED")
    if policy not in POLICIES:
        raise ValueError(f"cluster {name!r} has the unknown sharing_policy {policy!r}")
    if backbone_policy not in ("SHARED", "FATPIPE"):
        raise ValueError(f"cluster {name!r} has the unknown bb_sharing_policy {backbone_policy!r}")
    backbone = None
    if element.get("bb_bw"):
        backbone = Link(
            f"{name}_backbone",
            bandwidth_of(element, "bb_bw"),
            latency_of(element, "bb_lat"),
            backbone_policy == "FATPIPE",
        )
    loopback = None
    if element.get("loopback_bw"):
        loopback = bandwidth_of(element, "loopback_bw"), latency_of(element, "loopback_lat")
    return Wiring(
        bandwidth_of(element, "bw"),
        latency_of(element, "lat"),
        policy in ("SPLITDUPLEX", "FULLDUPLEX"),
        loopback,
        bandwidth_of(element, "limiter_link") if element.get("limiter_link") else None,
        backbone,
    )


def bandwidth_of(element: Element, attribute: str) -> float:
    """A bandwidth in bytes per second."""
    return _number(element, attribute, zones.parse_bandwidth, required(element, attribute))


def latency_of(element: Element, attribute: str) -> float:
    """A latency in seconds, 0 if it is not given."""
    return _number(element, attribute, zones.parse_latency, element.get(attribute) or "0")


def _number(element: Element, attribute: str, parse: Callable[[str], float], text: str) -> float:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{attribute} of {element.tag} {element.get('id', '')!r}: {error}") from None


def coordinates(text: str) -> tuple[float, float, float]:
    """Read where a host of a Vivaldi zone is."""
    with suppress(ValueError):
        x, y, height = (float(part) for part in text.split())
        if all(map(isfinite, (x, y, height))):
            return x, y, height
    raise ValueError(f"coordinates {text!r} are not three numbers")


_ROUTED: dict[str, type[Routed]] = {
    "full": zones.Full,
    "floyd": zones.Floyd,
    "dijkstra": zones.Dijkstra,
    "dijkstracache": zones.Dijkstra,
}
_TOPOLOGIES: dict[str, type[Cluster]] = {
    "FLAT": Cluster,
    "TORUS": Torus,
    "FAT_TREE": FatTree,
    "DRAGONFLY": Dragonfly,
}
_IRRELEVANT = frozenset(
    {"prop", "trace", "disk", "storage", "storage_type", "mount", "process", "actor", "argument", "random"}
)
_TURNED: dict[str | None, str] = {"UP": "DOWN", "DOWN": "UP"}
_LINK_TRACES = ("bandwidth_file", "latency_file", "state_file")


SomePoint = TypeVar("SomePoint", bound=Point)


class NetworkReader:
    """Goes through a platform file, zone by zone."""

    def __init__(self, platform: Element) -> None:
        self.points: dict[str, Point] = {}
        """Hosts, routers and zones by name."""
        self.connects = False
        """Whether there are any routes; in a star, they may lead over no links at all."""
        self._settings = Configuration()
        self._links: dict[str, Link | Duplex] = {}
        self._routes: list[tuple[Element, Zone]] = []
        self._fat_tree_hosts = 0
        outside = Zone("outside of all zones", None)
        for element in platform:
            with _at(element):
                if element.tag == "config":
                    self._configure(element)
                elif element.tag in ("zone", "AS"):
                    self._read_zone(element, None)
                elif element.tag == "cluster":
                    self._read_cluster(element, None)
                else:
                    self._read_in(element, outside, [])
        for element, zone in self._routes:
            with _at(element):
                self._read_route(element, zone)

    def network(self, hosts: list[str], master: str, path: str) -> Network:
        """The network of these hosts, in their order."""
        return Network(
            [self.points[name] for name in hosts], self.points.get(master), self._settings.tcp_gamma, path
        )

    # --- zones -----------------------------------------------------------------------------------

    def _configure(self, element: Element) -> None:
        for prop in element.findall("prop"):
            with _at(prop):
                self._settings.set(required(prop, "id"), prop.get("value", ""))

    def _read_zone(self, element: Element, outer: Zone | None) -> None:
        zone = self._new_zone(element, outer)
        beside = next((inner.tag for inner in element if inner.tag in ("host", "router", "cabinet")), None)
        for peer in element.iterfind("peer") if beside is not None else ():
            with _at(peer):
                raise ValueError(
                    f"SimGrid allows no <peer> in a zone with a <{beside}>; use zones of their own"
                )
        backbone: list[Link] = []
        for inner in element.iterfind("backbone"):
            with _at(inner):
                backbone = [self._read_link(inner)]
        for inner in element:
            with _at(inner):
                self._read_in(inner, zone, backbone)

    def _new_zone(self, element: Element, outer: Zone | None) -> Zone:
        name, routing = required(element, "id"), element.get("routing", "None")
        kind = routing.lower()
        if (routed := _ROUTED.get(kind)) is not None:
            return self._known(routed(name, outer, self._settings.loopback, between))
        if kind in ("cluster", "vivaldi"):
            self.connects = True
            return self._known(Star(name, outer))
        if kind == "none":
            return self._known(Zone(name, outer))
        raise ValueError(
            f"zone {name!r} has the unknown routing {routing!r}; "
            "there are Full, Floyd, Dijkstra, DijkstraCache, Cluster, Vivaldi and None"
        )

    def _read_in(self, element: Element, zone: Zone, backbone: list[Link]) -> None:
        match element.tag:
            case "zone" | "AS":
                self._read_zone(element, zone)
            case "cluster":
                self._read_cluster(element, zone)
            case "cabinet":
                self._read_cabinet(element, _star(element, zone), backbone)
            case "host":
                self._place(element, self._known(Host(required(element, "id"), zone)), zone)
            case "router":
                self._place(element, self._known(Router(required(element, "id"), zone)), zone)
            case "peer":
                self._read_peer(element, _star(element, zone))
            case "link":
                self._read_link(element, element.get("sharing_policy", "SHARED"))
            case "host_link":
                self._read_host_link(element, _star(element, zone), backbone)
            case "route" | "zoneRoute" | "ASroute":
                self._routes.append((element, zone))
            case "trace_connect":
                raise ValueError(
                    f"the trace connected to {element.get('element')!r} would change a link with time, "
                    "which is not simulated; remove it"
                )
            case "backbone":
                _star(element, zone)
            case tag if tag not in _IRRELEVANT:
                raise ValueError(f"<{tag}> is not supported")

    def _known(self, point: SomePoint) -> SomePoint:
        if point.name in self.points:
            raise ValueError(f"there are two hosts, routers or zones called {point.name!r}")
        self.points[point.name] = point
        return point

    def _place(self, element: Element, point: Point, zone: Zone) -> None:
        if isinstance(zone, Star) and (text := element.get("coordinates")):
            zone.coordinates[point] = coordinates(text)

    def _read_peer(self, element: Element, zone: Star) -> None:
        peer = self._known(Host(required(element, "id"), zone))
        self._place(element, peer, zone)
        up = self._new_link(f"link_{peer.name}_UP", bandwidth_of(element, "bw_out"), 0.0)
        down = self._new_link(f"link_{peer.name}_DOWN", bandwidth_of(element, "bw_in"), 0.0)
        zone.connect(peer, [up], [down])

    def _read_host_link(self, element: Element, zone: Star, backbone: list[Link]) -> None:
        host = self._point(required(element, "id"))
        up, down = (self._link(required(element, way), None) for way in ("up", "down"))
        zone.connect(host, [up, *backbone], [*backbone, down])

    def _read_cabinet(self, element: Element, zone: Star, backbone: list[Link]) -> None:
        bandwidth, latency = bandwidth_of(element, "bw"), latency_of(element, "lat")
        for number in parse_radical(required(element, "radical")):
            name = f"{required(element, 'prefix')}{number}{required(element, 'suffix')}"
            host = self._known(Host(name, zone))
            up = self._new_link(f"link_{name}_UP", bandwidth, latency)
            down = self._new_link(f"link_{name}_DOWN", bandwidth, latency)
            zone.connect(host, [up, *backbone], [*backbone, down])

    def _read_cluster(self, element: Element, outer: Zone | None) -> None:
        name, topology = required(element, "id"), element.get("topology", "FLAT")
        if topology not in _TOPOLOGIES:
            raise ValueError(
                f"cluster {name!r} has the unknown topology {topology!r}; "
                "there are FLAT, TORUS, FAT_TREE and DRAGONFLY"
            )
        prefix, suffix = required(element, "prefix"), required(element, "suffix")
        numbers = parse_radical(required(element, "radical"))
        hosts = [f"{prefix}{number}{suffix}" for number in numbers]
        if element.get("bw") is None:
            unconnected = self._known(Zone(name, outer))
            for host_name in hosts:
                self._known(Host(host_name, unconnected))
            return
        cluster = _TOPOLOGIES[topology](name, outer, hosts, numbers, wiring_of(element))
        if isinstance(cluster, Topology):
            try:
                cluster.shape(element.get("topo_parameters", ""))
            except ValueError as error:
                raise ValueError(f"cluster {name!r}: {error}") from None
        if isinstance(cluster, FatTree):
            cluster.first_position = self._fat_tree_hosts
            self._fat_tree_hosts += len(hosts)
        self._known(cluster)
        for host in cluster.hosts:
            self._known(host)
        self._known(Router(element.get("router_id") or f"{prefix}{name}_router{suffix}", cluster))
        self.connects = True

    # --- links and routes ------------------------------------------------------------------------

    def _read_link(self, element: Element, policy: str = "SHARED") -> Link:
        name = required(element, "id")
        if trace := next((trace for trace in _LINK_TRACES if element.get(trace)), None):
            raise ValueError(f"link {name!r}: {trace} would change it with time, which is not simulated")
        if policy not in POLICIES:
            raise ValueError(
                f"link {name!r} has the unknown sharing_policy {policy!r}; "
                "there are SHARED, SPLITDUPLEX and FATPIPE"
            )
        bandwidth, latency = bandwidth_of(element, "bandwidth"), latency_of(element, "latency")
        if policy in ("SPLITDUPLEX", "FULLDUPLEX"):
            both = zones.duplex(name, bandwidth, latency)
            self._keep(name, both)
            self._keep(both.up.name, both.up)
            self._keep(both.down.name, both.down)
            return both.up
        return self._new_link(name, bandwidth, latency, policy == "FATPIPE")

    def _new_link(self, name: str, bandwidth: float, latency: float, fatpipe: bool = False) -> Link:
        link = Link(name, bandwidth, latency, fatpipe)
        self._keep(name, link)
        return link

    def _keep(self, name: str, link: Link | Duplex) -> None:
        if name in self._links:
            raise ValueError(f"there are two links called {name!r}")
        self._links[name] = link
        self.connects = True

    def _read_route(self, element: Element, zone: Zone) -> None:
        source, target = self._point(required(element, "src")), self._point(required(element, "dst"))
        what = f"the route from {source.name!r} to {target.name!r}"
        if not isinstance(zone, Routed):
            raise ValueError(f"{what} is in zone {zone.name!r}, whose routing does not use routes")
        for point in (source, target):
            if point.zone is not zone:
                raise ValueError(f"{what} is in zone {zone.name!r}, but {point.name!r} is not")
        between_zones = element.tag != "route"
        for point in (source, target):
            if isinstance(point, Zone) is not between_zones:
                raise ValueError(
                    f"{what}: {point.name!r} is {'no' if between_zones else 'a'} zone; "
                    f"use <{'route' if between_zones else 'zoneRoute'}>"
                )
        if between_zones and source is target:
            raise ValueError(f"{what} leads from a zone to itself")
        gateways = self._gateways(element, source, target, what) if between_zones else None
        names = [(required(link, "id"), link.get("direction")) for link in element.findall("link_ctn")]
        if not names:
            raise ValueError(f"{what} has no links")
        links = tuple(self._link(name, direction) for name, direction in names)
        zone.tell(source, target, Way(links, gateways))
        if element.get("symmetrical", "YES").upper() == "YES" and source is not target:
            back = tuple(self._link(name, _TURNED.get(direction, direction)) for name, direction in names)
            zone.tell(target, source, Way(back[::-1], None if gateways is None else gateways[::-1]))

    def _gateways(self, element: Element, source: Point, target: Point, what: str) -> tuple[Point, Point]:
        gateways = self._point(required(element, "gw_src")), self._point(required(element, "gw_dst"))
        for gateway, zone in zip(gateways, (source, target), strict=True):
            assert isinstance(zone, Zone)
            if isinstance(gateway, Zone) or not zone.holds(gateway):
                raise ValueError(
                    f"{what}: its gateway {gateway.name!r} is no host or router of zone {zone.name!r}"
                )
        return gateways

    def _point(self, name: str) -> Point:
        if name not in self.points:
            raise ValueError(f"there is no host, router or zone called {name!r}")
        return self.points[name]

    def _link(self, name: str, direction: str | None) -> Link:
        link = self._links.get(name)
        match link, direction:
            case None, _:
                raise ValueError(f"there is no link called {name!r}")
            case Duplex(), "UP":
                return link.up
            case Duplex(), "DOWN":
                return link.down
            case Link(), None | "NONE":
                return link
            case Duplex(), _:
                raise ValueError(f'link {name!r} is SPLITDUPLEX; say direction="UP" or "DOWN"')
            case _:
                raise ValueError(f"link {name!r} has no direction {direction!r}")


def _star(element: Element, zone: Zone) -> Star:
    if not isinstance(zone, Star):
        raise ValueError(f"<{element.tag}> belongs in a zone whose routing is Cluster or Vivaldi")
    return zone


class _Located(ValueError):
    """A mistake of which the line is known."""


@contextmanager
def _at(element: Element) -> Iterator[None]:
    """Say of a mistake in which line it is."""
    try:
        yield
    except _Located:
        raise
    except ValueError as error:
        raise _Located(f"line {line_of(element)}: {error}") from None
