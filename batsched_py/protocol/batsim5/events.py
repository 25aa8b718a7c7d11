"""The events of Batsim 5, each with its shape in messages.

Nested objects of a happening with more fields than the events here have are kept unchanged among the event's
extra fields. These are written last, so nothing is lost.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field, structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim5 import jobs
from batsched_py.protocol.batsim5.jobs import profile_from_message, profile_to_message
from batsched_py.protocol.dialect import UNREADABLE, EventTable, Shape, hosts_in
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, HostState, JobState, sleep_pstates
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.shown import shown

HAPPENINGS, DECISIONS = EventTable("event_type", "event"), EventTable("event_type", "event")

Fields = dict[str, Any]


def _kept(shape: Shape, event: ev.Event, *names: str) -> ev.Event:
    """The event, with those fields kept as extra ones that it would write differently."""
    said, spelled = (
        msgspec.json.decode(msgspec.json.encode(one)) for one in (shape, type(shape).write(event))
    )
    extra = {name: said[name] for name in names if name in said and said[name] != spelled.get(name, UNSET)}
    event.extra = extra or event.extra
    return event


_PSTATE = {"hosts": "host_ids"}

#: Hosts that are turned off are put into a power state in which they sleep.
_ON_OFF = {"hosts": "host_ids", "pstate": "state"}

#: How many values an unsigned number of the protocol can have.
_UNSIGNED = 2**32


def _signed(number: int) -> int:
    """What an unsigned number stands for if it was a negative one.

    >>> _signed(7), _signed(4294967295)
    (7, -1)
    """
    return number - _UNSIGNED if _UNSIGNED // 2 <= number < _UNSIGNED else number


# --- happenings: Batsim -> decision process ------------------------------------------------------


class _Property(Struct):
    key: str
    value: str


class _Host(Struct):
    id: int
    name: str
    pstate: int = 0
    pstate_count: int = 1
    state: str = "IDLE"
    properties: list[_Property] = []
    zone_properties: list[_Property] = []
    core_count: int = 1
    computation_speed: list[float] = []

    def read(self) -> Host:
        try:
            state = HostState(self.state.lower())
        except ValueError:
            raise ProtocolError(f"field `state` of host {self.id}: got {shown(self.state)}") from None
        properties = {item.key: item.value for item in self.properties}
        zone = {item.key: item.value for item in self.zone_properties}
        sleeping = sleep_pstates(properties)
        if state is HostState.IDLE and self.pstate in sleeping:
            state = HostState.SLEEPING
        return Host(self.id, self.name, state, properties, zone, sleeping)

    @classmethod
    def write(cls, host: Host, speed: float | None) -> _Host:
        pstates = [state for sleep, ways in host.sleep_pstates.items() for state in (sleep, *ways)]
        return cls(
            id=host.id,
            name=host.name,
            pstate_count=1 + max(pstates, default=0),
            state=host.state.upper(),
            properties=[_Property(key, value) for key, value in host.properties.items()],
            zone_properties=[_Property(key, value) for key, value in host.zone_properties.items()],
            computation_speed=[] if speed is None else [speed],
        )


class _Workload(Struct):
    name: str
    filename: str


@HAPPENINGS.add("SimulationBeginsEvent", ev.SimulationBegins)
class _SimulationBegins(Shape):
    host_number: int
    computation_host_number: int
    computation_hosts: list[Fields]
    storage_host_number: int = 0
    storage_hosts: list[Fields] = []
    workloads: list[_Workload] = []
    profiles: list[Fields] = []
    batprotocol_version: str | UnsetType = UNSET
    batsim_version: str | UnsetType = UNSET
    batsim_commit: str | UnsetType | None = UNSET
    batsim_arguments: list[str] | UnsetType = UNSET
    batsim_execution_context_json: str | UnsetType = UNSET
    external_event_lists: list[Any] | UnsetType = UNSET

    def read(self) -> ev.Event:
        try:
            hosts = msgspec.convert(self.computation_hosts, list[_Host])
            storages = msgspec.convert(self.storage_hosts, list[_Host])
        except msgspec.ValidationError as error:
            raise ProtocolError(f"hosts: {error}") from None
        told = all(0 <= host.pstate < len(host.computation_speed) for host in hosts)
        profiles: dict[str, dict[str, Profile]] = {}
        for fields in self.profiles:
            workload, name, profile = profile_from_message(fields)
            profiles.setdefault(workload, {})[name] = profile
        event = ev.SimulationBegins(
            hosts=[host.read() for host in hosts],
            storages=[host.read() for host in storages],
            workloads={workload.name: workload.filename for workload in self.workloads},
            profiles=profiles,
            speeds=[host.computation_speed[host.pstate] for host in hosts] if hosts and told else None,
        )
        kept = ("computation_hosts", "storage_hosts", "profiles", *self.__struct_fields__[7:])
        return _kept(self, event, *kept)

    @classmethod
    def write(cls, e: ev.SimulationBegins) -> Any:
        speeds: list[Any] = [None] * len(e.hosts) if e.speeds is None else e.speeds
        return cls(
            host_number=len(e.hosts) + len(e.storages),
            computation_host_number=len(e.hosts),
            computation_hosts=msgspec.to_builtins(list(map(_Host.write, e.hosts, speeds))),
            storage_host_number=len(e.storages),
            storage_hosts=msgspec.to_builtins([_Host.write(host, None) for host in e.storages]),
            workloads=[_Workload(name, file) for name, file in e.workloads.items()],
            profiles=[
                profile_to_message(profile, name, workload)
                for workload, profiles in e.profiles.items()
                for name, profile in profiles.items()
            ],
        )


HAPPENINGS.add_plain("SimulationEndsEvent", ev.SimulationEnds)


@HAPPENINGS.add("JobSubmittedEvent", ev.JobSubmitted)
class _JobSubmitted(Shape):
    job_id: str
    job: Fields
    submission_time: float
    profile: Fields | UnsetType = UNSET

    def read(self) -> ev.Event:
        job = jobs.job_from_message(self.job_id, self.job, self.submission_time)
        profile = None if self.profile is UNSET else profile_from_message(self.profile)[2]
        return _kept(self, ev.JobSubmitted(job, profile), "job", "profile")

    @classmethod
    def write(cls, e: ev.JobSubmitted) -> Any:
        job, profile = e.job, e.profile
        spelled = UNSET if profile is None else profile_to_message(profile, job.profile, job.workload)
        return cls(job.id, jobs.job_to_message(job), job.submission_time, spelled)


@HAPPENINGS.add("JobCompletedEvent", ev.JobCompleted)
class _JobCompleted(Shape):
    """The message does not contain the hosts that the job leaves; the codec remembers them.

    Its return code has no sign: -1, for a job that has reached its walltime, is 4294967295.
    """

    job_id: str
    state: JobState
    return_code: int = 0

    def read(self) -> ev.Event:
        return ev.JobCompleted(self.job_id, self.state, HostSet.range(0), _signed(self.return_code))

    @classmethod
    def write(cls, e: ev.JobCompleted) -> Any:
        return cls(e.job_id, e.state, e.return_code % _UNSIGNED)


class _Wrapper(Struct):
    kill_progress_type: str
    kill_progress: Fields


class _JobProgress(Struct):
    job_id: str
    wrapper: _Wrapper


class _Atomic(Struct):
    profile_id: str
    progress: float


class _Sequential(Struct):
    profile_id: str
    current_repetition: int
    current_task_index: int
    current_task_progress: _Wrapper | None = None


def _read_progress(wrapper: _Wrapper, workload: str) -> ev.Progress:
    match wrapper.kill_progress_type:
        case "KillProgressAtomicProfile":
            leaf = msgspec.convert(wrapper.kill_progress, _Atomic)
            return ev.Progress(jobs.short_name(leaf.profile_id, workload), leaf.progress)
        case "KillProgressSequentialProfile":
            node = msgspec.convert(wrapper.kill_progress, _Sequential)
            task = node.current_task_progress
            return ev.Progress(
                jobs.short_name(node.profile_id, workload),
                task_index=_signed(node.current_task_index),
                task=None if task is None else _read_progress(task, workload),
            )
        case other:
            raise ProtocolError(f"field `progresses`: {shown(other)} is not known")


def _write_progress(node: ev.Progress, workload: str) -> _Wrapper:
    name = jobs.full_name(node.profile, workload)
    if node.task_index is None:
        return _Wrapper("KillProgressAtomicProfile", structs.asdict(_Atomic(name, node.done)))
    task = None if node.task is None else _write_progress(node.task, workload)
    repetition, index = divmod(node.task_index, node.nb_tasks) if node.nb_tasks else (0, node.task_index)
    spelled = msgspec.to_builtins(_Sequential(name, repetition, index % _UNSIGNED, task))
    return _Wrapper("KillProgressSequentialProfile", spelled)


@HAPPENINGS.add("JobsKilledEvent", ev.JobsKilled)
class _JobsKilled(Shape):
    job_ids: list[str]
    progresses: list[_JobProgress] = []
    profiles: list[Fields] | UnsetType = UNSET

    def read(self) -> ev.Event:
        said = ((one.job_id, one.wrapper) for one in self.progresses)
        progress = {job: _read_progress(wrapper, job.partition("!")[0]) for job, wrapper in said}
        return _kept(self, ev.JobsKilled(self.job_ids, progress), "progresses", "profiles")

    @classmethod
    def write(cls, e: ev.JobsKilled) -> Any:
        said = ((job, _write_progress(node, job.partition("!")[0])) for job, node in e.progress.items())
        return cls(e.job_ids, [_JobProgress(job, wrapper) for job, wrapper in said])


HAPPENINGS.add_plain("HostsPStateChangedEvent", ev.HostsPStateChanged, rename=_PSTATE)
HAPPENINGS.add_plain("HostsTurnedOnOffEvent", ev.HostsStateChanged, rename=_ON_OFF)


@HAPPENINGS.add("RequestedCallEvent", ev.RequestedCall)
class _RequestedCall(Shape):
    """The codec knows which of the requested calls it is."""

    call_me_later_id: str = ""
    last_periodic_call: bool = False

    def read(self) -> ev.Event:
        return ev.RequestedCall(extra={"call_me_later_id": self.call_me_later_id})

    @classmethod
    def write(cls, e: ev.RequestedCall) -> Any:
        return cls()


HAPPENINGS.add_plain("AllStaticJobsHaveBeenSubmittedEvent", ev.NoMoreStaticJobs)
HAPPENINGS.add_plain("AllStaticExternalEventsHaveBeenInjectedEvent", ev.NoMoreExternalEvents)


_MACHINES: dict[str, type[ev.HostsAvailable] | type[ev.HostsUnavailable]] = {
    "machine_available": ev.HostsAvailable,
    "machine_unavailable": ev.HostsUnavailable,
}


@HAPPENINGS.add("ExternalEventOccurredEvent", ev.HostsAvailable)
@HAPPENINGS.add("ExternalEventOccurredEvent", ev.HostsUnavailable)
@HAPPENINGS.add("ExternalEventOccurredEvent", ev.ExternalEvent)
class _ExternalEvent(Shape):
    """For Batsim 5 all external events are generic: each is a text, the ``data`` of its line in the file.

    Ours, and those that a Batsim 4 knows, are JSON objects in that text.
    """

    id: str
    external_event_type: str
    external_event: Fields

    def read(self) -> ev.Event:
        text, event = self.external_event.get("data"), ev.ExternalEvent(self.external_event, self.id)
        try:
            data = msgspec.json.decode(text if isinstance(text, str) else "")
        except UNREADABLE:
            data = None
        if isinstance(data, dict):
            event.data, kind, hosts = data, data.get("type"), data.get("resources")
            if isinstance(kind, str) and kind in _MACHINES and isinstance(hosts, str):
                machines = _MACHINES[kind](hosts_in(hosts, "external_event.resources"))
                return _kept(self, machines, *self.__struct_fields__)
        return _kept(self, event, *self.__struct_fields__)

    @classmethod
    def write(cls, e: ev.ExternalEvent | ev.HostsAvailable | ev.HostsUnavailable) -> Any:
        if isinstance(e, ev.ExternalEvent):
            text = e.data.get("data") if e.data.get("type") == "generic" else None
            data, name = e.data, e.id
        else:
            kind = "machine_available" if isinstance(e, ev.HostsAvailable) else "machine_unavailable"
            text, data, name = None, {"type": kind, "resources": str(e.hosts)}, ""
        said = text if isinstance(text, str) else msgspec.json.encode(data).decode()
        return cls(name, "GenericExternalEvent", {"data": said})


# --- decisions: decision process -> Batsim -------------------------------------------------------


class _Allocation(Struct):
    host_allocation: str
    executor_placement_type: str = "PredefinedExecutorPlacementStrategyWrapper"
    executor_placement: Fields = field(default_factory=lambda: {"strategy": "SpreadOverHostsFirst"})


class _StoragePlacement(Struct):
    storage_name: str
    host_id: int


@DECISIONS.add("ExecuteJobEvent", ev.ExecuteJob)
class _ExecuteJob(Shape):
    job_id: str
    allocation: _Allocation
    profile_allocation_override: list[Any] = []
    storage_placement: list[_StoragePlacement] = []

    def read(self) -> ev.Event:
        if self.profile_allocation_override:
            raise ProtocolError("field `profile_allocation_override`: not supported; leave it empty")
        return ev.ExecuteJob(
            self.job_id,
            hosts_in(self.allocation.host_allocation, "allocation.host_allocation"),
            _mapping(self.allocation),
            {place.storage_name: place.host_id for place in self.storage_placement} or None,
        )

    @classmethod
    def write(cls, e: ev.ExecuteJob) -> Any:
        if e.io_job is not None:
            raise ProtocolError(f"job {e.job_id} with an IO job beside it cannot be said to Batsim 5")
        allocation = _Allocation(str(e.hosts))
        if e.mapping is not None:
            allocation.executor_placement_type = "CustomExecutorToHostMapping"
            allocation.executor_placement = {"mapping": e.mapping}
        placement = [_StoragePlacement(name, host) for name, host in (e.storage_mapping or {}).items()]
        return cls(e.job_id, allocation, [], placement)


def _mapping(allocation: _Allocation) -> list[int] | None:
    kind, placement = allocation.executor_placement_type, allocation.executor_placement
    if kind == "PredefinedExecutorPlacementStrategyWrapper":
        if placement.get("strategy", "SpreadOverHostsFirst") == "SpreadOverHostsFirst":
            return None
    elif kind == "CustomExecutorToHostMapping":
        mapping = placement.get("mapping")
        if isinstance(mapping, list) and all(type(place) is int and place >= 0 for place in mapping):
            return mapping
    raise ProtocolError(
        "field `allocation.executor_placement`: expected SpreadOverHostsFirst or a mapping as a list of "
        f"integers, got {shown(placement)}"
    )


DECISIONS.add_plain("RejectJobEvent", ev.RejectJob)
DECISIONS.add_plain("KillJobsEvent", ev.KillJobs)


@DECISIONS.add("CallMeLaterEvent", ev.CallMeAtOnce)
@DECISIONS.add("CallMeLaterEvent", ev.CallMeLater)
class _CallMeLater(Shape):
    """A call at a whole number of milliseconds or seconds, with a name that the call repeats.

    If that time has passed, Batsim calls at once.
    """

    call_me_later_id: str
    when_type: str
    when: Fields

    def read(self) -> ev.Event:
        if self.when_type != "OneShot":
            raise ProtocolError(
                f"field `when_type`: {shown(self.when_type)} calls are not supported; ask for a OneShot "
                "from call to call"
            )
        time, unit = self.when.get("time"), self.when.get("time_unit", "Second")
        if type(time) is not int or not 0 <= time < 2**64:
            raise ProtocolError(f"field `when.time`: expected a whole number, got {shown(time)}")
        if unit not in ("Second", "Millisecond"):
            raise ProtocolError(f"field `when.time_unit`: expected Second or Millisecond, got {shown(unit)}")
        at = float(time) if unit == "Second" else time / 1000
        return ev.CallMeLater(at, extra={"call_me_later_id": self.call_me_later_id})

    @classmethod
    def write(cls, e: ev.CallMeLater | ev.CallMeAtOnce) -> Any:
        at = milliseconds(e.time if isinstance(e, ev.CallMeAtOnce) else e.at)
        return cls("", "OneShot", {"time": at, "time_unit": "Millisecond"})


def name_of_call(event: ev.CallMeLater | ev.RequestedCall) -> str:
    """Remove the name of a call from an event that was just read, and return it."""
    extra = event.extra or {}
    name: str = extra.pop("call_me_later_id", "")
    event.extra = extra or None
    return name


def milliseconds(at: float) -> int:
    """The whole millisecond of a time, or the last one before it from which Batsim can wait until then.

    It cannot wait for less than 10 microseconds.

    >>> milliseconds(12.345), milliseconds(12.3459), milliseconds(12.345004)
    (12345, 12345, 12344)
    """
    try:
        ticks = round(at * 1e6)
        return ticks // 1000 if ticks % 1000 == 0 else max(ticks - 10, 0) // 1000
    except (OverflowError, ValueError):
        raise ProtocolError(f"{at} cannot be written as JSON") from None


@DECISIONS.add("RegisterProfileEvent", ev.RegisterProfile)
class _RegisterProfile(Shape):
    profile: Fields

    def read(self) -> ev.Event:
        return ev.RegisterProfile(*profile_from_message(self.profile))

    @classmethod
    def write(cls, e: ev.RegisterProfile) -> Any:
        return cls(profile_to_message(e.profile, e.name, e.workload))


@DECISIONS.add("RegisterJobEvent", ev.RegisterJob)
class _RegisterJob(Shape):
    """The message does not contain the submission time: the job is submitted when it is registered."""

    job_id: str
    job: Fields

    def read(self) -> ev.Event:
        return ev.RegisterJob(jobs.job_from_message(self.job_id, self.job, 0.0))

    @classmethod
    def write(cls, e: ev.RegisterJob) -> Any:
        return cls(e.job.id, jobs.job_to_message(e.job))


DECISIONS.add_plain("FinishRegistrationEvent", ev.RegistrationFinished)
DECISIONS.add_plain("ChangeHostsPStateEvent", ev.ChangeHostsPState, rename=_PSTATE)
DECISIONS.add_plain("TurnOnOffHostsEvent", ev.SetHostsState, rename=_ON_OFF)
