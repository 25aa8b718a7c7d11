"""Links, and the ways that consist of them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


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


def total_latency(links: Iterable[Link]) -> float:
    """The latency of links that are passed one after another."""
    return sum([link.latency for link in links])
