"""The settings of a ``slurm.conf`` from 22.05 to 24.11: what each becomes, and which the twin does not
have.

They stand alone in a line, in ``SchedulerParameters``, or in the line of a partition or of nodes; all names
are in small letters.
"""

import re
from collections import ChainMap
from collections.abc import Callable
from math import inf
from typing import Any

from batsched_py.protocol.shown import shown
from batsched_py.slurm import reading

#: These may shape schedules.
UNMODELLED = frozenset(
    """batchstarttimeout burstbuffertype dependencyparameters disablerootjobs downnodes epilogmsgtime
    federationparameters frontendname healthcheckinterval healthcheckprogram jobsubmitplugins
    launchparameters maxtaskspernode nodefeaturesplugins prioritysitefactorparameters
    prioritysitefactorplugin priorityparameters prologflags requeueexit requeueexithold
    schedulertimeslice unkillablesteptimeout vsizefactor
    powerparameters powerplugin epilogslurmctld prologslurmctld burstbufferparameters
    maxbatchrequeue suspendexcstates""".split()
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
    prolog reconfigflags resumefailprogram resvepilog resvprolog returntoservice routeplugin scronparameters
    slurmctldaddr slurmctlddebug slurmctldhost slurmctldlogfile slurmctldparameters slurmctldpidfile
    slurmctldplugstack slurmctldport slurmctldprimaryoffprog slurmctldprimaryonprog
    slurmctldsyslogdebug slurmctldtimeout slurmddebug slurmdlogfile slurmdparameters slurmdpidfile
    slurmdport slurmdspooldir slurmdsyslogdebug slurmdtimeout slurmduser slurmschedlogfile
    slurmschedloglevel slurmuser srunepilog srunportrange srunprolog statesavelocation switchparameters
    switchtype taskepilog taskplugin taskpluginparam taskprolog tcptimeout tmpfs trackwckey treewidth
    unkillablestepprogram usepam waittime x11parameters accountingstorageloc accountingstorejobcomment
    acctgatherinfinibandtype certmgrparameters certmgrtype cryptotype dataparserparameters fastschedule
    gpufreqdef hashplugin jobcredentialprivatekey jobcredentialpubliccertificate
    sallocdefaultcommand sbcastparameters schedulerauth tlsparameters tlstype""".split()
)

#: Settings of nodes that the machine and the configuration have.
NODE_KEYS = frozenset(
    """nodename cpus procs sockets socketsperboard boards corespersocket threadspercore realmemory gres
    feature features weight state""".split()
)
NODE_WITHOUT_EFFECT = frozenset(
    "nodehostname nodeaddr bcastaddr port reason tmpdisk cpubind tresweights".split()
)
NODE_UNMODELLED = frozenset("corespeccount cpuspeclist memspeclimit restrictedcorespergpu".split())


#: Where an option goes, and how its value is read; without a reader it is a switch.
Parameter = tuple[str, str, Callable[[str], Any] | None]


def _options(read: Callable[[str], Any] | None, words: str) -> dict[str, Parameter]:
    """Options that are fields of the scheduling, of the same names."""
    return {name: ("scheduling", name, read) for name in words.split()}


PARAMETERS: dict[str, Parameter] = {
    **_options(
        reading.count,
        """default_queue_depth partition_job_depth sched_max_job_start bf_max_job_test bf_max_job_user
        bf_max_job_part bf_max_job_user_part bf_max_job_assoc bf_max_job_start bf_max_job_array_resv
        bf_min_prio_reserve bf_job_part_count_reserve""",
    ),
    **_options(
        reading.number,
        """batch_sched_delay max_switch_wait max_sched_time bf_resolution bf_max_time bf_min_age_reserve
        bf_window_linear""",
    ),
    **_options(reading.signed, "sched_interval bf_interval"),
    **_options(
        None,
        """defer assoc_limit_stop bf_continue bf_busy_nodes bf_one_resv_per_job bf_running_job_reserve
        bf_licenses""",
    ),
    **_options(lambda text: reading.number(text) * 60, "bf_window"),
    **_options(
        lambda text: reading.number(text) / 1_000_000, "sched_min_interval bf_yield_interval bf_yield_sleep"
    ),
    "pack_serial_at_end": ("selection", "pack_serial_at_end", None),
    "preempt_reorder_count": ("preemption", "reorder_count", reading.count),
    "preempt_strict_order": ("preemption", "strict_order", None),
    "preempt_youngest_first": ("preemption", "youngest_first", None),
}

PREEMPT_PARAMETERS: dict[str, Parameter] = {
    "reorder_count": ("preemption", "reorder_count", reading.count),
    "strict_order": ("preemption", "strict_order", None),
    "youngest_first": ("preemption", "youngest_first", None),
    "send_user_signal": ("preemption", "send_user_signal", None),
}

#: Settings that hold several options.
OPTIONS = {
    "schedulerparameters": PARAMETERS,
    "preemptparameters": PREEMPT_PARAMETERS,
}

#: What else shapes schedules.
PARAMETERS_UNMODELLED = frozenset(
    """allow_zero_lic bb_array_stage_cnt bf_hetjob_immediate bf_hetjob_prio bf_node_space_size
    build_queue_timeout correspond_after_task_cnt delay_boot ignore_prefer_validation max_array_tasks
    max_rpc_cnt reduce_completing_frag spec_cores_first whole_hetjob enable_user_top
    ignore_numa defer_batch extra_constraints time_min_as_soft_limit bf_allow_magnetic_slot
    bf_topopt_enable bf_topopt_iterations ignore_constraint_validation min_exempt_priority
    reclaim_licenses suspend_grace_time""".split()
)

PARAMETERS_WITHOUT_EFFECT = frozenset(
    """disable_job_shrink disable_hetjob_steps enable_hetjob_steps max_script_size no_backup_scheduling
    no_env_cache nohold_on_prolog_fail requeue_setup_env_fail salloc_wait_nodes sbatch_wait_nodes
    step_retry_count step_retry_time max_submit_line_size enable_job_state_cache""".split()
)


#: What a setting becomes: values of fields, by ``TABLE.FIELD``; fields of the whole have no table.
Values = dict[str, Any]


def _at(place: str, read: Callable[[str], Any]) -> Callable[[str], Values]:
    def values(text: str) -> Values:
        return {place: read(text)}

    return values


def _all_at(read: Callable[[str], Any], fields: str, prefix: str = "") -> dict[str, Callable[[str], Values]]:
    """Settings that are called as their fields are, without the table, but with a prefix."""
    names = {place: place.rpartition(".")[2].replace("_", "") for place in fields.split()}
    return {prefix + name: _at(place, read) for place, name in names.items()}


def _one_of(choices: dict[str, Any], *unmodelled: str) -> Callable[[str], Any]:
    """One of some words, in which capitals do not count; Slurm knows some more."""

    def read(text: str) -> Any:
        if text.lower() in unmodelled:
            raise reading.NotModelled(f"{shown(text)} is not modelled")
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
_SELECT_UNMODELLED = (
    "other_cons_res", "other_cons_tres", "ll_shared_gres", "multiple_sharing_gres_pj",
    "enforce_binding_gres", "one_task_per_sharing_gres",
)  # fmt: skip


def _together(read: Callable[[str], Values]) -> Callable[[str], Values]:
    """The values of several words; what is not modelled does not keep the others from counting."""

    def values(text: str) -> Values:
        try:
            return dict(ChainMap(*reversed(reading.each(reading.listed(text), read))))
        except reading.NotModelled as error:
            raise reading.NotModelled(str(error), dict(ChainMap(*reversed(error.rest)))) from None

    return values


#: How jobs make way; the twin suspends none.
preempt_mode = _one_of({"off": "off", "cancel": "cancel", "requeue": "requeue"}, "suspend", "gang")


def _preempt_modes(word: str) -> Values:
    is_within = word.upper() == "WITHIN"
    return {"preemption.within_qos": True} if is_within else {"preemption.mode": preempt_mode(word)}


def _enforced(text: str) -> tuple[str, ...]:
    """The kinds of enforcement; each brings those that it needs."""
    words = {word.lower() for word in reading.names(text)} - {"nojobs", "nosteps", "none", "0"}
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
    """Flags of priorities; priorities of running jobs count for nothing here."""
    words = (word.lower() for word in reading.names(text))
    return tuple(word for word in words if word not in ("fair_tree", "none", "calculate_running"))


_JOB_DEFAULTS = {
    "defcpupergpu": ("def_cpu_per_gpu", reading.count),
    "defmempergpu": ("def_mem_per_gpu", reading.memory_limit),
}


def _job_defaults(prefix: str) -> Callable[[str], Values]:
    """What ``JobDefaults`` tells, with something before the names of fields."""

    def values(text: str) -> Values:
        found: Values = {}
        for part in reading.listed(text):
            name, _, value = part.partition("=")
            if name.lower() not in _JOB_DEFAULTS:
                raise ValueError(f"{shown(name)} is neither DefCpuPerGPU nor DefMemPerGPU")
            field, read = _JOB_DEFAULTS[name.lower()]
            found[prefix + field] = read(value)
        return found

    return values


_NO_TREE = {"none": "default", "flat": "default"}
_TOPOLOGY_PARAM: dict[str, Values] = {
    "topooptional": {"selection.topo_optional": True},
    "routepart": {},
    "routetree": {},
    "splitroute": {},
    "topomaxsizeunroll": {},
}
_TOPOLOGY_UNMODELLED = ("dragonfly", "switchasnoderank", "blockasnoderank")


def _topology_param(word: str) -> Values:
    """What an option of ``TopologyParam`` means."""
    found: Values = _one_of(_TOPOLOGY_PARAM, *_TOPOLOGY_UNMODELLED)(word.partition("=")[0])
    return found


_topology = _plugin("topology", "tree", "default", unmodelled=("3d_torus", "hypercube", "block"), **_NO_TREE)


def _nodes_awake(text: str) -> str:
    """The nodes of ``SuspendExcNodes``; how many of them are to stay awake is not modelled."""
    if ":" in text:
        raise reading.NotModelled("a number of nodes behind `:`", {})
    return text


#: By their names in small letters.
SETTINGS: dict[str, Callable[[str], Values]] = {
    "clustername": _at("cluster", str),
    "accountingstorageenforce": _at("enforce", _enforced),
    "schedulertype": _at("scheduling.type", _plugin("sched", "backfill", "builtin")),
    **_all_at(
        _one_of({"no": "no", "any": "any", "all": "all", "yes": "all"}), "scheduling.enforce_part_limits"
    ),
    **_all_at(reading.time_limit, "scheduling.over_time_limit scheduling.resv_over_run"),
    **_all_at(reading.seconds, "scheduling.kill_wait scheduling.message_timeout scheduling.complete_wait"),
    **_all_at(reading.yes_no, "scheduling.job_requeue"),
    **_all_at(reading.count, "scheduling.max_array_size scheduling.max_job_count selection.def_cpu_per_gpu"),
    "selecttype": _at(
        "selection.type",
        _plugin("select", "linear", "cons_tres", cons_res="cons_tres", unmodelled=("cray_aries",)),
    ),
    "selecttypeparameters": _together(_one_of(_SELECT, *_SELECT_UNMODELLED)),
    **_all_at(
        reading.memory_limit,
        """selection.def_mem_per_cpu selection.def_mem_per_node selection.def_mem_per_gpu
        selection.max_mem_per_cpu selection.max_mem_per_node""",
    ),
    "jobdefaults": _job_defaults("selection."),
    "topologyparam": _together(_topology_param),
    "topologyplugin": _at("selection.topology", _topology),
    "prioritytype": _at("priority.type", _plugin("priority", "basic", "multifactor")),
    **_all_at(
        reading.count,
        """priority.weight_age priority.weight_assoc priority.weight_fairshare priority.weight_job_size
        priority.weight_partition priority.weight_qos""",
        "priority",
    ),
    **_all_at(reading.weights, "priority.weight_tres", "priority"),
    **_all_at(
        reading.time_limit, "priority.max_age priority.calc_period priority.decay_half_life", "priority"
    ),
    **_all_at(str.lower, "priority.usage_reset_period", "priority"),
    **_all_at(reading.yes_no, "priority.favor_small", "priority"),
    **_all_at(_flags, "priority.flags", "priority"),
    "fairsharedampeningfactor": _at("priority.fairshare_dampening", reading.count),
    "preempttype": _at("preemption.type", _plugin("preempt", "none", "partition_prio", "qos")),
    "preemptmode": _together(_preempt_modes),
    "suspendtime": _at("power.suspend_time", lambda text: inf if text == "-1" else reading.seconds(text)),
    **_all_at(reading.seconds, "power.suspend_timeout power.resume_timeout"),
    **_all_at(reading.count, "power.suspend_rate power.resume_rate"),
    **_all_at(str, "power.suspend_program power.resume_program"),
    **_all_at(reading.listed, "power.suspend_exc_parts"),
    "suspendexcnodes": _at("power.suspend_exc_nodes", _nodes_awake),
    "preemptexempttime": _at(
        "preemption.exempt_time", lambda text: 0.0 if text == "-1" else reading.time_limit(text)
    ),
}


_OVERSUBSCRIBE = re.compile(r"(NO|EXCLUSIVE|YES|FORCE)(?::([1-9][0-9]{0,5}))?", re.IGNORECASE)


def _over_subscribe(text: str) -> Values:
    match = _OVERSUBSCRIBE.fullmatch(text)
    if match is None:
        raise ValueError(f"{shown(text)} is none of NO, EXCLUSIVE, YES and FORCE")
    jobs = {"over_subscribe_jobs": int(match[2])} if match[2] else {}
    values = {"over_subscribe": match[1].lower(), **jobs}
    if match[1].upper() == "FORCE" and match[2] != "1":
        raise reading.NotModelled("jobs do not share processors", values)
    return values


#: By their names in small letters.
PARTITION_SETTINGS: dict[str, Callable[[str], Values]] = {
    "partitionname": _at("name", str),
    **_all_at(str, "nodes"),
    **_all_at(str.lower, "state"),
    **_all_at(reading.yes_no, "default lln exclusive_user req_resv root_only"),
    **_all_at(reading.time_limit, "max_time over_time_limit"),
    **_all_at(reading.finite_time, "default_time"),
    **_all_at(reading.count, "min_nodes priority_tier priority_job_factor def_cpu_per_gpu"),
    **_all_at(reading.limit, "max_nodes max_cpus_per_node"),
    "priority": lambda text: dict.fromkeys(("priority_tier", "priority_job_factor"), reading.count(text)),
    "oversubscribe": _over_subscribe,
    "shared": _over_subscribe,
    **_all_at(preempt_mode, "preempt_mode"),
    **_all_at(reading.seconds, "grace_time"),
    **_all_at(lambda text: "" if text.upper() == "N/A" else text, "qos"),
    **_all_at(reading.names, "allow_groups allow_accounts deny_accounts allow_qos deny_qos"),
    **_all_at(
        reading.memory_limit,
        "def_mem_per_cpu def_mem_per_node def_mem_per_gpu max_mem_per_cpu max_mem_per_node",
    ),
    **_all_at(reading.weights, "tres_billing_weights"),
    "jobdefaults": _job_defaults(""),
}

#: These may shape schedules.
PARTITION_UNMODELLED = frozenset(
    "allocnodes alternate disablerootjobs selecttypeparameters suspendtime suspendtimeout "
    "resumetimeout maxcpuspersocket powerdownonidle exclusivetopo".split()
)
PARTITION_WITHOUT_EFFECT = frozenset("hidden cpubind".split())
