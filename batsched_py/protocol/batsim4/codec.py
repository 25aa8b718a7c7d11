"""Messages in the JSON of Batsim 4."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from batsched_py.errors import ProtocolError
from batsched_py.protocol import dialect
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim4 import jobs
from batsched_py.protocol.batsim4.jobs import job_from_json, job_to_json, profile_from_json, profile_to_json
from batsched_py.protocol.dialect import EventTable, OpenShape, Shape, hosts_in
from batsched_py.protocol.jobs import Host, HostState, Job, JobState, sleep_pstates
from batsched_py.protocol.shown import shown

HAPPENINGS, DECISIONS = EventTable(), EventTable()

Fields = dict[str, Any]


class _Nothing(Shape):
    """An event that says nothing but its type and time."""


class _PowerState(Shape):
    resources: str
    state: str

    def read(self) -> ev.Event:
        if not re.fullmatch("-?[0-9]{1,9}", self.state):
            raise ProtocolError(
                f"field `state`: expected a power state's number as a string, got {shown(self.state)}"
            )
        return self.event(hosts=hosts_in(self.resources, "resources"), pstate=int(self.state))

    @classmethod
    def write(cls, event: Any) -> Any:
        return cls(str(event.hosts), str(event.pstate))


def _named(job: Job, job_id: str) -> Job:
    if job.id != job_id:
        raise ProtocolError(f"field `job_id`: {shown(job_id)} but the job calls itself {shown(job.id)}")
    return job


# --- happenings: Batsim -> decision process ------------------------------------------------------


class _Host(Struct):
    id: int
    name: str
    state: HostState = HostState.IDLE
    properties: dict[str, str] = {}
    zone_properties: dict[str, str] = {}

    def read(self) -> Host:
        pstates = sleep_pstates(self.properties)
        return Host(self.id, self.name, self.state, self.properties, self.zone_properties, pstates)


#: What Batsim may be told, with the name of that here and its type.
_SETTINGS: dict[str, tuple[str, type[bool] | type[str]]] = {
    "profiles-forwarded-on-submission": ("forward_profiles", bool),
    "dynamic-jobs-enabled": ("dynamic_jobs", bool),
    "dynamic-jobs-acknowledged": ("acknowledge_dynamic_jobs", bool),
    "profile-reuse-enabled": ("profile_reuse", bool),
    "sched-config": ("scheduler_config", str),
    "forward-unknown-events": ("forward_unknown_events", bool),
}


@HAPPENINGS.add("SIMULATION_BEGINS", ev.SimulationBegins)
class _SimulationBegins(Shape):
    nb_resources: int
    nb_compute_resources: int
    nb_storage_resources: int
    allow_compute_sharing: bool
    allow_storage_sharing: bool
    config: Fields
    compute_resources: list[_Host]
    storage_resources: list[_Host] = []
    workloads: dict[str, str] = {}
    profiles: dict[str, dict[str, Fields]] = {}

    def read(self) -> ev.Event:
        told: Fields = {ours: kind(self.config.get(name, kind())) for name, (ours, kind) in _SETTINGS.items()}
        told |= {"compute_sharing": self.allow_compute_sharing, "storage_sharing": self.allow_storage_sharing}
        return ev.SimulationBegins(
            hosts=[host.read() for host in self.compute_resources],
            storages=[host.read() for host in self.storage_resources],
            settings=ev.Settings(**told),
            workloads=self.workloads,
            profiles={
                workload: {name: profile_from_json(fields) for name, fields in profiles.items()}
                for workload, profiles in self.profiles.items()
            },
        )

    @classmethod
    def write(cls, e: ev.SimulationBegins) -> Any:
        told = {theirs: getattr(e.settings, ours) for theirs, (ours, _) in _SETTINGS.items()}
        return cls(
            nb_resources=len(e.hosts) + len(e.storages),
            nb_compute_resources=len(e.hosts),
            nb_storage_resources=len(e.storages),
            allow_compute_sharing=e.settings.compute_sharing,
            allow_storage_sharing=e.settings.storage_sharing,
            config={
                "redis-enabled": False,
                "redis-hostname": "127.0.0.1",
                "redis-port": 6379,
                "redis-prefix": "default",
                **told,
            },
            compute_resources=msgspec.convert(e.hosts, list[_Host], from_attributes=True),
            storage_resources=msgspec.convert(e.storages, list[_Host], from_attributes=True),
            workloads=dict(e.workloads),
            profiles={
                workload: {name: profile_to_json(profile) for name, profile in profiles.items()}
                for workload, profiles in e.profiles.items()
            },
        )


HAPPENINGS.add_plain("SIMULATION_ENDS", ev.SimulationEnds)


@HAPPENINGS.add("JOB_SUBMITTED", ev.JobSubmitted)
class _JobSubmitted(Shape, omit_defaults=True):
    job_id: str
    job: Fields | None = None
    profile: Fields | None = None

    def read(self) -> ev.Event:
        if self.job is None:
            raise ProtocolError("field `job`: missing (Batsim's redis storage is not supported)")
        profile = None if self.profile is None else profile_from_json(self.profile)
        return ev.JobSubmitted(_named(job_from_json(self.job), self.job_id), profile)

    @classmethod
    def write(cls, e: ev.JobSubmitted) -> Any:
        return cls(e.job.id, job_to_json(e.job), None if e.profile is None else profile_to_json(e.profile))


@HAPPENINGS.add("JOB_COMPLETED", ev.JobCompleted)
class _JobCompleted(Shape):
    job_id: str
    job_state: JobState
    return_code: int = 0
    alloc: str = ""

    def read(self) -> ev.Event:
        return ev.JobCompleted(self.job_id, self.job_state, hosts_in(self.alloc, "alloc"), self.return_code)

    @classmethod
    def write(cls, e: ev.JobCompleted) -> Any:
        return cls(e.job_id, e.state, e.return_code, str(e.hosts))


class _Progress(Struct, omit_defaults=True):
    profile_name: str | None = None
    profile: str = ""
    """The name of the field in Batsim's documentation."""
    progress: float | None = None
    current_task_index: int | None = None
    current_task: _Progress | None = None

    def read(self) -> ev.Progress:
        return ev.Progress(
            profile=self.profile_name or self.profile,
            done=self.progress or 0.0,
            task_index=self.current_task_index,
            task=None if self.current_task is None else self.current_task.read(),
        )

    @classmethod
    def write(cls, node: ev.Progress) -> _Progress:
        if node.task_index is None:
            return cls(node.profile, progress=node.done)
        task = None if node.task is None else cls.write(node.task)
        return cls(node.profile, current_task_index=node.task_index, current_task=task)


