"""A change of one line of a configuration, written as in ``slurm.conf`` or as a field of ``slurm.toml``."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import msgspec

from batsched_py.errors import InputError
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.settings.unused import UNUSED, is_unused
from batsched_py.simulator.machine_files.slurm_lines import conf_line
from batsched_py.slurm.conf.read import changed as changed_by_line
from batsched_py.slurm.findings import Findings

_FIELD = re.compile(r"([a-z_]+)\.(?:([^=]+)\.)?([a-z_]+)\s*=\s*(.+)")

#: The tables of which there are several, and by which fields one is found.
_LISTS = {
    "partitions": ("name",),
    "qos": ("name",),
    "reservations": ("name",),
    "associations": ("account", "user"),
    "nodes": ("nodes",),
}


def changed(configuration: Configuration, text: str) -> Configuration:
    """The configuration with a change.

    ``PriorityWeightAge=5000``, ``SchedulerParameters=bf_interval=60`` and ``PartitionName=short MaxTime=30``
    are lines of ``slurm.conf``. ``scheduling.bf_interval=60``, ``partitions.short.max_time=1800`` and
    ``associations.physics/ada.shares=10`` are fields of ``slurm.toml``.
    """
    where = f"--set {shown(text)}"
    if match := _FIELD.fullmatch(text.strip()):
        table, name, field, value = match.groups()
        made = _with_field(configuration, where, (table, name, field), value)
    else:
        made = _with_line(configuration, where, text)
    if made == configuration:
        raise InputError(f"{where}: this would change nothing, for it is so already")
    return made


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
    configuration: Configuration, where: str, place: tuple[str, str | None, str], written: str
) -> Configuration:
    """A field of a table, or of the entry of a name in a list of tables, gets a value."""
    table, name, field = place
    if table in UNUSED and is_unused(table, field):
        raise InputError(f"{where}: this is not modelled, so it would change nothing here")
    content: dict[str, Any] = msgspec.to_builtins(configuration)
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        value = written
    if table in _LISTS:
        entries = [dict(entry) for entry in content.get(table, ())]
        found = [entry for entry in entries if name == _name(entry, table)]
        if not found:
            known = ", ".join(shown_name(_name(entry, table)) for entry in entries) or "none"
            raise InputError(f"{where}: there is no {shown(name or '')} in {table}; there are {known}")
        found[0][field] = value
        content[table] = entries
    elif name is not None or table not in type(configuration).__struct_fields__:
        raise InputError(f"{where}: there is no table {shown(table if name is None else f'{table}.{name}')}")
    else:
        content[table] = {**content.get(table, {}), field: value}
    try:
        return msgspec.convert(content, Configuration)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from None


def _name(entry: dict[str, Any], table: str) -> str:
    return "/".join(filter(None, (entry.get(field, "") for field in _LISTS[table])))
