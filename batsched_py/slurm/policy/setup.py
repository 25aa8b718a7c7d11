"""What the twin makes of a platform, a configuration and a job."""

import dataclasses
from collections.abc import Collection, Hashable, Mapping, Sequence
from math import inf
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.ledger.free_nodes import Licences
from batsched_py.ledger.nodes import NodeMachine, demand_of
from batsched_py.protocol.hosts import HostSet, compact, expand
from batsched_py.protocol.jobs import Host, Job
from batsched_py.protocol.requests import Request, read_request
from batsched_py.slurm.policy.causes import Causes
from batsched_py.slurm.policy.job import (
    Asked,
    JobFields,
    PartitionRecord,
    PartitionRules,
    WaitingRecord,
    asked_of,
    fields_of,
    minutes,
)
from batsched_py.slurm.policy.limits import Accounts, Limits
from batsched_py.slurm.policy.nodes import Machine, Node, natural, places
from batsched_py.slurm.policy.plan import kernel_of
from batsched_py.slurm.policy.priorities import (
    RUNS_ALREADY,
    Basic,
    ByFormula,
    Multifactor,
    Priorities,
    turns_of,
)
from batsched_py.slurm.policy.selection import bits
from batsched_py.slurm.policy.settings import ROOT, Configuration, NodeSettings, Partition, Switch
from batsched_py.slurm.policy.state import Preemption, Reservations, State
from batsched_py.slurm.policy.topology import Switches

#: What shapes a request beside its resources and its GPUs: jobs that are alike in this ask for the same.
_shape = attrgetter(
    "cpus_per_task", "least_cpus", "cpus_of_core", "tasks_of_core", "all_memory", "contiguous", "node_list",
    "exclude", "switches",
)  # fmt: skip


def _asking(job: Job) -> tuple[Request, JobFields]:
    """What a job asks for."""
    try:
        request = read_request(job.size, job.extra.get("request"))
        fields = fields_of(job)
    except ValueError as error:
        raise InputError(f"job {job.id}: {error}") from None
    if request.tasks % fields.cpus_per_task:
        raise InputError(
            f"job {job.id}: slurm: tasks of {fields.cpus_per_task} processors do not make {request.tasks}"
        )
    return request, fields


class Never(Struct, frozen=True):
    """Why a job can never run, as Slurm has it."""

    reason: str
    is_refused: bool = False
    """Whether Slurm refuses it at its submission; others wait for ever."""


