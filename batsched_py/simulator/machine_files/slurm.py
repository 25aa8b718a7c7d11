"""Machines of Slurm: the ``NodeName`` and ``PartitionName`` lines of a ``slurm.conf``.

A node has its ``CPUs`` (or as many as its sockets, cores and threads make), its ``RealMemory``, its ``Gres``,
its ``Features`` and its ``Weight``. A file ``topology.conf`` beside it says which switch a node is behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.protocol.hosts import MOST_NODES, compact, expand
from batsched_py.protocol.shown import shown
from batsched_py.simulator.machine_files.nodes import NodeKind, platform_of
from batsched_py.simulator.machine_files.slurm_lines import ConfLine, Report, read_conf, refuse
from batsched_py.simulator.platform import Platform

_NODE = re.compile(r"[A-Za-z0-9_.+-]+")
_DETAILS = re.compile(r"\([^)]*\)")
_TYPE = r"(?!no_consume|[0-9]+[kmgtp]?(?:$|:))[a-z0-9_.-]+"
_GRES = re.compile(
    rf"(?P<name>[a-z0-9_.-]+)(?::(?P<type>{_TYPE}))?(?P<free>:no_consume)?"
    r"(?::(?P<count>[0-9]{1,12})(?P<unit>[kmgtp]?))?",
    re.IGNORECASE,
)
_UNITS = " kmgtp"

#: So many names may partitions and switches have in all.
_MOST_NAMES = 4 * MOST_NODES


class Gres(Struct, frozen=True):
    """A resource of a node that can be counted, like ``gpu:a100:4``."""

    name: str
    type: str
    count: int
    is_consumed: bool
    """Whether a job that uses it takes it from others."""


class _Members(Struct, frozen=True):
    """The nodes of a partition, a switch or a set."""

    where: str
    nodes: Sequence[str]


def read_slurm_machine(path: str | Path) -> Platform:
    """The machine that a ``slurm.conf`` describes."""
    lines = with_node_sets(read_conf(Path(path)))
    return platform_of(node_kinds(Path(path), lines), {}, str(path))


def with_node_sets(lines: Sequence[ConfLine], report: Report = refuse) -> list[ConfLine]:
    """The lines, with the nodes of each ``NodeSet`` in place of its name in partitions."""
    sets = {name: list(set_.nodes) for name, set_ in _members(lines, "nodeset", report).items()}
    for line in lines:
        name, wanted = line.get("nodeset"), line.get("feature")
        if name and wanted:
            sets.setdefault(name, []).extend(_with_feature(lines, wanted, report))
    return [
        replace(line, settings=line.settings | {"nodes": _without_sets(line.get("nodes"), sets)})
        if "partitionname" in line.settings and "nodes" in line.settings
        else line
        for line in lines
        if "nodeset" not in line.settings
    ]


def _without_sets(nodes: str, sets: Mapping[str, list[str]]) -> str:
    if not sets:
        return nodes
    parts = re.findall(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    return ",".join(compact(sets[part]) if part in sets else part for part in parts)


def _with_feature(lines: Iterable[ConfLine], feature: str, report: Report) -> list[str]:
    """All nodes that have a feature."""
    found: list[str] = []
    for line in lines:
        features = line.get("features", line.get("feature")).split(",")
        if "nodename" in line.settings and feature in features:
            try:
                found += expand(line.get("nodename"))
            except ValueError as error:
                report(line.where, str(error))
    return found


def node_kinds(
    path: Path, lines: Sequence[ConfLine], report: Report = refuse, typed: bool = False
) -> list[NodeKind]:
    """The nodes of a configuration, of which the lines are known; mistakes are reported.

    If resources are ``typed``, a node with ``gpu:a100:4`` has ``gpu`` and ``gpu:a100``, four of each.
    """
    switches: dict[str, _Members] = {}
    topology = path.with_name("topology.conf")
    if topology.exists():
        switches = _members(read_conf(topology, report), "switchname", report)
    switch_of = {node: name for name, switch in switches.items() for node in switch.nodes}
    described = list(_node_lines(lines, report))
    if not any("nodename" in line.settings for line in lines):
        report(str(path), "there is no line NodeName=... with the nodes of the machine")
    known = [name for _, _, names in described for name in names]
    partitions = _partitions_of(known, _members(lines, "partitionname", report), report)
    kinds: list[NodeKind] = []
    for where, settings, names in described:
        try:
            kinds += _kinds(settings, names, partitions, switch_of, typed)
        except ValueError as error:
            report(where, str(error))
    return kinds


def _node_lines(lines: Iterable[ConfLine], report: Report) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """Where nodes are described, how, with the defaults above, and their names."""
    defaults: dict[str, str] = {}
    known: set[str] = set()
    for line in lines:
        if line.get("nodename").upper() == "DEFAULT":
            defaults |= line.settings
        elif "nodename" in line.settings:
            try:
                names = expand(line.get("nodename"))
            except ValueError as error:
                report(line.where, str(error))
                continue
            if odd := [name for name in names if not _NODE.fullmatch(name)]:
                report(line.where, f"{shown(odd[0])} is not the name of a node")
                continue
            if len(known) + len(names) > MOST_NODES:
                report(line.where, f"there are more than {MOST_NODES} nodes")
                return
            if (twice := _first_twice(names, known)) is not None:
                report(line.where, f"there are two nodes called {shown(twice)}")
            yield line.where, defaults | line.settings, names


def _first_twice(names: Iterable[str], known: set[str]) -> str | None:
    """The first of some names that is known already; those before it are known from now on."""
    for name in names:
        if name in known:
            return name
        known.add(name)
    return None


def _partitions_of(
    known: Sequence[str], partitions: Mapping[str, _Members], report: Report
) -> dict[str, list[str]]:
    """The partitions of each node, in their order."""
    found: dict[str, list[str]] = {name: [] for name in known}
    for partition, members in partitions.items():
        everywhere = any(name.upper() == "ALL" for name in members.nodes)
        unknown = []
        for name in dict.fromkeys(known if everywhere else members.nodes):
            if name in found:
                found[name].append(partition)
            else:
                unknown.append(name)
        if unknown:
            report(
                members.where,
                f"partition {shown(partition)} has node {shown(unknown[0])}, which has no NodeName",
            )
    return found


def _members(lines: Iterable[ConfLine], kind: str, report: Report) -> dict[str, _Members]:
    """The nodes of each partition, switch or set; those of ``DEFAULT`` are of all that name none."""
    members: dict[str, _Members] = {}
    count, default = 0, ""
    for line in lines:
        if kind not in line.settings:
            continue
        if line.get(kind).upper() == "DEFAULT":
            default = line.get("nodes", default)
            continue
        if nodes := line.get("nodes", default):
            try:
                members[line.get(kind)] = _Members(line.where, expand(nodes))
            except ValueError as error:
                report(line.where, str(error))
                continue
            count += len(members[line.get(kind)].nodes)
            if count > _MOST_NAMES:
                report(line.where, f"partitions name more than {_MOST_NAMES} nodes in all")
                return {}
    return members


def _kinds(
    settings: dict[str, str],
    names: Sequence[str],
    partitions: Mapping[str, Sequence[str]],
    switch_of: Mapping[str, str],
    typed: bool,
) -> Iterator[NodeKind]:
    """The nodes of a line; those of other partitions or switches are kinds of their own."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for name in names:
        groups.setdefault((tuple(partitions[name]), switch_of.get(name, "")), []).append(name)
    resources = {"memory": _whole(settings, "realmemory", 1) * 1024} if "realmemory" in settings else {}
    for gres in read_gres(settings.get("gres", "")):
        called = [gres.name, f"{gres.name}:{gres.type}"] if typed and gres.type else [gres.name]
        for name in called if gres.is_consumed and gres.count else ():
            resources[name] = resources.get(name, 0) + gres.count
    features = settings.get("features", settings.get("feature", ""))
    for (belongs, switch), group in groups.items():
        yield NodeKind(
            group,
            _cores(settings),
            resources,
            list(filter(None, features.split(","))),
            [switch] * len(group) if switch else (),
            belongs,
        )


