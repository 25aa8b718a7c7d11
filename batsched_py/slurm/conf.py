"""A ``slurm.conf`` and what it includes, as a configuration and a machine."""

import re
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.simulator.machine_files import KEYS, NodeKind
from batsched_py.simulator.platform import MOST_HOSTS
from batsched_py.simulator.slurm_conf import ConfLine, node_kinds, read_conf, read_gres, with_node_sets
from batsched_py.slurm import conf_settings
from batsched_py.slurm.conf_settings import SETTINGS, Parameter, Values
from batsched_py.slurm.policy.settings import (
    Configuration,
    NodeSettings,
    Partition,
    PowerSaving,
    Preemption,
    Priority,
    Scheduling,
    Selection,
    Switch,
    is_unused,
)
from batsched_py.slurm.reading import Findings, count

_TABLES: dict[str, type[Struct]] = {
    "scheduling": Scheduling,
    "selection": Selection,
    "priority": Priority,
    "preemption": Preemption,
    "power": PowerSaving,
    "": Configuration,
}
#: Slurm takes no notice of age and usage if it has no database, and computes a priority once only.
_WITHOUT_DATABASE = {"weight_age": 0, "weight_fairshare": 0, "calc_period": inf}
#: The versions of Slurm whose settings are known.
VERSIONS = "22.05 to 24.11"
STATES = {
    "UNKNOWN": "up", "IDLE": "up", "UP": "up", "CLOUD": "up", "DOWN": "down", "FAIL": "down",
    "FAILING": "drain", "DRAIN": "drain", "FUTURE": "down",
}  # fmt: skip
#: Nodes that are made, or started, while a cluster runs.
AS_TOLD_IN_THE_FILE = ("CLOUD", "FUTURE")
_LICENCE = re.compile(r"([A-Za-z0-9_.@+-]+?)(?::([0-9]{1,9}))?")


class Cluster(Struct):
    """What a ``slurm.conf`` describes."""

    configuration: Configuration
    machine: list[NodeKind]
    licences: dict[str, int]


def read_cluster(path: Path, findings: Findings, scheduling: Mapping[str, Any] | None = None) -> Cluster:
    """The cluster of a ``slurm.conf``; what is wrong with it and what is not modelled is noted.

    Values of ``scheduling`` hold where the file does not give others.
    """
    lines = read_conf(path, findings.mistake)
    if not lines:
        findings.check()
    lines = with_node_sets(lines, findings.mistake)
    reader = _Reader(findings, scheduling=scheduling)
    for line in lines:
        reader.take(line)
    if (beside := path.with_name("topology.conf")).is_file():
        for line in read_conf(beside, findings.mistake):
            reader.take_switch(line)
    machine = node_kinds(path, lines, findings.mistake, typed=True)
    if not reader.partitions:
        findings.mistake(str(path), "there is no line PartitionName=... with a partition")
    for name in sorted({name for kind in machine for name in kind.resources} & KEYS):
        findings.mistake(str(path), f"a resource (Gres) cannot be called {shown(name)} here")
    if sum(len(kind.names) * kind.cores for kind in machine) > MOST_HOSTS:
        findings.mistake(str(path), f"the machine has more than {MOST_HOSTS} cores")
    findings.check()
    return Cluster(reader.configuration(), machine, reader.licences)


def changed(known: Configuration, line: ConfLine, findings: Findings) -> Configuration:
    """A configuration with one more line of a ``slurm.conf``.

    A partition that is there keeps what the line does not say, and so do the options of
    ``SchedulerParameters``.
    """
    if "nodename" in line.settings:
        findings.mistake(line.where, "nodes are changed in platform.toml, in a copy of the scenario")
    reader = _Reader(findings, known)
    reader.take(line)
    findings.check()
    made = reader.configuration()
    rest = ("groups", "nodes", "qos", "associations", "reservations", "start")
    return replace(made, **{name: getattr(known, name) for name in rest})


