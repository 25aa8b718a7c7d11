"""Random platforms of every kind that SimGrid's files know, as XML."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

OPENING = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'

#: The inside of a platform, and the names of its hosts.
Drawn = tuple[str, list[str]]


def platform(kind: str, random: Random) -> Drawn:
    """A platform of a kind, as a file's text, and its hosts."""
    inside, hosts = KINDS[kind](random)
    return f'{OPENING}\n<platform version="4.1">\n{inside}\n</platform>\n', hosts


def _speed(random: Random) -> str:
    return f"{random.randint(50, 500)}Mf"


def _bandwidth(random: Random) -> str:
    return random.choice([f"{random.randint(10, 200)}MBps", f"{random.randint(1, 9)}Gbps", "64MiBps"])


def _latency(random: Random) -> str:
    return random.choice(["0", f"{random.randint(1, 900)}us", f"{random.randint(1, 20)}ms"])


def _host(random: Random, name: str, more: str = "") -> str:
    return f'<host id="{name}" speed="{_speed(random)}" core="{random.randint(1, 4)}"{more}/>'


def _cluster(random: Random, name: str, count: int, more: str = "", limiters: bool = True) -> Drawn:
    options = f' sharing_policy="{random.choice(["SPLITDUPLEX", "SHARED", "FATPIPE"])}"' + more
    if random.random() < 0.4:
        options += f' loopback_bw="{_bandwidth(random)}" loopback_lat="{_latency(random)}"'
    if limiters and random.random() < 0.4:
        options += f' limiter_link="{_bandwidth(random)}"'
    text = (
        f'<cluster id="{name}" prefix="{name}-" suffix="" radical="0-{count - 1}" speed="{_speed(random)}" '
        f'core="{random.randint(1, 3)}" bw="{_bandwidth(random)}" lat="{_latency(random)}"{options}/>'
    )
    return text, [f"{name}-{number}" for number in range(count)]


def _flat(random: Random, name: str = "c") -> Drawn:
    more = ""
    if random.random() < 0.6:
        policy = random.choice(["SHARED", "FATPIPE"])
        more = f' bb_bw="{_bandwidth(random)}" bb_lat="{_latency(random)}" bb_sharing_policy="{policy}"'
    return _cluster(random, name, random.randint(2, 8), more)


def _fat_tree(random: Random, name: str = "f") -> Drawn:
    levels = random.randint(1, 3)
    children, parents, cables = ([random.randint(1, 3) for _ in range(levels)] for _ in range(3))
    shape = ";".join([str(levels), *(",".join(map(str, numbers)) for numbers in (children, parents, cables))])
    more = f' topology="FAT_TREE" topo_parameters="{shape}"'
    switches = sum(prod(parents[: level + 1]) * prod(children[level + 1 :]) for level in range(levels))
    # SimGrid gives limiters of hosts and of switches the same names when there are many switches.
    return _cluster(random, name, prod(children), more, limiters=switches < prod(children))


def _torus(random: Random, name: str = "t") -> Drawn:
    sizes = [random.randint(2, 5) for _ in range(random.randint(1, 3))]
    more = f' topology="TORUS" topo_parameters="{",".join(map(str, sizes))}"'
    return _cluster(random, name, prod(sizes), more)


def _dragonfly(random: Random, name: str = "d") -> Drawn:
    blades = random.randint(1, 4)
    groups, chassis, nodes = random.randint(1, blades), random.randint(1, 3), random.randint(1, 2)
    links = [random.randint(1, 3) for _ in range(3)]
    shape = f"{groups},{links[0]};{chassis},{links[1]};{blades},{links[2]};{nodes}"
    more = f' topology="DRAGONFLY" topo_parameters="{shape}"'
    return _cluster(random, name, groups * chassis * blades * nodes, more)


def _links(random: Random, name: str, count: int) -> tuple[str, list[str]]:
    """Links, and how a route names each."""
    text, ways = "", []
    for number in range(count):
        policy = random.choice(["SHARED", "FATPIPE", "SPLITDUPLEX"])
        link = f"{name}{number}"
        text += (
            f'<link id="{link}" bandwidth="{_bandwidth(random)}" latency="{_latency(random)}" '
            f'sharing_policy="{policy}"/>\n'
        )
        direction = f' direction="{random.choice(["UP", "DOWN"])}"' if policy == "SPLITDUPLEX" else ""
        ways.append(f'<link_ctn id="{link}"{direction}/>')
    return text, ways


def _full(random: Random, name: str = "z") -> Drawn:
    hosts = [f"{name}{number}" for number in range(random.randint(2, 5))]
    text, ways = _links(random, f"{name}l", 5)
    text = "".join(_host(random, host) for host in hosts) + text
    for place, source in enumerate(hosts):
        for target in hosts[place + 1 :]:
            both = random.random() < 0.7
            for one, other in [(source, target)] if both else [(source, target), (target, source)]:
                links = "".join(random.sample(ways, random.randint(1, 3)))
                told = "YES" if both else "NO"
                text += f'<route src="{one}" dst="{other}" symmetrical="{told}">{links}</route>\n'
    return f'<zone id="{name}" routing="Full">{text}</zone>', hosts