def read_gres(text: str) -> list[Gres]:
    """The resources in a setting ``Gres``; raises ``ValueError``.

    >>> [(gres.name, gres.type, gres.count) for gres in read_gres("gpu:a100:4(S:0,1),gpu:2,shard:8K")]
    [('gpu', 'a100', 4), ('gpu', '', 2), ('shard', '', 8192)]
    """
    found = []
    for part in filter(None, _DETAILS.sub("", text).split(",")):
        match = _GRES.fullmatch(part)
        if match is None or (match["type"] and match["count"] is None):
            raise ValueError(f"Gres={shown(part)} does not end in a number of them")
        count = int(match["count"] or 1) * 1024 ** _UNITS.index((match["unit"] or " ").lower())
        found.append(Gres(match["name"], match["type"] or "", count, match["free"] is None))
    return found


def _cores(settings: dict[str, str]) -> int:
    if "cpus" in settings or "procs" in settings:
        return _whole(settings, "cpus" if "cpus" in settings else "procs", 1)
    sockets = _whole(settings, "sockets", 1)
    if "sockets" not in settings:
        sockets = _whole(settings, "socketsperboard", 1) * _whole(settings, "boards", 1)
    return sockets * _whole(settings, "corespersocket", 1) * _whole(settings, "threadspercore", 1)


def _whole(settings: dict[str, str], name: str, default: int) -> int:
    text = settings.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 11 and 0 < int(text) < 1 << 32):
        raise ValueError(f"{name}={shown(text)} is not a positive whole number")
    return int(text)