@HAPPENINGS.add("JOB_KILLED", ev.JobsKilled)
class _JobsKilled(Shape):
    job_ids: list[str]
    job_progress: dict[str, _Progress] = {}

    def read(self) -> ev.Event:
        return ev.JobsKilled(self.job_ids, {job: node.read() for job, node in self.job_progress.items()})

    @classmethod
    def write(cls, e: ev.JobsKilled) -> Any:
        return cls(e.job_ids, {job: _Progress.write(node) for job, node in e.progress.items()})


HAPPENINGS.add_plain("RESOURCE_STATE_CHANGED", ev.HostsStateChanged, _PowerState)
HAPPENINGS.add_plain("REQUESTED_CALL", ev.RequestedCall, _Nothing)
HAPPENINGS.add_plain("ANSWER", ev.EnergyAnswer, rename={"joules": "consumed_energy"})


@HAPPENINGS.add("QUERY", ev.WaitingTimeQuery)
class _WaitingTimeQuery(Shape):
    requests: dict[str, Fields]

    def read(self) -> ev.Event:
        if list(self.requests) != ["estimate_waiting_time"]:
            raise ProtocolError(f"field `requests`: unknown query {shown(sorted(self.requests))}")
        job = self.requests["estimate_waiting_time"].get("job")
        if not isinstance(job, dict):
            raise ProtocolError(f"field `requests`: expected an object as `job`, got {shown(job)}")
        return ev.WaitingTimeQuery(job_from_json(job))

    @classmethod
    def write(cls, e: ev.WaitingTimeQuery) -> Any:
        return cls({"estimate_waiting_time": {"job_id": e.job.id, "job": job_to_json(e.job)}})


