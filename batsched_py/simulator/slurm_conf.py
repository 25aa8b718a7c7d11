"""Machines of Slurm: the ``NodeName`` and ``PartitionName`` lines of a ``slurm.conf``.

A node has its ``CPUs`` (or as many as its sockets, cores and threads make), its ``RealMemory``, its ``Gres``,
its ``Features`` and its ``Weight``. A file ``topology.conf`` beside it says which switch a node is behind.

Nothing in a file is executed, and a file that is wrong somewhere is read to its end: each mistake is reported
with its place.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from os.path import realpath
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.hosts import MOST_NODES, compact, expand
from batsched_py.protocol.shown import shown
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.platform import Platform

#: Is told where a mistake is, and what is wrong.
Report = Callable[[str, str], None]

_SETTING = re.compile(r'\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*(?:"([^"]*)"|([^\s"]*))(?=\s|$)')
_INCLUDE = re.compile(r"(?i)include\s+(\S+)")
_COMMENT = re.compile(r"(?<!\\)#.*")

#: So deep may files include others, and so many may there be in all.
_DEEPEST, _MOST_FILES = 50, 10_000


class ConfLine(Struct, frozen=True):
    """A line with at least one setting."""

    where: str
    settings: dict[str, str]
    """By their names in small letters, in which Slurm does not tell letters apart."""
    names: dict[str, str]
    """How these are written in the file."""

    def get(self, name: str, default: str = "") -> str:
        """What the line says for a name in small letters."""
        return self.settings.get(name, default)


def refuse(where: str, what: str) -> None:
    """Report a mistake by stopping at it."""
    raise InputError(f"{where}: {what}")


def read_conf(path: Path, report: Report = refuse) -> list[ConfLine]:
    """The lines of a configuration and of the files that it includes, in the order in which they count."""
    return list(_Files(report).lines(path, f"{path}"))


def conf_line(text: str, where: str, report: Report = refuse) -> ConfLine | None:
    """A single line that stands in no file; none if it has no setting."""
    return _Files(report).settings(where, text)


class _Files:
    """Reads files that include others."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._open: list[str] = []
        """The files that are being read, each included by the one before it."""
        self._read = 0
        """How many files were read."""
        self._cluster = ""

    def lines(self, path: Path, named_at: str) -> Iterator[ConfLine]:
        """The lines of a file that is named at a place."""
        if "\0" in str(path):
            self._report(named_at, "no file has such a name")
            return
        file_itself = realpath(path)
        if file_itself in self._open:
            self._report(named_at, "this file includes itself")
            return
        if len(self._open) >= _DEEPEST:
            self._report(named_at, f"files include each other more than {_DEEPEST} deep")
            return
        self._read += 1
        if self._read > _MOST_FILES:
            if self._read == _MOST_FILES + 1:
                self._report(named_at, f"more than {_MOST_FILES} files are included")
            return
        try:
            text = read_input(path).decode("utf-8-sig")
        except OSError as error:
            file = "this file" if named_at == str(path) else path
            self._report(named_at, f"cannot read {file} ({error.strerror})")
            return
        except UnicodeDecodeError as error:
            self._report(f"{path}, byte {error.start}", "is no text in UTF-8")
            return
        self._open.append(file_itself)
        for place, line in self._joined(path, text):
            where = f"{path}, {place}"
            if included := _INCLUDE.fullmatch(line):
                name = included[1].replace("%c", self._cluster)
                yield from self.lines(path.parent / name, where)
            elif line and (found := self.settings(where, line)) is not None:
                self._cluster = found.get("clustername", self._cluster)
                yield found
        self._open.pop()

    def _joined(self, path: Path, text: str) -> Iterator[tuple[str, str]]:
        """The lines without comments, each with its place; those that a backslash continues are joined."""
        joined, first = "", 0
        lines = text.splitlines()
        for number, line in enumerate(lines, start=1):
            line = _COMMENT.sub("", line).rstrip()
            first = first or number
            if line.endswith("\\") and number < len(lines):
                joined += line[:-1]
                continue
            if line.endswith("\\"):
                self._report(f"{path}, line {number}", "the file ends where the line goes on")
            else:
                place = f"line {number}" if first == number else f"lines {first}-{number}"
                yield place, (joined + line).strip()
            joined, first = "", 0

    def settings(self, where: str, line: str) -> ConfLine | None:
        """What a line says."""
        settings: dict[str, str] = {}
        names: dict[str, str] = {}
        place = 0
        while match := _SETTING.match(line, place):
            name = match[1].lower()
            if name in settings:
                self._report(where, f"{match[1]} is given twice in one line")
            settings[name] = match[3] if match[2] is None else match[2]
            names[name] = match[1]
            place = match.end()
        rest = line[place:].strip()
        if '"' in rest and rest.count('"') % 2:
            self._report(where, f"{shown(rest)} has no second quotation mark")
        elif rest:
            self._report(where, f"{shown(rest)} is not of the form Name=Value")
        return ConfLine(where, settings, names) if settings else None


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
    found = [line for line in lines if "nodeset" not in line.settings]
    for place, line in enumerate(found):
        if sets and "partitionname" in line.settings and "nodes" in line.settings:
            parts = re.findall(r"(?:[^,\[]|\[[^\]]*\])+", line.get("nodes"))
            nodes = ",".join(compact(sets[part]) if part in sets else part for part in parts)
            found[place] = replace(line, settings=line.settings | {"nodes": nodes})
    return found


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
    topology = path.with_name("topology.conf")
    beside = read_conf(topology, report) if topology.exists() else []
    switches = _members(beside, "switchname", report)
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
            for name in names:
                if name in known:
                    report(line.where, f"there are two nodes called {shown(name)}")
                    break
                known.add(name)
            yield line.where, defaults | line.settings, names


def _partitions_of(
    known: Sequence[str], partitions: Mapping[str, _Members], report: Report
) -> dict[str, list[str]]:
    """The partitions of each node, in their order."""
    found: dict[str, list[str]] = {name: [] for name in known}
    for partition, members in partitions.items():
        everywhere = any(name.upper() == "ALL" for name in members.nodes)
        names = dict.fromkeys(known if everywhere else members.nodes)
        for name in filter(found.__contains__, names):
            found[name].append(partition)
        if unknown := [name for name in names if name not in found]:
            what = f"partition {shown(partition)} has node {shown(unknown[0])}, which has no NodeName"
            report(members.where, what)
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
    resources = {"memory": _whole(settings, "realmemory") * 1024} if "realmemory" in settings else {}
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
        return _whole(settings, "cpus" if "cpus" in settings else "procs")
    sockets = ["sockets"] if "sockets" in settings else ["socketsperboard", "boards"]
    return prod(_whole(settings, name) for name in (*sockets, "corespersocket", "threadspercore"))


def _whole(settings: dict[str, str], name: str) -> int:
    text = settings.get(name, "1")
    if not (text.isascii() and text.isdigit() and len(text) < 11 and 0 < int(text) < 1 << 32):
        raise ValueError(f"{name}={shown(text)} is not a positive whole number")
    return int(text)
