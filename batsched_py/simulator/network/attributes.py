"""The attributes of links and clusters in a SimGrid platform file."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from xml.etree.ElementTree import Element

from batsched_py.simulator.network.clusters import Wiring
from batsched_py.simulator.network.links import Link
from batsched_py.simulator.network.units import parse_bandwidth, parse_latency

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
    return _number(element, attribute, parse_bandwidth, required(element, attribute))


def latency_of(element: Element, attribute: str) -> float:
    """A latency in seconds, 0 if it is not given."""
    return _number(element, attribute, parse_latency, element.get(attribute) or "0")


def _number(element: Element, attribute: str, parse: Callable[[str], float], text: str) -> float:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{attribute} of {element.tag} {element.get('id', '')!r}: {error}") from None


def positive(name: str, text: str) -> float:
    """Read a number above 0 of the configuration."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not (isfinite(value) and value > 0):
        raise ValueError(f"{name} is {text!r} where it needs a number above 0")
    return value


def coordinates(text: str) -> tuple[float, float, float]:
    """Read where a host of a Vivaldi zone is."""
    try:
        x, y, height = (float(part) for part in text.split())
    except ValueError:
        raise ValueError(f"coordinates {text!r} are not three numbers") from None
    if not all(map(isfinite, (x, y, height))):
        raise ValueError(f"coordinates {text!r} are not three numbers")
    return x, y, height


def required(element: Element, attribute: str) -> str:
    """An attribute that must be there."""
    value = element.get(attribute)
    if value is None:
        raise ValueError(f"<{element.tag}> {element.get('id', '')!r} lacks its attribute {attribute!r}")
    return value
