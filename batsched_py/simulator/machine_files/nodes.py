"""From kinds of nodes to a platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.simulator.platform import MOST_HOSTS, Platform, PlatformHost, PowerState
from batsched_py.workload.swf.conventions import LOG_SPEED


class NodeKind(Struct, frozen=True):
    """Some equal nodes."""

    names: Sequence[str]
    cores: int
    resources: Mapping[str, int]
    """What each has beside cores; memory is in KiB."""
    features: Sequence[str] = ()
    switches: Sequence[str] = ()
    """The switch of each node; none where that is not known."""
    partitions: Sequence[str] = ()
    speed: float = 1.0
    """Of each core, relative to the machine of a log."""
    power: Sequence[float] | None = None
    """The watts of each core: idle and full."""


def platform_of(kinds: Sequence[NodeKind], licences: Mapping[str, int], path: str) -> Platform:
    """The platform of these nodes: a host for each core, next to each other, named after node and core."""
    names = [name for kind in kinds for name in kind.names]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: there are two nodes called {twice!r}")
    nb_hosts = sum(len(kind.names) * kind.cores for kind in kinds)
    if not 1 <= nb_hosts <= MOST_HOSTS:
        raise InputError(f"{path}: a machine has 1 to {MOST_HOSTS} cores, not {nb_hosts}")
    zone = {"licences": _written(licences)} if licences else {}
    hosts: list[PlatformHost] = []
    for kind in kinds:
        idle, full = kind.power or (0.0, 0.0)
        pstates = [PowerState(kind.speed * LOG_SPEED, idle, idle, full)]
        for place, name in enumerate(kind.names):
            properties = _properties(kind, name, place)
            width = len(str(kind.cores - 1))
            for core in range(kind.cores):
                hosts.append(
                    PlatformHost(
                        len(hosts),
                        f"{name}-{core:0{width}}",
                        pstates,
                        properties=properties,
                        zone_properties=zone,
                    )
                )
    return Platform(hosts, path=path)


def _properties(kind: NodeKind, name: str, place: int) -> dict[str, str]:
    """What the hosts of a node tell of it; see :mod:`batsched_py.ledger.nodes.machine`."""
    properties = {"role": "", "node": name, "resources": _written(kind.resources)}
    properties |= {"features": " ".join(kind.features), "partitions": " ".join(kind.partitions)}
    if kind.switches:
        properties["switch"] = kind.switches[place]
    if kind.power:
        properties["wattage_per_state"] = ":".join(f"{watts:g}" for watts in kind.power)
    return {key: value for key, value in properties.items() if value or key == "role"}


def _written(amounts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={count}{'kB' if name == 'memory' else ''}" for name, count in amounts.items())