class _Reader:
    """Takes lines, one after the other; a setting that comes again replaces the former one.

    It begins with what is ``known``, if anything is.
    """

    def __init__(
        self,
        findings: Findings,
        known: Configuration | None = None,
        scheduling: Mapping[str, Any] | None = None,
    ) -> None:
        self._findings = findings
        self._values: dict[str, dict[str, Any]] = {table: {} for table in _TABLES}
        self._known: dict[str, Partition] = {}
        if known is not None:
            self._values = {table: asdict(getattr(known, table)) for table in _TABLES if table}
            self._values[""] = {"cluster": known.cluster, "enforce": known.enforce}
            self._known = {each.name: each for each in known.partitions}
        self._values["scheduling"] |= scheduling or {}
        self._partition_defaults: Values = {}
        self._node_defaults: dict[str, str] = {}
        self._nodes: list[NodeSettings] = []
        self._switches: list[Switch] = [] if known is None else list(known.switches)
        self.partitions: dict[str, Partition] = dict(self._known)
        self.licences: dict[str, int] = {}
        self._has_database = known is not None
        self._given_at: dict[str, str] = {}
        """Where each value was given."""
        self._settings_at: dict[str, str] = {}
        """Where each setting was given."""

    def take(self, line: ConfLine) -> None:
        """Take what a line says."""
        if "partitionname" in line.settings:
            self._partition(line)
        elif "nodename" in line.settings:
            self._node_line(line)
        elif (first := next(iter(line.settings))) in ("downnodes", "frontendname"):
            self._findings.left_out(line.where, f"{line.names[first]} is not modelled")
        else:
            for name, text in line.settings.items():
                self._setting(line, name, text)

    def take_switch(self, line: ConfLine) -> None:
        """Take a line of a ``topology.conf``."""
        if "switchname" not in line.settings:
            self._findings.left_out(line.where, f"{next(iter(line.names.values()))} is not modelled")
            return
        below = tuple(expand(line.get("switches")))
        for name in expand(line.get("switchname")):
            self._switches.append(Switch(name, line.get("nodes"), below))

    def configuration(self) -> Configuration:
        """The configuration of all lines; each value has been checked."""
        selection = self._values["selection"]
        if selection.get("type") == "cons_tres" and "consumed" not in selection:
            selection["memory"] = True
        if not self._has_database:
            self._values["priority"] |= _WITHOUT_DATABASE
            for place, where in self._given_at.items():
                if place in ("priority.weight_age", "priority.weight_fairshare"):
                    self._findings.of_no_effect(where, f"{place} counts with a database only, as in Slurm")
        content: dict[str, Any] = {
            table: msgspec.convert(self._values[table], kind) for table, kind in _TABLES.items() if table
        }
        if "power.suspend_time" in self._given_at:
            self._note_power(self._given_at["power.suspend_time"], content["power"])
        nodes, partitions = tuple(self._nodes), tuple(self.partitions.values())
        switches = tuple(self._switches) if content["selection"].topology == "tree" else ()
        made = Configuration(**self._values[""], **content, nodes=nodes, partitions=partitions)
        return replace(made, switches=switches)

    def _note_power(self, where: str, power: PowerSaving) -> None:
        """Note what a ``slurm.conf`` does not tell of nodes that sleep."""
        told = "what nodes draw and how long they take is not told; give them sleep_watts and the like"
        if power.is_on:
            self._findings.left_out(where, f"SuspendTime: {told}")
        elif power.suspend_time < inf:
            self._findings.of_no_effect(where, "SuspendTime without SuspendProgram and ResumeProgram")

    def _setting(self, line: ConfLine, name: str, text: str) -> None:
        written = line.names[name]
        options = conf_settings.OPTIONS.get(name)
        if name in SETTINGS or options is not None:
            if name in self._settings_at:
                self._findings.of_no_effect(self._settings_at[name], f"{written}, for it is given again")
                for table, field, _ in (options or {}).values():
                    if self._given_at.get(f"{table}.{field}") == self._settings_at[name]:
                        del self._values[table][field]  # Slurm takes the last line alone
            self._settings_at[name] = line.where
        if options is not None:
            self._parameters(line.where, text, options)
        elif name == "accountingstoragetype":
            self._has_database = text.lower().endswith("slurmdbd")
        elif name == "epilog":
            told = "how long it takes is not told; write scheduling.epilog_time, in seconds, into slurm.toml"
            self._findings.left_out(line.where, f"{written}: {told}")
        elif name == "licenses":
            for part in filter(None, text.split(",")):
                if match := _LICENCE.fullmatch(part):
                    self.licences[match[1]] = int(match[2] or 1)
                else:
                    what = f"licence {shown(part)} is not of the form NAME:COUNT"
                    self._findings.mistake(line.where, what)
        elif name in SETTINGS:
            what = f"{written}={shown_name(text)}"
            values = self._findings.read(SETTINGS[name], text, line.where, what) or {}
            with self._findings.noting(line.where, f"{what}: "):
                self._check(values, line.where, written)
        else:
            unknown = f"{written}={shown_name(text)} is not known, neither here nor to Slurm {VERSIONS}"
            known = conf_settings.WITHOUT_EFFECT, conf_settings.UNMODELLED
            self._note(line.where, name, written, known, unknown)

    def _note(
        self, where: str, name: str, what: str, known: tuple[frozenset[str], frozenset[str]], unknown: str
    ) -> None:
        """Note a setting that becomes nothing: it is ``known`` to have no effect, not modelled, or new."""
        without_effect, unmodelled = known
        if name in without_effect:
            self._findings.of_no_effect(where, what)
        else:
            self._findings.left_out(where, f"{what} is not modelled" if name in unmodelled else unknown)

    def _check(self, values: Values, where: str, written: str) -> None:
        """Keep values if they are allowed for their fields."""
        for place, value in values.items():
            table, _, field = place.rpartition(".")
            if is_left_out(place, value):
                self._findings.left_out(where, f"{_named(written, field)} is not modelled")
            self._values[table][field] = value
            self._given_at[place] = where

    def _parameters(self, where: str, text: str, options: Mapping[str, Parameter]) -> None:
        """What a line of ``SchedulerParameters`` or ``PreemptParameters`` says."""
        for option in filter(None, text.split(",")):
            name, equals, value = option.partition("=")
            target = options.get(name.strip().lower())
            if target is None:
                unknown = f"{shown_name(name.strip())} is not known, neither here nor to Slurm {VERSIONS}"
                known = conf_settings.PARAMETERS_WITHOUT_EFFECT, conf_settings.PARAMETERS_UNMODELLED
                self._note(where, name.strip().lower(), name.strip(), known, unknown)
                continue
            table, field, read = target
            with self._findings.noting(where, f"{shown_name(option)}: "):
                if (read is None) == bool(equals):
                    raise ValueError("takes no value" if read is None else "needs a value")
                value_read = True if read is None else read(value.strip())
                self._check({f"{table}.{field}": value_read}, where, name.strip())

    def _partition(self, line: ConfLine) -> None:
        values: Values = {}
        usual = Partition(name="")
        for name, text in line.settings.items():
            written = line.names[name]
            if name in conf_settings.PARTITION_SETTINGS:
                read, what = conf_settings.PARTITION_SETTINGS[name], f"{written}={shown_name(text)}"
                found = self._findings.read(read, text, line.where, what) or {}
                for field, value in found.items():
                    if is_unused("partitions", field) and value != getattr(usual, field):
                        what = _named(written, field)
                        self._findings.left_out(line.where, f"{what} of a partition is not modelled")
                values |= found
            elif name not in conf_settings.PARTITION_UNMODELLED or text.upper() not in ("ALL", "NONE", ""):
                known = conf_settings.PARTITION_WITHOUT_EFFECT, conf_settings.PARTITION_UNMODELLED
                what = f"{written} of a partition"
                self._note(line.where, name, what, known, f"{what} is not known")
        if line.get("partitionname").upper() == "DEFAULT":
            self._partition_defaults |= values
            return
        with self._findings.noting(line.where):
            former = self._known.pop(line.get("partitionname"), None)
            # a partition that names no nodes has none
            base = {"nodes": ""} | self._partition_defaults if former is None else asdict(former)
            given = {name: value for name, value in (base | values).items() if value is not None}
            partition = msgspec.convert(given, Partition)
            if partition.name in self.partitions and former is None:
                self._findings.mistake(line.where, f"there are two partitions called {partition.name!r}")
            self.partitions[partition.name] = partition

    def _node_line(self, line: ConfLine) -> None:
        """What the machine does not say of nodes."""
        known = conf_settings.NODE_WITHOUT_EFFECT, conf_settings.NODE_UNMODELLED
        for name in (name for name in line.settings if name not in conf_settings.NODE_KEYS):
            what = f"{line.names[name]} of nodes"
            self._note(line.where, name, what, known, f"{what} is not known")
        with suppress(ValueError):  # a mistake, which the machine tells
            for gres in read_gres(line.get("gres")):
                if not gres.is_consumed:
                    self._findings.left_out(
                        line.where, f"Gres {shown_name(gres.name)}, which is not consumed"
                    )
        if line.get("nodename").upper() == "DEFAULT":
            self._node_defaults |= line.settings
            return
        with self._findings.noting(line.where):
            settings = _node_settings(self._node_defaults | line.settings)
            if (state := line.get("state")).upper() in AS_TOLD_IN_THE_FILE:
                self._findings.left_out(line.where, f"nodes of the state {state} stay {settings.state}")
            if settings != NodeSettings(settings.nodes):
                self._nodes.append(settings)


