"""The settings of a ``slurm.conf`` of version 22.05: what each becomes, and which the twin does not have.

They stand alone in a line, in ``SchedulerParameters``, or in the line of a partition or of nodes; all names
are in small letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

import msgspec

from batsched_py.protocol.shown import shown
from batsched_py.slurm.policy.settings import Partition
from batsched_py.slurm.values import (
    NotModelled,
    count,
    each,
    limit,
    listed,
    memory_limit,
    names,
    number,
    seconds,
    signed,
    time_limit,
    weights,
    yes_no,
)

#: These may shape schedules.
UNMODELLED = frozenset(
    """batchstarttimeout burstbuffertype dependencyparameters disablerootjobs downnodes epilogmsgtime
    federationparameters frontendname healthcheckinterval healthcheckprogram jobsubmitplugins
    launchparameters maxtaskspernode nodefeaturesplugins prioritysitefactorparameters
    prioritysitefactorplugin priorityparameters prologflags requeueexit requeueexithold resumerate
    resumeprogram resumetimeout resvoverrun schedulertimeslice suspendexcnodes suspendexcparts
    suspendprogram suspendrate suspendtime suspendtimeout topologyparam unkillablesteptimeout vsizefactor
    powerparameters powerplugin epilogslurmctld prologslurmctld prolog epilog""".split()
)

#: These do not.
WITHOUT_EFFECT = frozenset(
    """accountingstoragebackuphost accountingstorageexternalhost accountingstoragehost
    accountingstorageparameters accountingstoragepass accountingstorageport accountingstoragetres
    accountingstoragetype accountingstorageuser accountingstoreflags acctgatherenergytype
    acctgatherfilesystemtype acctgatherinterconnecttype acctgathernodefreq acctgatherprofiletype
    allowspecresourcesusage authaltparameters authalttypes authinfo authtype backupaddr backupcontroller
    bcastexclude bcastparameters clifilterplugins communicationparameters controladdr controlmachine
    corespecplugin cpufreqdef cpufreqgovernors credtype debugflags eiotimeout extsensorsfreq
    extsensorstype firstjobid getenvtimeout grestypes groupupdateforce groupupdatetime
    healthchecknodestate inactivelimit interactivestepoptions jobacctgatherfrequency jobacctgatherparams
    jobacctgathertype jobcomphost jobcomploc jobcompparams jobcomppass jobcompport jobcomptype
    jobcompuser jobcontainertype jobfileappend keepalivetime killonbadexit launchtype logtimeformat
    maildomain mailprog maxdbdmsgs maxjobid maxnodecount maxstepcount mcsparameters mcsplugin
    minjobage mpidefault mpiparams overmemorykill plugindir plugstackconfig
    preparameters prepparameters prepplugins privatedata proctracktype prologepilogtimeout
    propagateprioprocess propagateresourcelimits propagateresourcelimitsexcept rebootprogram
    reconfigflags resumefailprogram resvepilog resvprolog returntoservice routeplugin scronparameters
    slurmctldaddr slurmctlddebug slurmctldhost slurmctldlogfile slurmctldparameters slurmctldpidfile
    slurmctldplugstack slurmctldport slurmctldprimaryoffprog slurmctldprimaryonprog
    slurmctldsyslogdebug slurmctldtimeout slurmddebug slurmdlogfile slurmdparameters slurmdpidfile
    slurmdport slurmdspooldir slurmdsyslogdebug slurmdtimeout slurmduser slurmschedlogfile
    slurmschedloglevel slurmuser srunepilog srunportrange srunprolog statesavelocation switchparameters
    switchtype taskepilog taskplugin taskpluginparam taskprolog tcptimeout tmpfs trackwckey treewidth
    unkillablestepprogram usepam waittime x11parameters""".split()
)

#: Settings of nodes that the machine and the configuration have.
NODE_KEYS = frozenset(
    """nodename cpus procs sockets socketsperboard boards corespersocket threadspercore realmemory gres
    feature features weight state""".split()
)
NODE_WITHOUT_EFFECT = frozenset("nodehostname nodeaddr bcastaddr port reason tmpdisk cpubind".split())
NODE_UNMODELLED = frozenset("corespeccount cpuspeclist memspeclimit".split())


def _minutes(text: str) -> float:
    return number(text) * 60


def _microseconds(text: str) -> float:
    return number(text) / 1_000_000


#: Where an option goes, and how its value is read; without a reader it is a switch.
Parameter = tuple[str, str, Callable[[str], Any] | None]

PARAMETERS: dict[str, Parameter] = {
    **{
        name: ("scheduling", name, count)
        for name in (
            "default_queue_depth", "partition_job_depth", "sched_max_job_start", "bf_max_job_test",
            "bf_max_job_user", "bf_max_job_part", "bf_max_job_user_part", "bf_max_job_assoc",
            "bf_max_job_start", "bf_max_job_array_resv", "bf_min_prio_reserve", "bf_job_part_count_reserve",
        )
    },
    **{
        name: ("scheduling", name, number)
        for name in (
            "batch_sched_delay", "max_sched_time", "bf_resolution", "bf_max_time", "bf_min_age_reserve",
            "bf_window_linear",
        )
    },
    **{name: ("scheduling", name, signed) for name in ("sched_interval", "bf_interval")},
    **{
        name: ("scheduling", name, None)
        for name in (
            "defer", "assoc_limit_stop", "bf_continue", "bf_busy_nodes", "bf_one_resv_per_job",
            "bf_running_job_reserve", "bf_licenses",
        )
    },
    "bf_window": ("scheduling", "bf_window", _minutes),
    "sched_min_interval": ("scheduling", "sched_min_interval", _microseconds),
    "bf_yield_interval": ("scheduling", "bf_yield_interval", _microseconds),
    "bf_yield_sleep": ("scheduling", "bf_yield_sleep", _microseconds),
    "pack_serial_at_end": ("selection", "pack_serial_at_end", None),
    "preempt_reorder_count": ("preemption", "reorder_count", count),
    "preempt_strict_order": ("preemption", "strict_order", None),
    "preempt_youngest_first": ("preemption", "youngest_first", None),
}  # fmt: skip

#: What else shapes schedules.
PARAMETERS_UNMODELLED = frozenset(
    """allow_zero_lic bb_array_stage_cnt bf_hetjob_immediate bf_hetjob_prio bf_node_space_size
    build_queue_timeout correspond_after_task_cnt delay_boot ignore_prefer_validation max_array_tasks
    max_rpc_cnt max_switch_wait reduce_completing_frag spec_cores_first whole_hetjob enable_user_top
    ignore_numa""".split()
)

PARAMETERS_WITHOUT_EFFECT = frozenset(
    """disable_job_shrink disable_hetjob_steps enable_hetjob_steps max_script_size no_backup_scheduling
    no_env_cache nohold_on_prolog_fail requeue_setup_env_fail salloc_wait_nodes sbatch_wait_nodes
    step_retry_count step_retry_time""".split()
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


def _at_field(field: str, read: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
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
PARTITION_SETTINGS: dict[str, Callable[[str], dict[str, Any]]] = {
    "partitionname": _at_field("name", str),
    "nodes": _at_field("nodes", str),
    "default": _at_field("default", yes_no),
    "state": _at_field("state", str.lower),
    "maxtime": _at_field("max_time", time_limit),
    "defaulttime": _at_field("default_time", _default_time),
    "minnodes": _at_field("min_nodes", count),
    "maxnodes": _at_field("max_nodes", limit),
    "maxcpuspernode": _at_field("max_cpus_per_node", limit),
    "prioritytier": _at_field("priority_tier", count),
    "priorityjobfactor": _at_field("priority_job_factor", count),
    "priority": _priority,
    "oversubscribe": _over_subscribe,
    "shared": _over_subscribe,
    "lln": _at_field("lln", yes_no),
    "exclusiveuser": _at_field("exclusive_user", yes_no),
    "reqresv": _at_field("req_resv", yes_no),
    "rootonly": _at_field("root_only", yes_no),
    "preemptmode": _at_field("preempt_mode", preempt_mode),
    "gracetime": _at_field("grace_time", seconds),
    "overtimelimit": _at_field("over_time_limit", time_limit),
    "qos": _at_field("qos", lambda text: "" if text.upper() == "N/A" else text),
    "allowaccounts": _at_field("allow_accounts", names),
    "denyaccounts": _at_field("deny_accounts", names),
    "allowqos": _at_field("allow_qos", names),
    "denyqos": _at_field("deny_qos", names),
    "defmempercpu": _at_field("def_mem_per_cpu", memory_limit),
    "defmempernode": _at_field("def_mem_per_node", memory_limit),
    "defmempergpu": _at_field("def_mem_per_gpu", memory_limit),
    "maxmempercpu": _at_field("max_mem_per_cpu", memory_limit),
    "maxmempernode": _at_field("max_mem_per_node", memory_limit),
    "defcpupergpu": _at_field("def_cpu_per_gpu", count),
    "tresbillingweights": _at_field("tres_billing_weights", weights),
}

#: These may shape schedules.
PARTITION_UNMODELLED = frozenset(
    "allowgroups allocnodes alternate disablerootjobs selecttypeparameters suspendtime suspendtimeout "
    "resumetimeout jobdefaults".split()
)
PARTITION_WITHOUT_EFFECT = frozenset("hidden cpubind".split())


def partition_of(values: Mapping[str, Any]) -> Partition:
    """The partition with these values of fields; raises ``ValueError``."""
    given = {name: value for name, value in values.items() if value is not None}
    return msgspec.convert(given, Partition)