for _event, _tag in (
    (ev.NoMoreStaticJobs, "no_more_static_job_to_submit"),
    (ev.NoMoreExternalEvents, "no_more_external_event_to_occur"),
    (ev.HostsUnavailable, "event_machine_unavailable"),
    (ev.HostsAvailable, "event_machine_available"),
):
    HAPPENINGS.add_plain("NOTIFY", _event, rename={"hosts": "resources"}, tag_field="type", tag=_tag)
HAPPENINGS.add_plain("NOTIFY", ev.ExternalEvent, OpenShape)
HAPPENINGS.add_plain("FROM_JOB_MSG", ev.JobSaid, rename={"message": "msg"})


# --- decisions: decision process -> Batsim -------------------------------------------------------


class _IoJob(Struct, omit_defaults=True):
    alloc: str
    profile_name: str
    profile: Fields | None = None

    def read(self) -> ev.IoJob:
        profile = None if self.profile is None else profile_from_json(self.profile)
        return ev.IoJob(self.profile_name, hosts_in(self.alloc, "additional_io_job.alloc"), profile)

    @classmethod
    def write(cls, job: ev.IoJob) -> _IoJob:
        profile = None if job.profile is None else profile_to_json(job.profile)
        return cls(str(job.hosts), job.profile_name, profile)


@DECISIONS.add("EXECUTE_JOB", ev.ExecuteJob)
class _ExecuteJob(Shape, omit_defaults=True):
    job_id: str
    alloc: str
    mapping: dict[str, int | str] | None = None
    storage_mapping: dict[str, int] | None = None
    additional_io_job: _IoJob | None = None

    def read(self) -> ev.Event:
        given = [self.mapping, self.storage_mapping, self.additional_io_job]
        if given.count(None) < 2:
            raise ProtocolError(
                "at most one of `mapping`, `storage_mapping`, `additional_io_job` may be given"
            )
        return ev.ExecuteJob(
            self.job_id,
            hosts_in(self.alloc, "alloc"),
            None if self.mapping is None else _places(self.mapping),
            self.storage_mapping,
            None if self.additional_io_job is None else self.additional_io_job.read(),
        )

    @classmethod
    def write(cls, e: ev.ExecuteJob) -> Any:
        mapping: dict[str, int | str] | None = None
        if e.mapping is not None:
            mapping = {str(executor): place for executor, place in enumerate(e.mapping)}
        io_job = None if e.io_job is None else _IoJob.write(e.io_job)
        return cls(e.job_id, str(e.hosts), mapping, e.storage_mapping, io_job)


def _places(mapping: dict[str, int | str]) -> list[int]:
    try:
        places = {int(executor): int(host) for executor, host in mapping.items()}
        return [places[executor] for executor in range(len(places))]
    except (ValueError, KeyError):
        raise ProtocolError(
            "field `mapping`: must give an integer for each executor from 0 on, without a hole"
        ) from None


DECISIONS.add_plain("REJECT_JOB", ev.RejectJob)
DECISIONS.add_plain("KILL_JOB", ev.KillJobs)
DECISIONS.add_plain("CALL_ME_LATER", ev.CallMeLater, rename={"at": "timestamp"})


@DECISIONS.add("REGISTER_PROFILE", ev.RegisterProfile)
class _RegisterProfile(Shape):
    workload_name: str
    profile_name: str
    profile: Fields

    def read(self) -> ev.Event:
        return ev.RegisterProfile(self.workload_name, self.profile_name, profile_from_json(self.profile))

    @classmethod
    def write(cls, e: ev.RegisterProfile) -> Any:
        return cls(e.workload, e.name, profile_to_json(e.profile))


@DECISIONS.add("REGISTER_JOB", ev.RegisterJob)
class _RegisterJob(Shape):
    job_id: str
    job: Fields

    def read(self) -> ev.Event:
        job = job_from_json(self.job, workload=self.job_id.partition("!")[0])
        return ev.RegisterJob(_named(job, self.job_id))

    @classmethod
    def write(cls, e: ev.RegisterJob) -> Any:
        return cls(e.job.id, job_to_json(e.job))


