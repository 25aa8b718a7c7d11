"""Platform files of SimGrid: the hosts that they declare (versions 3 to 4.1), and machines written as one.

Hosts are given one by one (``<host>``, ``<peer>``) or in bulk (``<cluster>``, ``<cabinet>``). Links and
routes are read by :mod:`~batsched_py.simulator.network.reading`. The format's DTD is never fetched.
"""

import re
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat
from xml.parsers.expat import ExpatError
from xml.sax.saxutils import quoteattr

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.shown import shown
from batsched_py.simulator.network.zones import quantity
from batsched_py.simulator.platform import MOST_HOSTS, Platform


class _Element(ElementTree.Element):
    line = 0


def line_of(element: ElementTree.Element) -> int:
    """The line in which an element begins."""
    assert isinstance(element, _Element)
    return element.line


def parse_xml(text: bytes, lines_before: int = 0) -> ElementTree.Element:
    """The root of an XML document, in front of which so many lines were left out; nothing else is fetched."""
    parser = expat.ParserCreate()
    builder = ElementTree.TreeBuilder(element_factory=_Element)

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = builder.start(tag, attributes)
        assert isinstance(element, _Element)
        element.line = parser.CurrentLineNumber + lines_before

    parser.StartElementHandler = start
    parser.EndElementHandler = builder.end
    parser.Parse(text, True)
    return builder.close()


_PREFIXES = {"": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6, "Z": 7, "Y": 8}
_LONG_PREFIXES = {"kilo": 1, "mega": 2, "giga": 3, "tera": 4, "peta": 5, "exa": 6, "zeta": 7, "yotta": 8}
_UNITS = (
    {"": 1.0, "flops": 1.0}
    | {f"{prefix}f": 1000.0**power for prefix, power in _PREFIXES.items()}
    | {f"{prefix}flops": 1000.0**power for prefix, power in _LONG_PREFIXES.items()}
)
_GROUP = re.compile(r"([0-9]+)(?:-([0-9]+))?")

#: How deep zones may be nested; platforms of real machines need five.
DEEPEST = 100

_PROFILES = ("speed_file", "availability_file", "state_file")
_PROFILE_KINDS = ("HOST_AVAIL", "SPEED")


class DeclaredHost(Struct):
    """A host as the file declares it, before anything is concluded from its properties."""

    name: str
    speeds: list[float]
    """Flop/s in each power state."""
    pstate: int
    """The power state it begins in."""
    cores: int
    properties: dict[str, str]
    zone_properties: dict[str, str]
    """Properties of the zones around it; those of an inner zone win."""


def declared_hosts(path: str | Path, platform: ElementTree.Element | None = None) -> list[DeclaredHost]:
    """All hosts of the platform file at ``path``, in the order in which it declares them.

    Who has read the file already gives its ``platform``.
    """
    if platform is None:
        platform = read_root(path)
    hosts: dict[str, DeclaredHost] = {}
    try:
        for host in _inside(platform, {}):
            if host.name in hosts:
                raise ValueError(f"host {host.name!r} is declared twice")
            if len(hosts) == MOST_HOSTS:
                raise ValueError(f"it declares more than {MOST_HOSTS} hosts, which are the most")
            hosts[host.name] = host
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    return list(hosts.values())


def parse_speed(text: str) -> float:
    """Read a speed in flop/s.

    >>> parse_speed("2.5Gf"), parse_speed("1e-9Mf"), parse_speed("100")
    (2500000000.0, 0.001, 100.0)
    """
    speed = quantity(text, _UNITS)
    if speed is None:
        raise ValueError(f"{text.strip()!r} is not a speed like '1Gf' or '98.095Mf'")
    if not isfinite(speed):
        raise ValueError(f"speed {text.strip()!r} is too large")
    return speed


def parse_radical(text: str) -> list[int]:
    """Read the numbers of a cluster's hosts.

    >>> parse_radical("0-2,7")
    [0, 1, 2, 7]
    """
    numbers: list[int] = []
    for group in text.split(","):
        match = _GROUP.fullmatch(group.strip())
        if match is None:
            raise ValueError(f"radical {text!r} is not a list of numbers and intervals like '0-3,7'")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise ValueError(f"interval {group.strip()!r} of radical {text!r} is reversed")
        if len(numbers) + last - first >= MOST_HOSTS:
            raise ValueError(f"radical {shown(text)} has more than {MOST_HOSTS} numbers, which are the most")
        numbers.extend(range(first, last + 1))
    return numbers


def read_root(path: str | Path) -> ElementTree.Element:
    """The platform that the file at ``path`` describes, in the spelling of version 4."""
    try:
        # SimGrid tolerates blank lines in front of the XML declaration; XML itself does not.
        given = read_input(path)
        text = given.lstrip()
    except OSError as error:
        raise InputError(f"{path}: cannot read this platform file ({error.strerror})") from None
    try:
        root = parse_xml(text, given[: len(given) - len(text)].count(b"\n"))
    except (ExpatError, LookupError, ValueError) as error:
        raise InputError(f"{path}: this is not well-formed XML ({error})") from None
    if root.tag != "platform":
        raise InputError(f"{path}: this is no SimGrid platform, its root is <{root.tag}> and not <platform>")
    version = root.get("version", "")
    if version.partition(".")[0] not in ("3", "4"):
        raise InputError(
            f"{path}: platform version {version!r} is not supported, only 3 to 4.1 are; "
            "convert the file with SimGrid's simgrid_update_xml"
        )
    for element in root.iter() if version.startswith("3") else ():
        if (speed := element.attrib.pop("power", None)) is not None:
            element.set("speed", speed)
    return root


