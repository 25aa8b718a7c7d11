"""Machines of Slurm: the ``NodeName`` and ``PartitionName`` lines of a ``slurm.conf``.

A node has its ``CPUs`` (or as many as its sockets, cores and threads make), its ``RealMemory``, its ``Gres``,
its ``Features`` and its ``Weight``. A file ``topology.conf`` beside it says which switch a node is behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from batsched_py.errors import InputError
from batsched_py.simulator.machine_files.hostlist import expand
from batsched_py.simulator.machine_files.nodes import NodeKind, platform_of
from batsched_py.simulator.platform import Platform

#: A line of a configuration: its settings, in small letters, with where it stands.
Line = tuple[str, dict[str, str]]

_SETTING = re.compile(r'([A-Za-z0-9_]+)=("[^"]*"|\S*)')


def read_slurm_machine(path: str | Path) -> Platform:
    """The machine that a ``slurm.conf`` describes."""
    lines = list(read_lines(Path(path)))
    partitions = _members(lines, "partitionname", "nodes")
    switches: dict[str, list[str]] = {}
    topology = Path(path).with_name("topology.conf")
    if topology.exists():
        switches = _members(list(read_lines(topology)), "switchname", "nodes")
    switch_of = {node: switch for switch, nodes in switches.items() for node in nodes}
    kinds: list[NodeKind] = []
    defaults: dict[str, str] = {}
    for where, settings in lines:
        if settings.get("nodename", "").upper() == "DEFAULT":
            defaults |= settings
        elif "nodename" in settings:
            try:
                kinds += _kinds(defaults | settings, partitions, switch_of)
            except ValueError as error:
                raise InputError(f"{where}: {error}") from None
    if not kinds:
        raise InputError(f"{path}: there is no line NodeName=... with the nodes of the machine")
    known = {name for kind in kinds for name in kind.names}
    for partition, nodes in partitions.items():
        if "ALL" not in nodes and (unknown := [node for node in nodes if node not in known]):
            raise InputError(
                f"{path}: partition {partition!r} has node {unknown[0]!r}, which has no NodeName"
            )
    return platform_of(kinds, {}, str(path))


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a configuration and of the files that it includes, each with its settings."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot read this file ({error.strerror})") from None
    number = 0
    joined = ""
    for line in text.splitlines():
        number += 1
        line = re.sub(r"(?<!\\)#.*", "", line).strip()
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        line, joined = joined + line, ""
        included = re.fullmatch(r"(?i)include\s+(\S+)", line)
        if included is not None:
            other = path.parent / included[1]
            if other.resolve() == path.resolve():
                raise InputError(f"{path}, line {number}: this file includes itself")
            yield from read_lines(other)
        elif line:
            yield (
                f"{path}, line {number}",
                {name.lower(): value.strip('"') for name, value in _SETTING.findall(line)},
            )


def _members(lines: list[Line], kind: str, member: str) -> dict[str, list[str]]:
    """The nodes of each partition or switch."""
    members: dict[str, list[str]] = {}
    for where, settings in lines:
        if kind in settings and settings[kind].upper() != "DEFAULT" and member in settings:
            try:
                members[settings[kind]] = expand(settings[member])
            except ValueError as error:
                raise InputError(f"{where}: {error}") from None
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
