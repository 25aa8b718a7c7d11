"""The settings of a ``slurm.conf`` that stand alone in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from batsched_py.protocol.shown import shown
from batsched_py.slurm.values import (
    NotModelled,
    count,
    each,
    listed,
    memory_limit,
    names,
    seconds,
    time_limit,
    weights,
    yes_no,
)

#: What a setting becomes: values of fields, by ``TABLE.FIELD``; fields of the whole have no table.
Values = dict[str, Any]


def _at(place: str, read: Callable[[str], Any]) -> Callable[[str], Values]:
    def values(text: str) -> Values:
        return {place: read(text)}

    return values


def _one_of(choices: dict[str, Any], *unmodelled: str) -> Callable[[str], Any]:
    """One of some words, in which capitals do not count; Slurm knows some more."""

    def read(text: str) -> Any:
        if text.lower() in unmodelled:
            raise NotModelled(f"{shown(text)} is not modelled")
        if text.lower() not in choices:
            known = ", ".join(choices)
            raise ValueError(f"{shown(text)} is none that the twin knows: {known}")
        return choices[text.lower()]

    return read


def _plugin(kind: str, *words: str, unmodelled: tuple[str, ...] = (), **others: str) -> Callable[[str], Any]:
    """The name of a plugin, like ``sched/backfill``."""
    known = {f"{kind}/{word}": others.get(word, word) for word in (*words, *others)}
    return _one_of(known, *(f"{kind}/{word}" for word in unmodelled))


#: What each option of ``SelectTypeParameters`` means.
_SELECT: dict[str, Values] = {
    **{
        f"cr_{unit}{memory}": {"selection.consumed": unit, "selection.memory": bool(memory)}
        for unit in ("cpu", "core", "socket")
        for memory in ("", "_memory")
    },
    "cr_memory": {"selection.consumed": "none", "selection.memory": True},
    "cr_lln": {"selection.lln": True},
    "cr_pack_nodes": {},
    "cr_one_task_per_core": {"selection.one_task_per_core": True},
    "cr_core_default_dist_block": {"selection.core_default_dist_block": True},
    "none": {},
}


def _together(words: Iterable[str], read: Callable[[str], Values]) -> Values:
    """The values of several words; what is not modelled does not keep the others from counting."""

    def merged(found: Iterable[Values]) -> Values:
        return {place: value for values in found for place, value in values.items()}

    try:
        return merged(each(words, read))
    except NotModelled as error:
        raise NotModelled(str(error), merged(error.rest)) from None


def _select_parameters(text: str) -> Values:
    return _together(listed(text), _one_of(_SELECT, "other_cons_res", "other_cons_tres"))


def _preempt_mode(text: str) -> Values:
    def read(word: str) -> Values:
        if word.upper() == "WITHIN":
            return {"preemption.within_qos": True}
        return {"preemption.mode": preempt_mode(word)}

    return _together(listed(text), read)


#: How jobs make way; the twin suspends none.
preempt_mode = _one_of({"off": "off", "cancel": "cancel", "requeue": "requeue"}, "suspend", "gang")


def _enforced(text: str) -> tuple[str, ...]:
    """The kinds of enforcement; each brings those that it needs."""
    words = {word.lower() for word in names(text)} - {"nojobs", "nosteps", "none", "0"}
    if {"1", "all", "2"} & words or text.lower() == "all":
        words = words - {"1", "2", "all"} | {"associations", "limits", "qos", "safe"}
    unknown = words - {"associations", "limits", "qos", "safe", "wckeys"}
    if unknown:
        raise ValueError(f"{shown(sorted(unknown)[0])} is none of associations, limits, qos and safe")
    if words & {"limits", "qos", "safe"}:
        words.add("associations")
    if "safe" in words:
        words.add("limits")
    return tuple(word for word in ("associations", "limits", "qos", "safe") if word in words)


def _flags(text: str) -> tuple[str, ...]:
    words = (word.lower() for word in names(text))
    return tuple(word for word in words if word not in ("fair_tree", "none"))


#: By their names in small letters.
SETTINGS: dict[str, Callable[[str], Values]] = {
    "clustername": _at("cluster", str),
    "accountingstorageenforce": _at("enforce", _enforced),
    "schedulertype": _at("scheduling.type", _plugin("sched", "backfill", "builtin")),
    "enforcepartlimits": _at(
        "scheduling.enforce_part_limits",
        _one_of({"no": "no", "any": "any", "all": "all", "yes": "all"}),
    ),
    "overtimelimit": _at("scheduling.over_time_limit", time_limit),
    "killwait": _at("scheduling.kill_wait", seconds),
    "messagetimeout": _at("scheduling.message_timeout", seconds),
    "completewait": _at("scheduling.complete_wait", seconds),
    "jobrequeue": _at("scheduling.job_requeue", yes_no),
    "maxarraysize": _at("scheduling.max_array_size", count),
    "maxjobcount": _at("scheduling.max_job_count", count),
    "selecttype": _at(
        "selection.type",
        _plugin("select", "linear", "cons_tres", cons_res="cons_tres", unmodelled=("cray_aries",)),
    ),
    "selecttypeparameters": _select_parameters,
    "defmempercpu": _at("selection.def_mem_per_cpu", memory_limit),
    "defmempernode": _at("selection.def_mem_per_node", memory_limit),
    "defmempergpu": _at("selection.def_mem_per_gpu", memory_limit),
    "maxmempercpu": _at("selection.max_mem_per_cpu", memory_limit),
    "maxmempernode": _at("selection.max_mem_per_node", memory_limit),
    "defcpupergpu": _at("selection.def_cpu_per_gpu", count),
    "topologyplugin": _at(
        "selection.topology",
        _plugin(
            "topology",
            "tree",
            "default",
            none="default",
            flat="default",
            unmodelled=("3d_torus", "hypercube", "block"),
        ),
    ),
    "prioritytype": _at("priority.type", _plugin("priority", "basic", "multifactor")),
    "priorityweightage": _at("priority.weight_age", count),
    "priorityweightassoc": _at("priority.weight_assoc", count),
    "priorityweightfairshare": _at("priority.weight_fairshare", count),
    "priorityweightjobsize": _at("priority.weight_job_size", count),
    "priorityweightpartition": _at("priority.weight_partition", count),
    "priorityweightqos": _at("priority.weight_qos", count),
    "priorityweighttres": _at("priority.weight_tres", weights),
    "prioritymaxage": _at("priority.max_age", time_limit),
    "prioritycalcperiod": _at("priority.calc_period", time_limit),
    "prioritydecayhalflife": _at("priority.decay_half_life", time_limit),
    "priorityusageresetperiod": _at("priority.usage_reset_period", str.lower),
    "priorityfavorsmall": _at("priority.favor_small", yes_no),
    "priorityflags": _at("priority.flags", _flags),
    "fairsharedampeningfactor": _at("priority.fairshare_dampening", count),
    "preempttype": _at("preemption.type", _plugin("preempt", "none", "partition_prio", "qos")),
    "preemptmode": _preempt_mode,
    "preemptexempttime": _at(
        "preemption.exempt_time", lambda text: 0.0 if text == "-1" else time_limit(text)
    ),
}