def _inside(zone: ElementTree.Element, outer: dict[str, str], depth: int = 0) -> Iterator[DeclaredHost]:
    """The hosts of ``zone`` and of the zones in it; ``outer`` are the properties of the zones around it."""
    if depth > DEEPEST:
        raise ValueError(f"zones are nested more than {DEEPEST} deep")
    zone_properties = outer | _properties(zone)
    for element in zone:
        match element.tag:
            case "zone" | "AS":
                yield from _inside(element, zone_properties, depth + 1)
            case "host" | "peer":
                yield _host(element, required(element, "id"), _properties(element), zone_properties)
            case "cluster":
                properties = _properties(element)
                yield from _hosts_in_bulk(element, properties, zone_properties | properties)
            case "cabinet":
                yield from _hosts_in_bulk(element, {}, zone_properties)
            case "trace_connect" if element.get("kind", "HOST_AVAIL") in _PROFILE_KINDS:
                raise ValueError(
                    f"the trace connected to {element.get('element')!r} would change a host with time, "
                    "which is not simulated; remove it"
                )
            case "include":
                raise ValueError("<include> is not supported; put the included text in its place")


def _hosts_in_bulk(
    element: ElementTree.Element, properties: dict[str, str], zone_properties: dict[str, str]
) -> Iterator[DeclaredHost]:
    prefix, suffix = required(element, "prefix"), required(element, "suffix")
    try:
        numbers = parse_radical(required(element, "radical"))
    except ValueError as error:
        raise ValueError(f"{element.tag} {element.get('id')!r}: {error}") from None
    first = _host(element, f"{prefix}{numbers[0]}{suffix}", properties, zone_properties)
    for number in numbers:
        yield replace(first, name=f"{prefix}{number}{suffix}")


def _host(
    element: ElementTree.Element, name: str, properties: dict[str, str], zone_properties: dict[str, str]
) -> DeclaredHost:
    profile = next((profile for profile in _PROFILES if element.get(profile)), None)
    try:
        if profile is not None:
            raise ValueError(f"{profile} would change it with time, which is not simulated; remove it")
        speeds = [parse_speed(speed) for speed in required(element, "speed").split(",")]
        pstate = _count(element, "pstate", 0)
        if pstate >= len(speeds):
            raise ValueError(f"it begins in pstate {pstate} but has {len(speeds)} speeds")
        cores = _count(element, "core", 1)
        if cores == 0:
            raise ValueError("it has no core")
    except ValueError as error:
        raise ValueError(f"host {name!r}: {error}") from None
    return DeclaredHost(name, speeds, pstate, cores, dict(properties), zone_properties)


def _properties(element: ElementTree.Element) -> dict[str, str]:
    return {required(prop, "id"): required(prop, "value") for prop in element.findall("prop")}


def required(element: ElementTree.Element, attribute: str) -> str:
    """An attribute that must be there."""
    value = element.get(attribute)
    if value is None:
        raise ValueError(f"<{element.tag}> {element.get('id', '')!r} lacks its attribute {attribute!r}")
    return value


def _count(element: ElementTree.Element, attribute: str, default: int) -> int:
    text = element.get(attribute, str(default))
    if re.fullmatch(r"[0-9]{1,9}(\.0*)?", text) is None:
        raise ValueError(f"{attribute} {text!r} is not a whole number")
    return int(float(text))


_HEAD = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="machine" routing="None">"""


def simgrid_lines(platform: Platform) -> Iterator[str]:
    """The lines of a file with a host for each core and a master; properties say which cores make a node.

    Batsim numbers hosts in the order of their names as plain text. If that is another order than the
    platform's, each name gets its number in front.
    """
    yield _HEAD
    for name, value in platform.hosts[0].zone_properties.items():
        yield f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>"
    yield '    <host id="master_host" speed="1Gf"/>'
    names = [host.name for host in platform.hosts]
    if names != sorted(names):
        width = len(str(len(names) - 1))
        names = [f"{number:0{width}}-{name}" for number, name in enumerate(names)]
    for name, host in zip(names, platform.hosts, strict=True):
        properties = {key: value for key, value in host.properties.items() if value}
        speeds = ",".join(f"{state.speed:.17g}f" for state in host.pstates)
        yield f"    <host id={quoteattr(name)} speed={quoteattr(speeds)}{'>' if properties else '/>'}"
        for key, value in properties.items():
            yield f"      <prop id={quoteattr(key)} value={quoteattr(value)}/>"
        if properties:
            yield "    </host>"
    yield "  </zone>"
    yield "</platform>"
