"""Changes, a line each: as in ``slurm.conf``, as for ``scontrol create``, or a field of ``slurm.toml``.

Jobs may ask for more time than their partitions allow after a change; here is what their users do then.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import ceil, inf
from operator import itemgetter
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from batsched_py.campaign.plan import to_toml
from batsched_py.errors import InputError
from batsched_py.protocol.dependencies import AFTER, ARRAY
from batsched_py.protocol.hosts import compact, expand
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.simulator.slurm_conf import conf_line
from batsched_py.slurm.conf import changed as changed_by_line
from batsched_py.slurm.jobs import LONGER, NEARLY
from batsched_py.slurm.policy.job import FIELD
from batsched_py.slurm.policy.settings import UNUSED, Configuration, Partition, is_unused
from batsched_py.slurm.reading import Clock, Findings
from batsched_py.slurm.reservations import reservation_of, written_out
from batsched_py.workload.dependencies import rewritten
from batsched_py.workload.model import CANCELLED_AFTER, Workload
from batsched_py.workload.swf.conventions import profile_name

_OF_TABLE = re.compile(r"([a-z_]+)\.(?:([^=]+)\.)?([a-z_]+)\s*=\s*(.+)")

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
    if match := _OF_TABLE.fullmatch(text.strip()):
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


#: What users do: they leave their jobs as they are, which then wait for ever; they ask for as much as they
#: may, and what runs for longer is killed; or they split a job into several that run one after another.
Rule = Literal["leave", "shorten", "split"]

#: A part of a job ends so many seconds before its limit, when it has written down how far it is.
CHECKPOINT = 60.0

#: What of a job counts for the first part of it only.
_OF_THE_FIRST = ("id", "begin", "not_before", "runs", "hold", "released")


def fitted(workload: Workload, configuration: Configuration, rule: Rule) -> Workload:
    """The jobs, of which those are changed that ask for more time than all their partitions allow."""
    if rule == "leave":
        return workload
    limits = {each.name: each.max_time for each in configuration.partitions}
    default = [each.name for each in configuration.partitions if each.default]
    profiles: dict[str, Profile] = dict(workload.profiles)
    last: dict[str, str] = {}
    """Of a job in parts, what the last one is called."""
    made: list[Job] = []
    for job in workload.jobs:
        if AFTER in job.extra and last:
            after = rewritten(job.extra[AFTER], lambda name: last.get(name, name))
            job = replace(job, extra=job.extra | {AFTER: after})
        named = job.extra.get("request", {}).get("partitions") or default[-1:]
        most = max((limits[name] for name in named if name in limits), default=inf)
        profile = workload.profiles[job.profile]
        asked = job.extra.get(FIELD, {}).get("time_limit", job.walltime)
        if not most < asked < inf or not isinstance(profile, Delay):
            made.append(job)
        elif rule == "split" and profile.seconds > most - NEARLY and CANCELLED_AFTER not in job.extra:
            parts = _parts(job, profile.seconds, most, profiles)
            last[job.name] = parts[-1].name
            made += parts
        else:
            made.append(_shortened(job, profile.seconds, most, configuration))
    return replace(workload, jobs=made, profiles=profiles, finishes=None)


def _shortened(job: Job, seconds: float, most: float, configuration: Configuration) -> Job:
    """The job with this limit, at which the policy kills it if it runs for as long."""
    fields = {key: value for key, value in job.extra.get(FIELD, {}).items() if key != "time_limit"}
    walltime = most
    if seconds > most - NEARLY:
        fields["time_limit"] = most
        walltime += LONGER + configuration.scheduling.over_time_limit
    return replace(job, walltime=walltime, extra=_with(job.extra, fields))


def _parts(job: Job, seconds: float, most: float, profiles: dict[str, Profile]) -> list[Job]:
    """The parts of a job, each of which begins when the one before it is over."""
    useful = max(most - CHECKPOINT, most / 2)
    fields = {key: value for key, value in job.extra.get(FIELD, {}).items() if key != "time_limit"}
    rest = {key: value for key, value in fields.items() if key not in _OF_THE_FIRST}
    found: list[Job] = []
    for number in range(1, ceil(seconds / useful) + 1):
        run_time = round(min(useful, seconds - useful * (number - 1)), 3)
        name = profile_name(run_time)
        profiles[name] = Delay(seconds=run_time)
        extra = _with(job.extra, fields if number == 1 else rest)
        if found:
            extra = {key: value for key, value in extra.items() if key != ARRAY}
            extra[AFTER] = f"afterany:{found[-1].name}"
        job_id = job.id if number == 1 else f"{job.id}part{number}"
        found.append(replace(job, id=job_id, walltime=most, profile=name, extra=extra))
    return found


def _with(extra: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in extra.items() if key != FIELD}
    return rest | ({FIELD: dict(fields)} if fields else {})