DECISIONS.add_plain("NOTIFY", ev.RegistrationFinished, tag_field="type", tag="registration_finished")
DECISIONS.add_plain("NOTIFY", ev.ContinueRegistration, tag_field="type", tag="continue_registration")
DECISIONS.add_plain("SET_RESOURCE_STATE", ev.SetHostsState, _PowerState)
DECISIONS.add_plain("SET_JOB_METADATA", ev.SetJobMetadata)
DECISIONS.add_plain("CHANGE_JOB_STATE", ev.ChangeJobState, omit_defaults=True, rename={"state": "job_state"})


@DECISIONS.add("QUERY", ev.QueryEnergy)
class _QueryEnergy(Shape):
    requests: dict[str, Fields]

    def read(self) -> ev.Event:
        if list(self.requests) != ["consumed_energy"]:
            asked = shown(sorted(self.requests))
            raise ProtocolError(f"field `requests`: only consumed_energy can be asked for, got {asked}")
        return ev.QueryEnergy()

    @classmethod
    def write(cls, e: ev.QueryEnergy) -> Any:
        return cls({"consumed_energy": {}})


@DECISIONS.add("ANSWER", ev.WaitingTimeAnswer)
class _WaitingTimeAnswer(Shape):
    estimate_waiting_time: Fields | None = None

    def read(self) -> ev.Event:
        answer = self.estimate_waiting_time
        if answer is None:
            raise ProtocolError("unknown answer []")
        seconds = jobs.number(answer.get("estimated_waiting_time"), "estimated_waiting_time")
        return ev.WaitingTimeAnswer(job_id=str(answer.get("job_id", "")), seconds=seconds)

    @classmethod
    def write(cls, e: ev.WaitingTimeAnswer) -> Any:
        return cls({"job_id": e.job_id, "estimated_waiting_time": e.seconds})


DECISIONS.add_plain("TO_JOB_MSG", ev.TellJob, rename={"message": "msg"})


class Batsim4Codec(dialect.Codec):
    """Encodes and decodes messages, each independently. There is no handshake: every message is a request."""

    happenings, decisions = HAPPENINGS, DECISIONS

    def encode_request(self, message: ev.Message) -> bytes:
        """A message of Batsim, with every non-integer printed to six decimals."""
        try:
            events = ",".join([_print(event) for event in message.events])
            return f'{{"now":{jobs.six_decimals(message.now)},"events":[{events}]}}'.encode()
        except dialect.UNSPEAKABLE as error:
            raise ProtocolError(f"this cannot be written as JSON: {error}") from None

    def encode_reply(self, message: ev.Message) -> bytes:
        """A message of a decision process, with all digits of numbers."""
        events = [DECISIONS.spell(event) for event in message.events]
        return dialect.encode(message.now, events, jobs.six_decimals)


def _print(event: ev.Event) -> str:
    """The text of an event of Batsim; frequent events have a faster way."""
    kind, printed = _PRINTED.get(type(event), ("", None))
    if printed is None or event.extra:
        return jobs.six_decimals(msgspec.to_builtins(HAPPENINGS.spell(event)))
    return f'{{"timestamp":{jobs.six_decimals(event.time)},"type":"{kind}","data":{printed(event)}}}'


def _print_submitted(e: ev.JobSubmitted) -> str:
    profile = "" if e.profile is None else f',"profile":{jobs.six_decimals(profile_to_json(e.profile))}'
    return f'{{"job_id":{jobs.quote(e.job.id)},"job":{jobs.print_job(e.job)}{profile}}}'


def _print_completed(e: ev.JobCompleted) -> str:
    return (
        f'{{"job_id":{jobs.quote(e.job_id)},"job_state":"{e.state}",'
        f'"return_code":{e.return_code},"alloc":"{e.hosts}"}}'
    )


#: The events that are frequent enough to print their data directly: their types and how.
_PRINTED: dict[type[ev.Event], tuple[str, Callable[[Any], str]]] = {
    ev.JobSubmitted: ("JOB_SUBMITTED", _print_submitted),
    ev.JobCompleted: ("JOB_COMPLETED", _print_completed),
}
