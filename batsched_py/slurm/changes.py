"""Changes, a line each: as in ``slurm.conf``, as for ``scontrol create``, or a field of ``slurm.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from batsched_py.campaign.plan import to_toml
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import compact, expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.simulator.slurm_conf import conf_line
from batsched_py.slurm.conf import changed as changed_by_line
from batsched_py.slurm.policy.settings import UNUSED, Configuration, Partition, is_unused
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.slurm.reservations import reservation_of, written_out

_FIELD = re.compile(r"([a-z_]+)\.(?:([^=]+)\.)?([a-z_]+)\s*=\s*(.+)")

#: The tables of which there are several, and by which fields one is found.
_LISTS = {
    **dict.fromkeys(("partitions", "qos", "reservations"), ("name",)),
    "associations": ("account", "user"),
    "nodes": ("nodes",),
}


#: The tables to which a field of a name that is not there adds an entry.
_MAY_BE_NEW = ("qos", "associations")


def changed(configuration: Configuration, text: str) -> Configuration:
    """The configuration with a change.

    ``PriorityWeightAge=5000``, ``SchedulerParameters=bf_interval=60`` and ``PartitionName=short MaxTime=30``
    are lines of ``slurm.conf``; ``ReservationName=upkeep StartTime=now Duration=60 Nodes=ALL`` is one of
    ``scontrol create``. ``scheduling.bf_interval=60``, ``partitions.short.max_time=1800`` and
    ``associations.physics/ada.shares=10`` are fields of ``slurm.toml``.
    """
    made = with_setting(configuration, text)
    if made == configuration:
        raise InputError(f"--set {shown(text)}: this would change nothing, for it is so already")
    return made


def with_setting(configuration: Configuration, text: str) -> Configuration:
    """The configuration in which a setting has a value, which it may have already."""
    where = f"--set {shown(text)}"
    if text.strip().lower().startswith("reservationname="):
        return _with_reservation(configuration, where, text)
    if match := _FIELD.fullmatch(text.strip()):
        return _with_field(configuration, where, *match.groups())
    return _with_line(configuration, where, text)


def _with_reservation(configuration: Configuration, where: str, text: str) -> Configuration:
    """Another reservation, or another one of a name."""
    findings = Findings()
    clock = Clock(float(configuration.origin) if configuration.start else None)
    made = reservation_of(where, text, clock, findings)
    findings.check()
    for finding in findings.unmodelled:
        raise InputError(str(finding))
    assert made is not None
    single = written_out(made, None)
    names = {each.name for each in single}
    others = [each for each in configuration.reservations if each.name not in names]
    return replace(configuration, reservations=(*others, *single))


def _with_line(configuration: Configuration, where: str, text: str) -> Configuration:
    findings = Findings()
    line = conf_line(text, where, findings.mistake)
    findings.check()
    if line is None:
        raise InputError(f"{where}: is not of the form Name=Value")
    made = changed_by_line(configuration, line, findings)
    for finding in findings.unmodelled + findings.without_effect:
        raise InputError(f"{finding}: this would change nothing here")
    return made


def _with_field(
    configuration: Configuration, where: str, table: str, name: str | None, field: str, written: str
) -> Configuration:
    """A field of a table, or of the entry of a name in a list of tables, gets a value."""
    if table in UNUSED and is_unused(table, field):
        raise InputError(f"{where}: this is not modelled, so it would change nothing here")
    content: dict[str, Any] = msgspec.to_builtins(configuration)
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        value = written
    if table in _LISTS:
        entries = {
            "/".join(filter(None, (entry.get(key, "") for key in _LISTS[table]))): entry
            for entry in reversed(content.get(table, ()))
        }
        if name and name not in entries and table in _MAY_BE_NEW:
            keys = dict(zip(_LISTS[table], name.split("/", 1), strict=False))
            content[table] = [*content.get(table, ()), keys]
            entries[name] = content[table][-1]
        if name not in entries:
            known = ", ".join(map(shown_name, reversed(entries))) or "none"
            raise InputError(f"{where}: there is no {shown(name or '')} in {table}; there are {known}")
        entries[name][field] = value
    elif name is not None or table not in type(configuration).__struct_fields__:
        raise InputError(f"{where}: there is no table {shown(table if name is None else f'{table}.{name}')}")
    else:
        content.setdefault(table, {})[field] = value
    try:
        return msgspec.convert(content, Configuration)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from None


def with_partitions(platform: str, partitions: Sequence[Partition]) -> str:
    """The text of a platform whose nodes are in these partitions, as far as it names them."""
    content = tomllib.loads(platform)
    members = {each.name: frozenset(expand(each.nodes)) for each in partitions}
    whole = {each.name for each in partitions if each.nodes.upper() == "ALL"}
    nodes = []
    for table in content["nodes"]:
        for name in expand(table["names"]) if "names" in table else [None]:
            named = [each.name for each in partitions if each.name in whole or name in members[each.name]]
            rest = {key: value for key, value in table.items() if key not in ("names", "partitions")}
            told = table.get("partitions", []) if name is None else named
            nodes.append((name, rest | ({"partitions": told} if told else {})))
    made = []
    for table, alike in groupby(nodes, key=itemgetter(1)):
        names = [name for name, _ in alike if name is not None]
        made.append({"names": compact(names), **table} if names else table)
    content["nodes"] = made
    return to_toml(content)


_MORE_NODES = re.compile(r"\+\s*([1-9][0-9]{0,5}) nodes? like (\S+)")


def with_more_nodes(
    platform: str, configuration: Configuration, change: str
) -> tuple[str, Configuration] | None:
    """A platform and a configuration with ``+10 nodes like c1``; nothing if the change is no such one.

    The new nodes are numbered on, and are wherever the one is that they are like.
    """
    if (match := _MORE_NODES.fullmatch(change.strip())) is None:
        return None
    count, like = int(match[1]), match[2]
    content = tomllib.loads(platform)
    tables = {name: table for table in content["nodes"] for name in expand(table.get("names", ""))}
    if like not in tables:
        raise InputError(f"--set {shown(change)}: there is no node {shown(like)}")
    prefix = like.rstrip("0123456789")
    numbers = [name.removeprefix(prefix) for name in tables if name.startswith(prefix)]
    last = max((int(number) for number in numbers if number.isdecimal()), default=0)
    width = len(like) - len(prefix)
    names = [f"{prefix}{last + place:0{width}}" for place in range(1, count + 1)]
    content["nodes"].append({**tables[like], "names": compact(names)})

    def grown(nodes: str) -> str:
        return f"{nodes},{compact(names)}" if nodes.upper() != "ALL" and like in expand(nodes) else nodes

    return to_toml(content), replace(
        configuration,
        partitions=tuple(replace(each, nodes=grown(each.nodes)) for each in configuration.partitions),
        nodes=tuple(replace(each, nodes=grown(each.nodes)) for each in configuration.nodes),
        switches=tuple(replace(each, nodes=grown(each.nodes)) for each in configuration.switches),
    )
