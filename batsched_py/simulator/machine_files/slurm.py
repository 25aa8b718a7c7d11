"""Machines of Slurm: the ``NodeName`` and ``PartitionName`` lines of a ``slurm.conf``.

A node has its ``CPUs`` (or as many as its sockets, cores and threads make), its ``RealMemory``, its ``Gres``,
its ``Features`` and its ``Weight``. A file ``topology.conf`` beside it says which switch a node is behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from batsched_py.protocol.hostlist import compact, expand
from batsched_py.simulator.machine_files.nodes import NodeKind, platform_of
from batsched_py.simulator.machine_files.slurm_lines import ConfLine, Report, read_conf, refuse
from batsched_py.simulator.platform import Platform


def read_slurm_machine(path: str | Path) -> Platform:
    """The machine that a ``slurm.conf`` describes."""
    lines = with_node_sets(read_conf(Path(path)))
    return platform_of(node_kinds(Path(path), lines), {}, str(path))


def with_node_sets(lines: Sequence[ConfLine], report: Report = refuse) -> list[ConfLine]:
    """The lines, with the nodes of each ``NodeSet`` in place of its name in partitions."""
    sets = _members(lines, "nodeset", "nodes", report)
    for line in lines:
        name, wanted = line.get("nodeset"), line.get("feature")
        if name and wanted:
            sets.setdefault(name, []).extend(_with_feature(lines, wanted, report))
    if not sets:
        return list(lines)
    return [
        replace(line, settings=line.settings | {"nodes": _without_sets(line.get("nodes"), sets)})
        if "partitionname" in line.settings and "nodes" in line.settings
        else line
        for line in lines
        if "nodeset" not in line.settings
    ]


def _without_sets(nodes: str, sets: Mapping[str, list[str]]) -> str:
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


def node_kinds(path: Path, lines: Sequence[ConfLine], report: Report = refuse) -> list[NodeKind]:
    """The nodes of a configuration, of which the lines are known; mistakes are reported."""
    partitions = _members(lines, "partitionname", "nodes", report)
    switches: dict[str, list[str]] = {}
    topology = path.with_name("topology.conf")
    if topology.exists():
        switches = _members(read_conf(topology, report), "switchname", "nodes", report)
    switch_of = {node: switch for switch, nodes in switches.items() for node in nodes}
    kinds: list[NodeKind] = []
    defaults: dict[str, str] = {}
    for line in lines:
        if line.get("nodename").upper() == "DEFAULT":
            defaults |= line.settings
        elif "nodename" in line.settings:
            try:
                kinds += _kinds(defaults | line.settings, partitions, switch_of)
            except ValueError as error:
                report(line.where, str(error))
    if not kinds:
        report(str(path), "there is no line NodeName=... with the nodes of the machine")
    known = {name for kind in kinds for name in kind.names}
    for partition, nodes in partitions.items():
        if "ALL" not in nodes and (unknown := [node for node in nodes if node not in known]):
            report(str(path), f"partition {partition!r} has node {unknown[0]!r}, which has no NodeName")
    return kinds


def _members(lines: Iterable[ConfLine], kind: str, member: str, report: Report) -> dict[str, list[str]]:
    """The nodes of each partition or switch."""
    members: dict[str, list[str]] = {}
    for line in lines:
        if kind in line.settings and line.get(kind).upper() != "DEFAULT" and member in line.settings:
            try:
                members[line.get(kind)] = expand(line.get(member))
            except ValueError as error:
                report(line.where, str(error))
    return members


def _kinds(
    settings: dict[str, str], partitions: dict[str, list[str]], switch_of: dict[str, str]
) -> Iterator[NodeKind]:
    """The nodes of a line; those of other partitions or switches are kinds of their own."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for name in expand(settings["nodename"]):
        belongs = tuple(p for p, nodes in partitions.items() if name in nodes or "ALL" in nodes)
        groups.setdefault((belongs, switch_of.get(name, "")), []).append(name)
    resources = {"memory": _whole(settings, "realmemory", 1) * 1024} if "realmemory" in settings else {}
    for part in filter(None, settings.get("gres", "").split(",")):
        name, _, rest = part.partition(":")
        count = re.sub(r"\(.*\)", "", rest).rpartition(":")[2] or "1"
        if not count.isdigit():
            raise ValueError(f"Gres={part!r} does not end in a number of them")
        resources[name] = resources.get(name, 0) + int(count)
    features = settings.get("features", settings.get("feature", ""))
    for (belongs, switch), names in groups.items():
        yield NodeKind(
            names,
            _cores(settings),
            resources,
            list(filter(None, features.split(","))),
            [switch] * len(names) if switch else (),
            belongs,
        )


def _cores(settings: dict[str, str]) -> int:
    if "cpus" in settings:
        return _whole(settings, "cpus", 1)
    sockets = _whole(settings, "sockets", 1) * _whole(settings, "boards", 1)
    return sockets * _whole(settings, "corespersocket", 1) * _whole(settings, "threadspercore", 1)


def _whole(settings: dict[str, str], name: str, default: int) -> int:
    text = settings.get(name, str(default))
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 32):
        raise ValueError(f"{name}={text!r} is not a positive whole number")
    return int(text)
