"""Machines in TOML.

::

    [[nodes]]
    count = 100
    name = "cpu"
    cores = 64
    memory = "256 GB"
    partitions = ["long", "short"]
    nodes_per_switch = 20

    [[nodes]]
    count = 20
    name = "gpu"
    cores = 64
    memory = "512 GB"
    gpu = 4
    features = ["a100"]
    partitions = ["gpu"]

    [[nodes]]
    names = "fat[1-2],old"
    cores = 128
    switch = "s1"

    [[nodes]]
    count = 40
    name = "green"
    cores = 64
    idle_watts = 120
    full_watts = 480
    sleep_watts = 10
    switch_on_seconds = 150
    switch_off_seconds = 20

    [licences]
    matlab = 10

Any further key with a number is a resource that can be counted. Watts are those of a whole node; each of its
cores has an equal share of them. All cores of a node sleep together, if a scheduler lets them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from batsched_py.errors import InputError
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.requests import amount
from batsched_py.simulator.machine_files.nodes import NodeKind, NodePower, NodeSleep, platform_of
from batsched_py.simulator.platform import Platform

_Names = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:+-]+$")]
#: Slurm calls a licence of a server ``NAME@SERVER``.
_Licence = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:+@-]+$")]
_Count = Annotated[int, Meta(ge=1, le=1 << 20)]
_Number = Annotated[float, Meta(gt=0)]
_Watts = Annotated[float, Meta(ge=0)]


class _Nodes(Struct):
    """A table of nodes that are alike."""

    count: _Count | None = None
    name: _Names = "node"
    names: Annotated[str, Meta(min_length=1)] | None = None
    """All names, as Slurm writes them."""
    cores: _Count = 1
    features: list[_Names] = []
    partitions: list[_Names] = []
    nodes_per_switch: _Count | None = None
    switch: _Names | None = None
    """That of all of them."""
    speed: _Number = 1.0
    idle_watts: _Watts | None = None
    full_watts: _Watts | None = None
    sleep_watts: _Watts | None = None
    switch_on_seconds: _Number | None = None
    switch_off_seconds: _Number | None = None
    switch_on_watts: _Watts | None = None
    """While it switches on; by default what it draws when all cores are busy."""
    switch_off_watts: _Watts | None = None


#: A resource cannot be called like one of these.
KEYS = frozenset(_Nodes.__struct_fields__)


class _File(Struct, forbid_unknown_fields=True):
    nodes: list[dict[str, Any]]
    licences: dict[_Licence, Annotated[int, Meta(ge=0, le=1 << 30)]] = {}


def read_toml_machine(path: str | Path) -> Platform:
    """The machine that a TOML file describes."""
    try:
        return toml_machine(Path(path).read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot read this machine ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {error}") from None


def toml_machine(text: str, path: str) -> Platform:
    """The machine that a text in TOML describes."""
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
        kinds = []
        for place, table in enumerate(file.nodes):
            try:
                kinds.append(_kind(table))
            except ValueError as error:
                raise ValueError(f"nodes {place + 1}: {error}") from None
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return platform_of(kinds, file.licences, path)


def _kind(table: dict[str, Any]) -> NodeKind:
    """The nodes of a table."""
    nodes = msgspec.convert(table, _Nodes)
    rest = {key: value for key, value in table.items() if key not in KEYS}
    for key, value in rest.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError(f"{key!r} is not known; a resource has a number, memory a size like '256 GB'")
    if (nodes.idle_watts is None) != (nodes.full_watts is None):
        raise ValueError("idle_watts and full_watts go together; give both")
    names = _node_names(nodes)
    return NodeKind(
        names,
        nodes.cores,
        {key: amount(key, value) for key, value in rest.items()},
        nodes.features,
        _switches(nodes, len(names)),
        nodes.partitions,
        nodes.speed,
        _power(nodes),
    )


def _node_names(nodes: _Nodes) -> list[str]:
    if (nodes.count is None) == (nodes.names is None):
        raise ValueError("give either a count of nodes, or names like 'n[1-16]'")
    if nodes.names is not None:
        return expand(nodes.names)
    count = nodes.count or 0
    width = len(str(count - 1))
    return [f"{nodes.name}{number:0{width}}" for number in range(count)]


def _switches(nodes: _Nodes, count: int) -> list[str]:
    """The switch of each node, if that is known."""
    if nodes.switch is not None:
        return [nodes.switch] * count
    per_switch = nodes.nodes_per_switch
    return [f"{nodes.name}-switch{place // per_switch}" for place in range(count)] if per_switch else []


def _power(nodes: _Nodes) -> NodePower | None:
    """What each core of the nodes draws."""
    sleeping = (nodes.sleep_watts, nodes.switch_on_seconds, nodes.switch_off_seconds)
    switching = (nodes.switch_on_watts, nodes.switch_off_watts)
    if nodes.idle_watts is None or nodes.full_watts is None:
        if any(value is not None for value in (*sleeping, *switching)):
            raise ValueError("nodes that sleep need idle_watts and full_watts")
        return None
    idle, full = nodes.idle_watts / nodes.cores, nodes.full_watts / nodes.cores
    asleep, on_seconds, off_seconds = sleeping
    if asleep is None or on_seconds is None or off_seconds is None:
        if any(value is not None for value in (*sleeping, *switching)):
            raise ValueError("sleep_watts, switch_on_seconds and switch_off_seconds go together; give all")
        return NodePower(idle, full)
    on_watts, off_watts = (full if watts is None else watts / nodes.cores for watts in switching)
    return NodePower(
        idle, full, NodeSleep(asleep / nodes.cores, on_seconds, on_watts, off_seconds, off_watts)
    )