def _graph(random: Random, routing: str, name: str) -> Drawn:
    hosts = [f"{name}{number}" for number in range(random.randint(2, 6))]
    routers = [f"{name}r{number}" for number in range(random.randint(1, 5))]
    points = random.sample(hosts + routers, len(hosts) + len(routers))
    text = "".join(_host(random, p) if p in hosts else f'<router id="{p}"/>' for p in points)
    tree = [(point, random.choice(points[:place])) for place, point in enumerate(points) if place]
    edges = {tuple(sorted(edge)) for edge in tree}
    for _ in range(random.randint(0, 6)):
        edges.add(tuple(sorted(random.sample(points, 2))))
    links, ways = _links(random, f"{name}l", len(edges) + 3)
    text += links
    for source, target in random.sample(sorted(edges), len(edges)):
        passed = "".join(random.sample(ways, random.choice([1, 1, 1, 2, 3])))
        text += f'<route src="{source}" dst="{target}">{passed}</route>\n'
    return f'<zone id="{name}" routing="{routing}">{text}</zone>', hosts


def _star_zone(random: Random, name: str = "s") -> Drawn:
    hosts = [f"{name}{number}" for number in range(random.randint(1, 3))]
    text = "".join(_host(random, host) for host in hosts)
    for host in hosts:
        for way in ("in", "out"):
            text += f'<link id="{host}{way}" bandwidth="{_bandwidth(random)}" latency="{_latency(random)}"/>'
        text += f'<host_link id="{host}" up="{host}out" down="{host}in"/>'
    if random.random() < 0.5:
        text += f'<backbone id="{name}b" bandwidth="{_bandwidth(random)}" latency="{_latency(random)}"/>'
    text += (
        f'<cabinet id="{name}c" prefix="{name}c" suffix="" radical="1-3" speed="{_speed(random)}" '
        f'bw="{_bandwidth(random)}" lat="{_latency(random)}"/>'
    )
    cabinet = [f"{name}c{number}" for number in (1, 2, 3)]
    return f'<zone id="{name}" routing="Cluster">{text}</zone>', hosts + cabinet


def _vivaldi(random: Random, name: str = "v") -> Drawn:
    hosts = [f"{name}{number}" for number in range(random.randint(2, 6))]
    text = "".join(
        f'<peer id="{host}" speed="{_speed(random)}" '
        f'bw_in="{_bandwidth(random)}" bw_out="{_bandwidth(random)}" '
        f'coordinates="{random.uniform(-20, 20)} {random.uniform(-20, 20)} {random.uniform(0, 3)}"/>'
        for host in hosts
    )
    return f'<zone id="{name}" routing="Vivaldi">{text}</zone>', hosts


def _nowhere(random: Random, name: str = "n") -> Drawn:
    hosts = [f"{name}{number}" for number in range(3)]
    return f'<zone id="{name}" routing="None">{"".join(_host(random, h) for h in hosts)}</zone>', hosts


def _nested(random: Random, routing: str = "Full") -> Drawn:
    """Zones of different kinds, connected by their gateways; some of them are one zone deeper."""
    text, hosts, gateways = "", [], []
    for number in range(random.randint(2, 4)):
        name = f"{'abcd'[number]}"
        draw = random.choice([_flat, _fat_tree, _torus, _full, _graph_of("Floyd"), _star_zone])
        inside, inner = draw(random, name)
        gateway = f"{name}-{name}_router" if draw is _flat and random.random() < 0.7 else random.choice(inner)
        zone = name
        if random.random() < 0.3:
            zone = f"{name}outer"
            inside = f'<zone id="{zone}" routing="Full">{inside}</zone>'
        text += inside
        hosts += inner
        gateways.append((zone, gateway))
    links, ways = _links(random, "w", 6)
    text += links
    for place, (zone, gateway) in enumerate(gateways):
        others = gateways[place + 1 :] if routing == "Full" else gateways[place + 1 : place + 2]
        for other, entry in others:
            passed = "".join(random.sample(ways, random.randint(1, 3)))
            text += f'<zoneRoute src="{zone}" dst="{other}" gw_src="{gateway}" gw_dst="{entry}">'
            text += f"{passed}</zoneRoute>\n"
    return f'<zone id="all" routing="{routing}">{text}</zone>', hosts


def _graph_of(routing: str) -> Callable[..., Drawn]:
    return lambda random, name="g": _graph(random, routing, name)


def _wrapped(draw: Callable[[Random], Drawn]) -> Callable[[Random], Drawn]:
    """A cluster, inside the zone that each platform must have."""

    def inside(random: Random) -> Drawn:
        text, hosts = draw(random)
        return f'<zone id="world" routing="Full">{text}</zone>', hosts

    return inside


KINDS: dict[str, Callable[[Random], Drawn]] = {
    "flat": _wrapped(_flat),
    "fat tree": _wrapped(_fat_tree),
    "torus": _wrapped(_torus),
    "dragonfly": _wrapped(_dragonfly),
    "Full": _full,
    "Floyd": _graph_of("Floyd"),
    "Dijkstra": _graph_of("Dijkstra"),
    "DijkstraCache": _graph_of("DijkstraCache"),
    "Cluster": _star_zone,
    "Vivaldi": _vivaldi,
    "None": _nowhere,
    "nested": _nested,
    "nested Floyd": lambda random: _nested(random, "Floyd"),
}
