"""The settings of a ``PartitionName`` line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import msgspec

from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.settings.partitions import Partition
from batsched_py.slurm.conf.settings import preempt_mode
from batsched_py.slurm.values import (
    NotModelled,
    count,
    limit,
    memory_limit,
    names,
    seconds,
    time_limit,
    weights,
    yes_no,
)

_OVERSUBSCRIBE = re.compile(r"(NO|EXCLUSIVE|YES|FORCE)(?::([1-9][0-9]{0,5}))?", re.IGNORECASE)


def _over_subscribe(text: str) -> dict[str, Any]:
    match = _OVERSUBSCRIBE.fullmatch(text)
    if match is None:
        raise ValueError(f"{shown(text)} is none of NO, EXCLUSIVE, YES and FORCE")
    jobs = {"over_subscribe_jobs": int(match[2])} if match[2] else {}
    values = {"over_subscribe": match[1].lower(), **jobs}
    if match[1].upper() == "FORCE" and match[2] != "1":
        raise NotModelled("jobs do not share processors", values)
    return values


def _at(field: str, read: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    def values(text: str) -> dict[str, Any]:
        return {field: read(text)}

    return values


def _priority(text: str) -> dict[str, Any]:
    return {"priority_tier": count(text), "priority_job_factor": count(text)}


def _default_time(text: str) -> float | None:
    """Without a limit it is the limit of the partition."""
    time = time_limit(text)
    return None if time == inf else time


#: By their names in small letters.
SETTINGS: dict[str, Callable[[str], dict[str, Any]]] = {
    "partitionname": _at("name", str),
    "nodes": _at("nodes", str),
    "default": _at("default", yes_no),
    "state": _at("state", str.lower),
    "maxtime": _at("max_time", time_limit),
    "defaulttime": _at("default_time", _default_time),
    "minnodes": _at("min_nodes", count),
    "maxnodes": _at("max_nodes", limit),
    "maxcpuspernode": _at("max_cpus_per_node", limit),
    "prioritytier": _at("priority_tier", count),
    "priorityjobfactor": _at("priority_job_factor", count),
    "priority": _priority,
    "oversubscribe": _over_subscribe,
    "shared": _over_subscribe,
    "lln": _at("lln", yes_no),
    "exclusiveuser": _at("exclusive_user", yes_no),
    "reqresv": _at("req_resv", yes_no),
    "rootonly": _at("root_only", yes_no),
    "preemptmode": _at("preempt_mode", preempt_mode),
    "gracetime": _at("grace_time", seconds),
    "overtimelimit": _at("over_time_limit", time_limit),
    "qos": _at("qos", lambda text: "" if text.upper() == "N/A" else text),
    "allowaccounts": _at("allow_accounts", names),
    "denyaccounts": _at("deny_accounts", names),
    "allowqos": _at("allow_qos", names),
    "denyqos": _at("deny_qos", names),
    "defmempercpu": _at("def_mem_per_cpu", memory_limit),
    "defmempernode": _at("def_mem_per_node", memory_limit),
    "defmempergpu": _at("def_mem_per_gpu", memory_limit),
    "maxmempercpu": _at("max_mem_per_cpu", memory_limit),
    "maxmempernode": _at("max_mem_per_node", memory_limit),
    "defcpupergpu": _at("def_cpu_per_gpu", count),
    "tresbillingweights": _at("tres_billing_weights", weights),
}

#: These may shape schedules.
UNMODELLED = frozenset(
    "allowgroups allocnodes alternate disablerootjobs selecttypeparameters suspendtime suspendtimeout "
    "resumetimeout jobdefaults".split()
)
WITHOUT_EFFECT = frozenset("hidden cpubind".split())


def partition_of(values: Mapping[str, Any]) -> Partition:
    """The partition with these values of fields; raises ``ValueError``."""
    given = {name: value for name, value in values.items() if value is not None}
    return msgspec.convert(given, Partition)