def is_left_out(place: str, value: Any) -> bool:
    """Whether a value is right for a field, as by ``TABLE.FIELD``, and the policy does not act on it.

    >>> is_left_out("scheduling.bf_busy_nodes", True), is_left_out("priority.favor_small", True)
    (True, False)
    """
    table, _, field = place.rpartition(".")
    msgspec.convert({field: value}, _TABLES[table])
    return bool(table) and is_unused(table, field) and value != getattr(_TABLES[table](), field)


def _named(written: str, field: str) -> str:
    """A setting as it is written, with the field that it becomes if that has another name.

    >>> _named("MaxJobCount", "max_job_count"), _named("SelectTypeParameters", "lln")
    ('MaxJobCount', 'SelectTypeParameters (lln)')
    """
    same = written.lower().replace("_", "") == field.replace("_", "")
    return written if same else f"{written} ({field})"


def _node_settings(settings: Mapping[str, str]) -> NodeSettings:
    def whole(name: str, default: int) -> int:
        try:
            return count(settings[name]) if name in settings else default
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    state = settings.get("state", "UNKNOWN").upper()
    if state not in STATES:
        raise ValueError(f"State={shown(state)}: the twin knows {', '.join(STATES)}")
    threads = whole("threadspercore", 1)
    sockets = whole("sockets", whole("socketsperboard", 1) * whole("boards", 1))
    return msgspec.convert(
        {
            "nodes": settings["nodename"],
            "weight": whole("weight", 1),
            "sockets": sockets,
            "cores_per_socket": whole("corespersocket", 0) if sockets > 1 or threads > 1 else 0,
            "threads_per_core": threads,
            "state": STATES[state],
        },
        NodeSettings,
    )
