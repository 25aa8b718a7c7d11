"""All that sets the twin of Slurm, in one file ``slurm.toml``::

    [scheduling]
    bf_interval = 60
    bf_continue = true

    [priority]
    type = "multifactor"
    weight_age = 1000

    [[partitions]]
    name = "batch"
    nodes = "n[1-16]"
    default = true

``batsched-py slurm import`` makes the file from a ``slurm.conf`` and from what ``sacctmgr`` and ``scontrol``
print. The policy has it by its option ``configuration_file``.

Names are those of Slurm, in small letters. Times are in seconds and memory is in MB, whatever unit Slurm has
for them; no limit is ``inf`` for a time, and left out for a number. What is left out has Slurm's default.
"""

import tomllib
from datetime import datetime
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.hosts import expand

Seconds = Annotated[float, Meta(ge=0)]
"""``inf`` where there is no limit."""

Positive = Annotated[float, Meta(gt=0)]

Count = Annotated[int, Meta(ge=0)]

Tres = dict[str, float]
"""Amounts of trackable resources: ``cpu``, ``mem`` (MB), ``node``, ``billing``, ``gres/gpu``."""


class Limits(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What an association and a QOS both limit; ``None`` and names that are missing have no limit.

    Limits that begin with ``grp`` are for all running jobs together; minutes of resources are in seconds, as
    all times are (``cpu = 3600`` are 60 minutes of a processor).
    """

    grp_jobs: Count | None = None
    grp_submit_jobs: Count | None = None
    grp_tres: Tres = {}
    grp_tres_seconds: Tres = {}
    grp_tres_run_seconds: Tres = {}
    """Of what running jobs may still use until their time limits."""
    grp_wall: Seconds | None = None
    grp_jobs_accrue: Count | None = None
    max_tres_per_job: Tres = {}
    max_tres_per_node: Tres = {}
    max_tres_seconds_per_job: Tres = {}
    max_wall: Seconds | None = None
    """Of each job."""
    min_prio_thres: Count | None = None


Consumed = Literal["cpu", "core", "socket", "none"]


class Selection(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``SelectType`` and ``SelectTypeParameters``, and the settings of ``SchedulerParameters`` on nodes."""

    type: Literal["linear", "cons_tres"] = "linear"
    """``linear`` gives out whole nodes."""
    consumed: Consumed = "core"
    """The unit in which processors are given out."""
    memory: bool = False
    """Whether memory is given out, as with ``CR_Core_Memory``."""
    lln: bool = False
    """``CR_LLN``: the least loaded nodes first."""
    one_task_per_core: bool = False
    core_default_dist_block: bool = False
    pack_serial_at_end: bool = False
    """Jobs of one processor go to the last nodes."""

    def_mem_per_cpu: Count = 0
    """What a job that does not say gets, in MB; 0 is all the memory of a node."""
    def_mem_per_node: Count = 0
    def_mem_per_gpu: Count = 0
    max_mem_per_cpu: Count = 0
    """0 is no limit."""
    max_mem_per_node: Count = 0
    def_cpu_per_gpu: Count = 0
    topology: Literal["default", "tree"] = "default"
    """With ``tree``, ``cons_tres`` prefers nodes behind one leaf switch."""
    topo_optional: bool = False
    """Whether that is so for jobs only that ask for one switch."""


class PowerSaving(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``SuspendTime`` and what goes with it; how long nodes take, and what they draw, the platform tells."""

    suspend_time: Annotated[float, Meta(ge=0)] = inf
    """So long nodes are idle before they are put to sleep."""
    suspend_timeout: Seconds = 30.0
    """So long no job gets a node that is put to sleep."""
    resume_timeout: Seconds = 60.0
    """So long at most a node may take to wake up."""
    suspend_rate: Count = 60
    """So many nodes a minute are put to sleep; 0 is no limit."""
    resume_rate: Count = 300
    suspend_exc_nodes: str = ""
    """Nodes that stay awake, as Slurm writes them."""
    suspend_exc_parts: tuple[str, ...] = ()
    """Partitions whose nodes do."""
    suspend_program: str = ""
    resume_program: str = ""

    @property
    def is_on(self) -> bool:
        """Whether nodes are put to sleep at all: Slurm needs both programs for that."""
        return self.suspend_time < inf and bool(self.suspend_program and self.resume_program)


class NodeSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the machine's file does not say of some nodes: an entry of ``[[nodes]]``."""

    nodes: str
    """As Slurm writes them, like ``n[1-8],m1``."""
    weight: Count = 1
    """The nodes with the least weight are taken first."""
    sockets: Count = 1
    cores_per_socket: Count = 0
    """0 is all the cores of the node in one socket."""
    threads_per_core: Count = 1
    state: Literal["up", "down", "drain"] = "up"


class Switch(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A switch of ``topology.conf``: an entry of ``[[switches]]``."""

    name: str
    nodes: str = ""
    """The nodes behind a leaf switch."""
    below: tuple[str, ...] = ()
    """The switches behind any other."""


class Scheduling(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``SchedulerType``, ``SchedulerParameters``, and what else of ``slurm.conf`` shapes the loops.

    A number of jobs that is 0 means that there is no limit.
    """

    type: Literal["backfill", "builtin"] = "backfill"

    sched_interval: Annotated[float, Meta(ge=-1)] = 60.0
    """Between two looks of the main loop at the whole queue; it never does that if this is -1."""
    sched_min_interval: Seconds = 2e-6
    """At least between two runs of the main loop."""
    batch_sched_delay: Seconds = 3.0
    """How long the main loop may be put off after a batch job is submitted."""
    default_queue_depth: Count = 100
    """Jobs that the main loop looks at when an event makes it run."""
    partition_job_depth: Count = 0
    """Jobs of each partition that the main loop looks at."""
    sched_max_job_start: Count = 0
    max_sched_time: Positive = 2.0
    """How long a run of the main loop may take."""
    defer: bool = False
    """Whether the main loop does not look at once when nodes tell that they are clean."""
    assoc_limit_stop: bool = False
    """Whether a job that waits for a limit of its association holds up the jobs behind it."""
    ignore_prefer_validation: bool = False

    max_switch_wait: Seconds = 300.0
    """So long at most a job waits for nodes behind one switch."""

    bf_interval: Annotated[float, Meta(ge=-1)] = 30.0
    """From the end of a backfill cycle to the next; there are none if this is -1."""
    bf_resolution: Positive = 60.0
    bf_window: Positive = 86400.0
    """How far the plan of the backfill loop reaches."""
    bf_max_job_test: Annotated[int, Meta(ge=1)] = 500
    bf_max_job_user: Count = 0
    bf_max_job_part: Count = 0
    bf_max_job_user_part: Count = 0
    bf_max_job_assoc: Count = 0
    bf_max_job_start: Count = 0
    bf_max_job_array_resv: Count = 20
    """Tasks of one array for which a start is planned."""
    bf_max_time: Positive | None = None
    """How long a cycle may take; as long as ``bf_interval`` if left out."""
    bf_continue: bool = False
    """Whether a cycle goes on after a break in which the queue or the machine changed."""
    bf_yield_interval: Positive = 2.0
    bf_yield_sleep: Seconds = 0.5
    bf_busy_nodes: bool = False
    """Whether nodes that are partly used are preferred where a start is planned."""
    bf_min_prio_reserve: Count = 0
    """The least priority of a job for which a later start is planned."""
    bf_min_age_reserve: Seconds = 0.0
    """The least age of a job for which a later start is planned."""
    bf_job_part_count_reserve: Count = 0
    """A later start is planned for so many jobs of each partition only."""
    bf_one_resv_per_job: bool = False
    bf_running_job_reserve: bool = False
    bf_licenses: bool = False
    bf_window_linear: Seconds = 0.0

    enforce_part_limits: Literal["no", "any", "all"] = "no"
    """Whether a job beyond the limits of its partitions is refused at its submission."""
    over_time_limit: Seconds = 0.0
    """So much longer than its time limit may a job run."""
    resv_over_run: Seconds = 0.0
    """So much longer than its reservation may a job run."""
    kill_wait: Seconds = 30.0
    message_timeout: Seconds = 10.0
    complete_wait: Seconds = 0.0
    """So long at most no job starts anywhere while a job that has ended is cleaned up."""
    epilog_time: Seconds = 0.0
    """How long ``Epilog`` takes on the nodes of each job that has ended."""
    job_requeue: bool = True
    """Whether a job can be put back into the queue if it does not say."""
    max_array_size: Count = 1001
    max_job_count: Count = 10000


ResetPeriod = Literal["none", "now", "daily", "weekly", "monthly", "quarterly", "yearly"]

PriorityFlag = Literal[
    "accrue_always", "calculate_running", "depth_oblivious", "no_fair_tree", "incr_only", "max_tres",
    "no_normal_all", "no_normal_assoc", "no_normal_part", "no_normal_qos", "no_normal_tres",
    "small_relative_to_time",
]  # fmt: skip


class Priority(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``PriorityType`` and the settings of ``priority/multifactor``."""

    type: Literal["basic", "multifactor"] = "basic"
    weight_age: Count = 0
    weight_assoc: Count = 0
    weight_fairshare: Count = 0
    weight_job_size: Count = 0
    weight_partition: Count = 0
    weight_qos: Count = 0
    weight_tres: Tres = {}
    max_age: Positive = 7 * 86400.0
    calc_period: Positive = 300.0
    decay_half_life: Seconds = 7 * 86400.0
    """Usage does not decay if this is 0."""
    usage_reset_period: ResetPeriod = "none"
    favor_small: bool = False
    flags: tuple[PriorityFlag, ...] = ()
    fairshare_dampening: Annotated[int, Meta(ge=1)] = 1
    """``FairShareDampeningFactor``."""
    formula: str = ""
    """What a priority is instead of the weighted sum of factors, which no Slurm has: to try another one."""

    @property
    def fair_tree(self) -> bool:
        """Whether fair share is that of Slurm's fair tree, which is the usual one."""
        return "no_fair_tree" not in self.flags and "depth_oblivious" not in self.flags


PreemptMode = Literal["off", "cancel", "requeue"]


class Preemption(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``PreemptType``, ``PreemptMode`` and what goes with them."""

    type: Literal["none", "partition_prio", "qos"] = "none"
    mode: PreemptMode = "off"
    exempt_time: Seconds = 0.0
    """A job is left alone for so long."""
    reorder_count: Count = 1
    """``preempt_reorder_count``."""
    strict_order: bool = False
    youngest_first: bool = False
    send_user_signal: bool = False
    within_qos: bool = False
    """``PreemptMode=WITHIN``: jobs make way for those of higher priority of the same QOS, too."""


OverSubscribe = Literal["no", "exclusive", "yes", "force"]


PartitionState = Literal["up", "down", "drain", "inactive"]


class Partition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A partition. ``None`` is no limit, and an empty list of names allows all."""

    name: str
    nodes: str = "ALL"
    """As Slurm writes them, like ``n[1-8],m1``."""
    default: bool = False
    """Whether it is that of jobs that do not say."""
    state: PartitionState = "up"
    max_time: Positive = inf
    default_time: Positive | None = None
    """The time limit of jobs that do not say; ``max_time`` if left out."""
    min_nodes: Count = 0
    max_nodes: Count | None = None
    max_cpus_per_node: Count | None = None
    priority_tier: Count = 1
    priority_job_factor: Count = 1
    over_subscribe: OverSubscribe = "no"
    over_subscribe_jobs: Count = 4
    """How many jobs may share a resource, with ``yes`` and ``force``."""
    lln: bool = False
    exclusive_user: bool = False
    req_resv: bool = False
    """Whether jobs must name a reservation."""
    root_only: bool = False
    """Whether only the user root may use it."""
    preempt_mode: PreemptMode | None = None
    grace_time: Seconds = 0.0
    over_time_limit: Seconds | None = None
    qos: str = ""
    """The QOS whose limits are those of the partition."""
    allow_groups: tuple[str, ...] = ()
    """Whose users may use it, by the groups of the configuration."""
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    def_mem_per_cpu: Count | None = None
    """That of ``[selection]`` if left out, as with the others of memory."""
    def_mem_per_node: Count | None = None
    def_mem_per_gpu: Count | None = None
    max_mem_per_cpu: Count | None = None
    max_mem_per_node: Count | None = None
    def_cpu_per_gpu: Count | None = None
    tres_billing_weights: Tres = {}


QosFlag = Literal[
    "deny_on_limit", "enforce_usage_threshold", "no_decay", "no_reserve", "override_part_qos",
    "partition_max_nodes", "partition_min_nodes", "partition_time_limit", "require_reservation",
    "usage_factor_safe",
]  # fmt: skip


#: Those that the policy acts on.
HEEDED_QOS_FLAGS = frozenset(
    """deny_on_limit no_decay no_reserve override_part_qos partition_max_nodes partition_min_nodes
    partition_time_limit require_reservation usage_factor_safe""".split()
)


class Qos(Limits, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A quality of service."""

    name: str
    priority: Count = 0
    preempt: tuple[str, ...] = ()
    """The QOS whose jobs may be preempted by jobs of this one."""
    preempt_mode: PreemptMode | None = None
    """That of the whole machine if left out."""
    preempt_exempt_time: Seconds | None = None
    grace_time: Seconds = 0.0
    usage_factor: Annotated[float, Meta(ge=0)] = 1.0
    usage_threshold: float | None = None
    limit_factor: float | None = None
    flags: tuple[QosFlag, ...] = ()
    usage_tres: Tres = {}
    """What it has used when a simulation begins, decayed: resources times seconds."""
    usage_wall: Seconds = 0.0
    """How long its jobs have run by then, decayed."""
    max_jobs_per_user: Count | None = None
    max_submit_jobs_per_user: Count | None = None
    max_jobs_per_account: Count | None = None
    max_submit_jobs_per_account: Count | None = None
    max_jobs_accrue_per_user: Count | None = None
    max_jobs_accrue_per_account: Count | None = None
    max_tres_per_user: Tres = {}
    max_tres_per_account: Tres = {}
    min_tres_per_job: Tres = {}


ROOT = "root"
"""The account above all others, and the user who may do anything."""

NORMAL = "normal"
"""The QOS of jobs that do not say; each cluster has it."""


class Association(Limits, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """An account, or a user in an account, perhaps for one partition only."""

    account: str
    user: str = ""
    """Nobody if this is the account itself."""
    partition: str = ""
    """All partitions if this is empty."""
    parent: str = ROOT
    """The account above, of an account; the parent of a user is the account."""
    shares: Count | Literal["parent"] = 1
    """Raw shares; with ``parent`` its usage counts as that of its parent, and so does its share."""
    priority: Count = 0
    qos: tuple[str, ...] = ()
    """What it may ask for; those of its parent if there are none."""
    default_qos: str = ""
    default_account: bool = False
    """Whether this is the account of the user's jobs that do not say."""
    max_jobs: Count | None = None
    max_submit_jobs: Count | None = None
    max_jobs_accrue: Count | None = None
    usage: Annotated[float, Meta(ge=0)] = 0.0
    """Raw usage at the beginning, as ``sshare`` shows it."""
    usage_tres: Tres = {}
    """The same of each resource, in seconds: ``GrpTRESRaw`` of ``sshare``, which has minutes."""
    usage_wall: Seconds = 0.0
    """How long its jobs have run by then, decayed."""


ReservationFlag = Literal[
    "any_nodes", "daily", "flex", "hourly", "ignore_jobs", "magnetic", "maint", "no_hold_jobs_after",
    "overlap", "part_nodes", "purge_comp", "replace", "replace_down", "spec_nodes", "static", "time_float",
    "weekday", "weekend", "weekly",
]  # fmt: skip


#: Those that the policy or the importer acts on, and those that change nothing for jobs that are simulated.
HEEDED_RESERVATION_FLAGS = frozenset(
    "daily flex hourly ignore_jobs magnetic maint overlap spec_nodes static weekly".split()
)


class Reservation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Nodes that are kept for some, or for nobody, in a span of time."""

    name: str
    start: float
    """Seconds from the beginning of the simulation, as all moments."""
    end: float = inf
    nodes: str = ""
    """As Slurm writes them, like ``n[1-6]``; ``ALL`` are all of them."""
    node_count: Count = 0
    """How many nodes, if they are not named."""
    cores: Count = 0
    """How many cores of each of its nodes; 0 is all of them."""
    partition: str = ""
    tres: Tres = {}
    users: tuple[str, ...] = ()
    """Who may use it; names that begin with ``-`` may not."""
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    flags: tuple[ReservationFlag, ...] = ()
    max_start_delay: Seconds | None = None
    created: float = 0.0
    """Since when the scheduler knows of it."""


#: Settings that are read, and that the policy does not act on, by table. The importer lists them as not
#: modelled where a cluster has them. Who lets the policy act on one takes it off; a test compares the list
#: with the code.
UNUSED = {
    table: frozenset(fields.split())
    for table, fields in {
        "scheduling": """max_sched_time ignore_prefer_validation bf_max_time
            bf_yield_interval bf_yield_sleep bf_busy_nodes bf_one_resv_per_job bf_licenses
            max_array_size max_job_count""",
        "selection": """core_default_dist_block pack_serial_at_end max_mem_per_node""",
        "nodes": "",
        "priority": "",
        "preemption": "send_user_signal within_qos",
        "power": "",
        "partitions": "over_subscribe_jobs exclusive_user max_mem_per_node",
        "limits": "grp_submit_jobs grp_jobs_accrue min_prio_thres",
        "qos": """usage_threshold limit_factor max_submit_jobs_per_user max_submit_jobs_per_account
            max_jobs_accrue_per_user max_jobs_accrue_per_account min_tres_per_job""",
        "associations": "max_submit_jobs max_jobs_accrue",
        "reservations": "node_count max_start_delay",
        "job": "spread use_min_nodes oversubscribe exclusive_user",
    }.items()
}


def is_unused(table: str, field: str) -> bool:
    """Whether the policy does not act on a field of a table."""
    also = ("limits",) if table in ("qos", "associations") else ()
    return any(field in UNUSED[each] for each in (table, *also))


Enforced = Literal["associations", "limits", "qos", "safe"]


class Configuration(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A cluster of Slurm, as far as its scheduler goes; its machine is a platform of nodes beside it."""

    cluster: str = "cluster"
    enforce: tuple[Enforced, ...] = ()
    """``AccountingStorageEnforce``: which limits count at all."""
    start: str = ""
    """The date and time of time 0, in UTC; plans are on a grid of time that is counted by dates."""
    scheduling: Scheduling = Scheduling()
    selection: Selection = Selection()
    priority: Priority = Priority()
    preemption: Preemption = Preemption()
    power: PowerSaving = PowerSaving()
    nodes: tuple[NodeSettings, ...] = ()
    switches: tuple[Switch, ...] = ()
    partitions: tuple[Partition, ...] = ()
    qos: tuple[Qos, ...] = ()
    associations: tuple[Association, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    groups: dict[str, tuple[str, ...]] = {}
    """Who is in which group of users; without any, partitions take no notice of groups."""

    @property
    def origin(self) -> int:
        """How many seconds time 0 is after the beginning of 1970; 0 if nobody knows."""
        return _seconds(self.start)

    @property
    def requeues(self) -> bool:
        """Whether jobs may make way for others by going back into the queue."""
        of_parts = self.partitions if self.preemption.type == "partition_prio" else self.qos
        modes = {self.preemption.mode, *(each.preempt_mode for each in of_parts)}
        return self.preemption.type != "none" and "requeue" in modes

    def __post_init__(self) -> None:
        _seconds(self.start)
        for what, names in (
            ("switches", [switch.name for switch in self.switches]),
            ("partitions", [partition.name for partition in self.partitions]),
            ("qos", [qos.name for qos in self.qos]),
            ("associations", [(each.account, each.user, each.partition) for each in self.associations]),
            ("reservations", [reservation.name for reservation in self.reservations]),
        ):
            if len(set(names)) != len(names):
                twice = next(name for place, name in enumerate(names) if name in names[:place])
                raise ValueError(f"{what} has {twice!r} twice")
        known = {switch.name for switch in self.switches}
        for switch in self.switches:
            if missing := set(switch.below) - known:
                raise ValueError(f"switch {switch.name!r} names {min(missing)!r}, which is not there")
        named = [switch.nodes for switch in self.switches] + [each.nodes for each in self.nodes]
        named += [each.nodes for each in self.partitions] + [self.power.suspend_exc_nodes]
        for nodes in named + [each.nodes for each in self.reservations]:
            expand(nodes)


@lru_cache(maxsize=16)
def _seconds(date: str) -> int:
    """A date in UTC, in seconds since the beginning of 1970."""
    try:
        return int(datetime.fromisoformat(date).timestamp()) if date else 0
    except ValueError:
        raise ValueError(f"start: {date!r} is not a date like 2026-01-31T12:00:00Z") from None


def read_configuration(path: str | Path) -> Configuration:
    """The configuration in a file."""
    try:
        return msgspec.convert(tomllib.loads(read_input(path).decode()), Configuration)
    except OSError as error:
        raise InputError(f"{path}: cannot read this configuration of Slurm ({error.strerror})") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{path}: {error}") from None