class Setup:
    """A machine with its partitions, on which jobs are entered."""

    def __init__(self, configuration: Configuration, hosts: Sequence[Host]) -> None:
        self._configuration = configuration
        self._platform = NodeMachine.of(hosts)
        self._others = [name for name in self._platform.resources[2:] if name != "memory"]
        """The resources beside processors and memory."""
        self.machine = self._machine()
        self.partitions = self._partitions()
        self._default = next((each for each in self.partitions if each.settings.default), self.partitions[0])
        self._accounts = Accounts(configuration, self.machine, self._others)
        self._limits = Limits(self._accounts if "limits" in configuration.enforce else None)
        """Those of a cluster on which nobody runs."""
        self._turns = turns_of(configuration)
        self._refuses_for_one = configuration.scheduling.enforce_part_limits == "all"
        """Whether a job must keep to the limits of all its partitions."""
        self._reservations = Reservations(configuration.reservations, self.machine)
        self._kernel = kernel_of(self.machine, configuration.power.is_on)
        self._selector = self._kernel.selector(self.machine, configuration.selection.memory)
        self._empty = self._kernel.usage(self.machine)
        self._asked: dict[tuple[Hashable, ...], Asked] = {}
        self._count = 0

    def state(self, can_requeue: bool = False) -> State:
        """The machine without jobs."""
        configuration, machine, accounts = self._configuration, self.machine, self._accounts
        return State(
            configuration,
            machine,
            self.partitions,
            self._reservations,
            Limits(accounts if "limits" in configuration.enforce else None),
            Licences(self._platform.licences),
            Preemption(configuration, accounts, self._selector, can_requeue),
            self._kernel,
            self._selector,
            self._empty,
        )

    def causes(self, state: State, priorities: Priorities) -> Causes:
        """What tells why jobs wait."""
        return Causes(state, priorities, self._others)

    def priorities(self) -> Priorities:
        """How jobs get their priorities."""
        settings = self._configuration.priority
        if settings.type == "basic" and not settings.formula:
            return Basic()
        kind = ByFormula if settings.formula else Multifactor
        return kind(self._configuration, self.machine, self.partitions, self._accounts, self._others)

    def _machine(self) -> Machine:
        told: dict[str, NodeSettings] = {}
        for settings in self._configuration.nodes:
            told |= dict.fromkeys(expand(settings.nodes), settings)
        usual = NodeSettings("")
        nodes, down = [], 0
        for place, node in enumerate(sorted(self._platform.nodes, key=lambda node: natural(node.name))):
            settings = told.get(node.name, usual)
            others = tuple(node.resources.get(name, 0) for name in self._others)
            has = node.cores, node.resources.get("memory", 0), others
            nodes.append(
                Node(node.name, node.first, *has, settings.weight, *self._units(settings, node.cores))
            )
            down |= (settings.state != "up") << place
        return Machine(
            nodes,
            down,
            mixes_weights=self._configuration.selection.type == "linear",
            switches=self._switches([node.name for node in nodes]),
            switches_if_asked=self._configuration.selection.topo_optional,
        )

    def _switches(self, names: Sequence[str]) -> Switches | None:
        """The tree of switches, if it counts; without one, all those of the platform are below one."""
        selection = self._configuration.selection
        if selection.topology != "tree" or selection.type != "cons_tres":
            return None
        settings = self._configuration.switches
        if not settings:
            behind: dict[str, list[str]] = {}
            for node in self._platform.nodes:
                behind.setdefault(node.switch, []).append(node.name)
            settings = tuple(Switch(name, compact(nodes)) for name, nodes in behind.items() if name)
            settings += (Switch("", below=tuple(switch.name for switch in settings)),) if settings else ()
        place = {name: number for number, name in enumerate(names)}
        nodes = [bits(place[name] for name in expand(each.nodes) if name in place) for each in settings]
        return Switches.of(settings, nodes) if settings else None

    def _units(self, settings: NodeSettings, cpus: int) -> tuple[int, int]:
        """How many processors of a node are a core, and in multiples of how many they are given out."""
        sockets = max(settings.sockets, 1)
        cores = sockets * settings.cores_per_socket or cpus // max(settings.threads_per_core, 1)
        threads = cpus // cores if cores and cpus % cores == 0 else 1
        match self._configuration.selection.consumed:
            case "core":
                return threads, threads
            case "socket" if cpus % sockets == 0:
                return threads, cpus // sockets
        return threads, 1

    def _partitions(self) -> list[PartitionRecord]:
        """Those of the configuration; without any, those of the platform, or a single one of all nodes."""
        settings = self._configuration.partitions
        nodes = {each.name: self.machine.written(each.nodes) for each in settings}
        for each in settings:
            for name in expand(each.nodes) if each.nodes.upper() != "ALL" else ():
                if name not in self.machine.number:
                    raise InputError(f"partition {each.name!r} has node {name!r}, which the platform has not")
        if any(node.partitions for node in self._platform.nodes):
            self._check_partitions(nodes)
        if not settings:
            for node in self._platform.nodes:
                for name in node.partitions:
                    nodes[name] = nodes.get(name, 0) | self.machine.named([node.name])
            nodes = nodes or {"all": self.machine.all}
            settings = tuple(Partition(name=name) for name in nodes)
        return [
            PartitionRecord(each, nodes[each.name], number, each.name, 1 << number)
            for number, each in enumerate(settings)
        ]

    def _check_partitions(self, nodes: Mapping[str, int]) -> None:
        """Nodes of a partition must be in it by the platform, too, which says where its jobs may run."""
        for partition, has in nodes.items():
            of_platform = [node.name for node in self._platform.nodes if partition in node.partitions]
            if missing := has & ~self.machine.named(of_platform):
                name = self.machine.nodes[next(iter(places(missing)))].name
                raise InputError(
                    f"partition {partition!r} has node {name!r} by the configuration and not by the platform"
                    ": name it among the partitions of the node"
                )

    def nodes_within(self, hosts: HostSet) -> int:
        """The nodes all of whose hosts are among these."""
        mask = hosts.mask
        return self.machine.where(
            mask >> node.first & (1 << node.cpus) - 1 == (1 << node.cpus) - 1 for node in self.machine.nodes
        )

    # --- jobs ------------------------------------------------------------------------------------

    def records(self, job: Job, now: float) -> tuple[list[WaitingRecord], Never]:
        """A job that joins the queue, in each of its partitions in which it can run, or why it never can."""
        request, fields = _asking(job)
        eligible: float = max(int(now), int(round(job.submission_time + fields.begin, 3)))
        if fields.hold or fields.priority == 0:
            if fields.released is None:
                return [], Never("JobHeldUser")
            eligible = max(eligible, job.submission_time + fields.released)
        self._count += 1
        records, never = list[WaitingRecord](), Never("BadConstraints", is_refused=True)
        named = [each for each in self.partitions if each.name in request.partitions]
        for partition in named or [self._default]:
            record = self._record_in(partition, job, request, fields, eligible)
            if isinstance(record, WaitingRecord):
                for name in self._reservations.magnetic(record):
                    attracted = replace(fields, reservation=name)
                    records.append(dataclasses.replace(record, fields=attracted, is_magnetic=True))
                records.append(record)
                continue
            never = record
            if self._refuses_for_one and never.is_refused and never.reason != "BadConstraints":
                return [], never
        for record in records:
            record.nb_partitions = len(records)
        return records, never

    def _record_in(
        self, partition: PartitionRecord, job: Job, request: Request, fields: JobFields, eligible: float
    ) -> WaitingRecord | Never:
        """A job that waits in a partition, or why it never can run there."""
        time_limit = job.walltime if fields.time_limit is None else fields.time_limit
        asked = self._asked_in(request, fields, partition)
        limit = minutes(time_limit, partition.settings.max_time)
        least = limit if fields.time_min is None else minutes(fields.time_min, limit * 60)
        record = WaitingRecord(job, self._count, fields, partition, asked, limit, least, eligible)
        qos = self._accounts.qos_of(record)
        flags = () if qos is None else qos.flags
        if asked.most_switches:
            self._let_wait_for_a_switch(record)
        record.reserves = "no_reserve" not in flags
        record.turn = RUNS_ALREADY if fields.runs else self._turns[None if qos is None else qos.name]
        record.give_priority(0)
        if "partition_time_limit" in flags:
            record.limit = minutes(time_limit, inf)
        return self._why_never(record, time_limit, "" if qos is None else qos.name, flags) or record

    def _let_wait_for_a_switch(self, record: WaitingRecord) -> None:
        """Let a job wait for nodes behind few switches for so long, and not longer."""
        most, own = self._configuration.scheduling.max_switch_wait, record.fields.switch_wait
        record.patient_until = record.eligible + (most if own is None else min(own, most))
        record.relaxed = replace(record.asked, most_switches=0, number=-1 - record.asked.number)

    def _why_never(
        self, record: WaitingRecord, time_limit: float, qos: str, flags: Collection[str]
    ) -> Never | None:
        """Why a job could never run in its partition, if it could not."""
        if record.fields.runs:
            return None
        account, asked = self._accounts.account_of(record), record.asked
        if why := _why_not_in(record, account, qos, flags, time_limit, self._configuration):
            return why
        if self._selector.select(record.relaxed or asked, asked.nodes, self._empty) is None:
            return Never("BadConstraints", is_refused=True)
        if "deny_on_limit" in flags and self._limits.forbid_alone(record):
            return Never("QOSResourceLimit", is_refused=True)
        return None

    def _asked_in(self, request: Request, fields: JobFields, partition: PartitionRecord) -> Asked:
        key = (request, _shape(fields), tuple(fields.gpus.items()), partition.number)
        asked = self._asked.get(key)
        if asked is None:
            anywhere = demand_of(replace(request, partitions=(), one_switch=False), self._platform)
            names = [self._platform.nodes[place].name for places in anywhere.meant for place in places]
            nodes = self.machine.named(names) & partition.nodes & ~self.machine.named(expand(fields.exclude))
            required = self.machine.named(expand(fields.node_list))
            request = replace(request, least_nodes=max(request.least_nodes, required.bit_count()))
            asked = asked_of(len(self._asked), request, fields, nodes, self._rules(partition), required)
            most = fields.switches or int(request.one_switch)
            if most and self.machine.switches is not None:
                asked = replace(asked, most_switches=most)
            self._asked[key] = asked
        return asked

    def _rules(self, of: PartitionRecord) -> PartitionRules:
        partition, selection = of.settings, self._configuration.selection
        of_cpu, of_node, most = (
            partition.def_mem_per_cpu,
            partition.def_mem_per_node,
            partition.max_mem_per_cpu,
        )
        if of_cpu is None and of_node is None:
            of_cpu, of_node = selection.def_mem_per_cpu, selection.def_mem_per_node
        rules = PartitionRules(
            self.machine,
            self._others,
            of.nodes,
            whole_nodes=selection.type == "linear" or partition.over_subscribe == "exclusive",
            most_cpus_of_node=partition.max_cpus_per_node or 0,
            one_task_per_core=selection.one_task_per_core,
            least_loaded=selection.lln or partition.lln,
        )
        if not selection.memory:
            return rules
        return replace(
            rules,
            consumes_memory=True,
            memory_per_cpu=of_cpu or 0,
            memory_per_node=of_node or 0,
            most_memory_per_cpu=selection.max_mem_per_cpu if most is None else most,
        )


