"""Files that describe the nodes of a machine: TOML, AccaSim's JSON, and which reader a file is for.

In TOML::

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

AccaSim has groups of equal nodes, and how many nodes each group has::

    {"groups": {"g0": {"core": 4, "mem": 1048576}}, "resources": {"g0": 120}}

Memory is in KiB there, as in the logs that AccaSim reads. Any other resource of a group is counted under its
name. With ``"equivalence": {"processor": {"core": 2}}``, a processor of a log takes two cores; then these
nodes have room for two each.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from batsched_py.errors import InputError
from batsched_py.protocol.hosts import expand
from batsched_py.protocol.jobs import NODE_PROPERTIES
from batsched_py.protocol.requests import MOST, amount
from batsched_py.simulator.platform import MOST_HOSTS, Platform, PlatformHost, PowerState, SleepState
from batsched_py.workload.swf.conventions import LOG_SPEED

#: The power states of a node that can sleep: asleep, switching off, switching on.
_SLEEP = SleepState(1, 2, 3)


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
    power: Sequence[PowerState] = ()
    """Of each core: to compute in and, if it can sleep, those of ``_SLEEP``; none where that is not known."""


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
        pstates = list(kind.power) or [PowerState(kind.speed * LOG_SPEED)]
        sleep_states = {_SLEEP.sleep: _SLEEP} if len(pstates) > 1 else {}
        for place, name in enumerate(kind.names):
            properties = _properties(kind, name, place)
            for core in _numbered(f"{name}-", kind.cores):
                hosts.append(PlatformHost(len(hosts), core, pstates, 0, sleep_states, properties, zone))
    return Platform(hosts, path=path)


def _numbered(name: str, count: int) -> list[str]:
    """So many names, of one length."""
    width = len(str(count - 1))
    return [f"{name}{number:0{width}}" for number in range(count)]


def _properties(kind: NodeKind, name: str, place: int) -> dict[str, str]:
    """What the hosts of a node tell of it; see :mod:`batsched_py.ledger.nodes`."""
    properties = {"role": "", "node": name, "resources": _written(kind.resources)}
    properties |= {"features": " ".join(kind.features), "partitions": " ".join(kind.partitions)}
    if kind.switches:
        properties["switch"] = kind.switches[place]
    if kind.power:
        properties["wattage_per_state"] = ",".join(
            f"{_number(state.idle_watts)}:{_number(state.full_watts)}" for state in kind.power
        )
    if len(kind.power) > 1:
        properties["sleep_pstates"] = f"{_SLEEP.sleep}:{_SLEEP.switch_off}:{_SLEEP.switch_on}"
    return {key: value for key, value in properties.items() if value or key == "role"}


def _number(watts: float) -> str:
    """A number as short as it can be without losing anything."""
    short = f"{watts:g}"
    return short if float(short) == watts else repr(watts)


def _written(amounts: Mapping[str, int]) -> str:
    return " ".join(f"{name}={count}{'kB' if name == 'memory' else ''}" for name, count in amounts.items())


_Names = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:+-]+$")]
#: Slurm calls a licence of a server ``NAME@SERVER``.
_Licence = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.:+@-]+$")]
_TomlCount = Annotated[int, Meta(ge=1, le=1 << 20)]
_Number = Annotated[float, Meta(gt=0)]
_Watts = Annotated[float, Meta(ge=0)]


class _Nodes(Struct):
    """A table of nodes that are alike."""

    count: _TomlCount | None = None
    name: _Names = "node"
    names: Annotated[str, Meta(min_length=1)] | None = None
    """All names, as Slurm writes them."""
    cores: _TomlCount = 1
    features: list[_Names] = []
    partitions: list[_Names] = []
    nodes_per_switch: _TomlCount | None = None
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


class _TomlFile(Struct, forbid_unknown_fields=True):
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
    import tomllib

    try:
        file = msgspec.convert(tomllib.loads(text), _TomlFile)
        kinds = []
        for place, table in enumerate(file.nodes):
            try:
                kinds.append(_toml_kind(table))
            except (msgspec.MsgspecError, ValueError) as error:
                raise ValueError(f"nodes {place + 1}: {error}") from None
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
    return platform_of(kinds, file.licences, path)


def _toml_kind(table: dict[str, Any]) -> NodeKind:
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
    return _numbered(nodes.name, nodes.count or 0)


def _switches(nodes: _Nodes, count: int) -> list[str]:
    """The switch of each node, if that is known."""
    if nodes.switch is not None:
        return [nodes.switch] * count
    per_switch = nodes.nodes_per_switch
    return [f"{nodes.name}-switch{place // per_switch}" for place in range(count)] if per_switch else []


def _power(nodes: _Nodes) -> list[PowerState]:
    """The power states of each core of the nodes; it passes the two of switching by executing one flop."""
    asleep, off_seconds, on_seconds = nodes.sleep_watts, nodes.switch_off_seconds, nodes.switch_on_seconds
    switching = (nodes.switch_off_watts, nodes.switch_on_watts)
    sleeps = any(value is not None for value in (asleep, off_seconds, on_seconds, *switching))
    if nodes.idle_watts is None or nodes.full_watts is None:
        if sleeps:
            raise ValueError("nodes that sleep need idle_watts and full_watts")
        return []
    idle, full = nodes.idle_watts / nodes.cores, nodes.full_watts / nodes.cores
    computing = PowerState(nodes.speed * LOG_SPEED, idle, idle, full)
    if not sleeps:
        return [computing]
    if asleep is None or off_seconds is None or on_seconds is None:
        raise ValueError("sleep_watts, switch_on_seconds and switch_off_seconds go together; give all")
    off, on = (full if watts is None else watts / nodes.cores for watts in switching)
    others = (1.0, asleep / nodes.cores), (1 / off_seconds, off), (1 / on_seconds, on)
    return [computing, *(PowerState(speed, watts, watts, watts) for speed, watts in others)]


_Amount = Annotated[int, Meta(ge=0, le=MOST)]
_Count = Annotated[int, Meta(ge=1, le=MOST_HOSTS)]


class _Equivalence(Struct, forbid_unknown_fields=True):
    core: _Count = 1


class _AccasimFile(Struct):
    groups: dict[str, dict[str, _Amount]]
    resources: dict[str, _Count]
    equivalence: dict[str, _Equivalence] = {}
    """How many cores one processor of a log takes."""


def read_accasim_machine(path: str | Path) -> Platform:
    """The machine that a file of AccaSim describes."""
    try:
        file = msgspec.json.decode(Path(path).read_bytes(), type=_AccasimFile)
        for name in file.equivalence.keys() - {"processor"}:
            raise ValueError(f"`equivalence` is known of a processor only, not of {name!r}")
        cores = file.equivalence.get("processor", _Equivalence()).core
        kinds = [_accasim_kind(name, file.groups, count, cores) for name, count in file.resources.items()]
    except OSError as error:
        raise InputError(f"{path}: cannot read this machine ({error.strerror})") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return platform_of(kinds, {}, str(path))


def _accasim_kind(group: str, groups: dict[str, dict[str, int]], count: int, cores: int) -> NodeKind:
    """Nodes with room for as many processors of a log as they have times so many ``cores``."""
    if group not in groups:
        raise ValueError(f"`resources` names group {group!r}, which is not among the `groups`")
    resources = dict(groups[group])
    room = resources.pop("core", 0) // cores
    if not room:
        raise ValueError(f"the nodes of group {group!r} have no `core`, or fewer than a processor takes")
    if "mem" in resources:
        resources["memory"] = resources.pop("mem")
    return NodeKind(_numbered(f"{group}_", count), room, resources)


def read_slurm(path: str) -> Platform:
    """The machine that a ``slurm.conf`` describes."""
    from batsched_py.simulator.slurm_conf import read_slurm_machine

    return read_slurm_machine(path)


#: The reader of each kind of file but SimGrid's, by the end of its name.
READERS: dict[str, Callable[[str], Platform]] = {
    ".toml": read_toml_machine,
    ".conf": read_slurm,
    ".config": read_accasim_machine,
    ".json": read_accasim_machine,
}

#: A property of SimGrid's that makes a host part of a node.
_NODE_PROPERTY = re.compile(
    rb"""id\s*=\s*["'](?:%b)["']""" % b"|".join(name.encode() for name in NODE_PROPERTIES)
)


def may_have_nodes(path: str) -> bool:
    """Whether a file may describe nodes, as far as a glance tells; most platforms of SimGrid do not."""
    if Path(path).suffix.lower() in READERS:
        return True
    try:
        return Path(path).is_file() and _NODE_PROPERTY.search(Path(path).read_bytes()) is not None
    except OSError:
        return False


def reader_of(path: str) -> Callable[[str], Platform] | None:
    """The function that reads a file of this name, if it describes nodes."""
    return READERS.get(Path(path).suffix.lower())