def _why_not_in(
    record: WaitingRecord,
    account: str,
    qos: str,
    flags: Collection[str],
    time_limit: float,
    configuration: Configuration,
) -> Never | None:
    """Why the partition of a record does not take its job, if it does not; the flags are those of its QOS."""
    partition = record.partition.settings
    refuses = configuration.scheduling.enforce_part_limits != "no"
    if partition.state not in ("up", "drain"):
        return Never("PartitionDown", partition.state == "inactive")
    if not _takes_user(partition, record.job.user or "", configuration):
        return Never("AccessDenied", is_refused=True)
    if not record.fields.reservation and (partition.req_resv or "require_reservation" in flags):
        return Never("ReservationRequired", is_refused=True)
    if partition.max_time < time_limit < inf and "partition_time_limit" not in flags:
        return Never("PartitionTimeLimit", refuses)
    if not _takes_size(partition, record, flags):
        return Never("PartitionNodeLimit", refuses)
    if not _is_let_in(account, partition.allow_accounts, partition.deny_accounts):
        return Never("AccountNotAllowed", refuses)
    if qos and not _is_let_in(qos, partition.allow_qos, partition.deny_qos):
        return Never("QOSNotAllowed", refuses)
    return None


def _is_let_in(name: str, allowed: Collection[str], denied: Collection[str]) -> bool:
    """Whether an account or a QOS is let in; who is allowed counts before who is denied."""
    return name in allowed if allowed else name not in denied


def _takes_size(partition: Partition, record: WaitingRecord, flags: Collection[str]) -> bool:
    """Whether a job asks for neither too many nodes nor too few."""
    asked, most = record.asked, inf if partition.max_nodes is None else partition.max_nodes
    is_too_large = asked.least_nodes > most and "partition_max_nodes" not in flags
    return not is_too_large and (asked.most_nodes >= partition.min_nodes or "partition_min_nodes" in flags)


def _takes_user(partition: Partition, user: str, configuration: Configuration) -> bool:
    """Whether a user may use a partition; where nobody knows the groups, all of them."""
    groups = configuration.groups
    if user == ROOT:
        return True
    allowed = {each for name in partition.allow_groups for each in groups.get(name, ())}
    return not partition.root_only and (user in allowed or not (groups and partition.allow_groups))
