"""The JSON dialect of Batsim 4.

Reading is strict about what the protocol fixes and lenient about what it leaves open: an unknown type
or field is kept and logged once. Bad text raises :class:`ProtocolError` with the event and the field.

This module reads; what is written comes from :mod:`batsched_py.protocol.batsim4_writing`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from math import inf
from typing import Any

import msgspec
from msgspec import Raw, Struct

from batsched_py.errors import ProtocolError
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim4_profiles import profile_from_json, profile_to_json
from batsched_py.protocol.batsim4_writing import encode_reply, encode_request, job_to_json, six_decimals
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState

_log = logging.getLogger(__name__)
_seen: set[str] = set()


def _log_once(text: str) -> None:
    if text not in _seen:
        _seen.add(text)
        _log.warning(text)


class _Event(Struct):
    timestamp: float
    type: str
    data: Raw


class _Envelope(Struct):
    now: float
    events: list[Raw]


class _Data(Struct, forbid_unknown_fields=True):
    """Base of the ``data`` members, one class for each shape."""


class _Empty(_Data):
    pass


class _JobId(_Data):
    job_id: str


class _JobSubmitted(_Data):
    job_id: str
    job: dict[str, Any] | None = None
    profile: dict[str, Any] | None = None


class _JobCompleted(_Data):
    job_id: str
    job_state: JobState
    return_code: int = 0
    alloc: str = ""


class _Progress(Struct):
    profile_name: str = ""
    profile: str = ""
    """How Batsim's documentation calls the name."""
    progress: float = 0.0
    current_task_index: int | None = None
    current_task: _Progress | None = None


class _JobsKilled(_Data):
    job_ids: list[str]
    job_progress: dict[str, _Progress] = {}


class _Resources(_Data):
    resources: str
    state: str


class _Requests(_Data):
    requests: dict[str, dict[str, Any]]


class _Execute(_Data):
    job_id: str
    alloc: str
    mapping: dict[str, int | str] | None = None
    storage_mapping: dict[str, int] | None = None
    additional_io_job: dict[str, Any] | None = None


class _JobIds(_Data):
    job_ids: list[str]


class _Timestamp(_Data):
    timestamp: float


class _RegisterProfile(_Data):
    workload_name: str
    profile_name: str
    profile: dict[str, Any]


class _RegisterJob(_Data):
    job_id: str
    job: dict[str, Any]


class _Metadata(_Data):
    job_id: str
    metadata: str


class _ChangeState(_Data):
    job_id: str
    job_state: JobState
    kill_reason: str | None = None


class _Text(_Data):
    job_id: str
    msg: str


class _Object(_Data):
    job_id: str
    msg: dict[str, Any]


class _Begins(_Data):
    nb_resources: int
    nb_compute_resources: int
    nb_storage_resources: int
    allow_compute_sharing: bool
    allow_storage_sharing: bool
    config: dict[str, Any]
    compute_resources: list[Host]
    storage_resources: list[Host] = []
    workloads: dict[str, str] = {}
    profiles: dict[str, dict[str, dict[str, Any]]] = {}


def _hosts(text: str, field: str) -> HostSet:
    try:
        return HostSet.parse(text)
    except ValueError as error:
        raise ProtocolError(f"field `{field}`: {error}") from None


def _number(value: Any, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ProtocolError(f"field `{field}`: expected a number, got {value!r}")
    return float(value)


def job_from_json(fields: dict[str, Any], workload: str | None = None) -> Job:
    """Read a job object; ``workload`` is put before an identifier that does not name it yet."""
    try:
        job_id, size, profile = fields["id"], fields["res"], fields["profile"]
        submission = fields["subtime"]
    except KeyError as missing:
        raise ProtocolError(f"field `job`: a job needs `{missing.args[0]}`") from None
    if isinstance(job_id, bool) or not isinstance(job_id, (str, int)):
        raise ProtocolError(f"field `job.id`: expected a string or an integer, got {job_id!r}")
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ProtocolError(f"field `job.res`: expected a number of hosts, got {size!r}")
    if not isinstance(profile, str):
        raise ProtocolError(f"field `job.profile`: expected a profile's name, got {profile!r}")
    job_id = str(job_id)
    if workload is not None and workload not in job_id:
        job_id = f"{workload}!{job_id}"
    if job_id.count("!") != 1:
        raise ProtocolError(f"field `job.id`: {job_id!r} is not of the form WORKLOAD!NAME")
    walltime = _number(fields.get("walltime", -1), "job.walltime")
    if walltime != -1 and not walltime > 0:
        raise ProtocolError(f"field `job.walltime`: must be positive, or -1 for none, got {walltime:g}")
    return Job(
        id=job_id,
        submission_time=_number(submission, "job.subtime"),
        size=size,
        walltime=inf if walltime == -1 else walltime,
        profile=profile,
        extra={k: v for k, v in fields.items() if k not in _JOB_FIELDS},
    )


_JOB_FIELDS = frozenset({"id", "subtime", "res", "walltime", "profile"})


def _read_progress(node: _Progress) -> ev.Progress:
    return ev.Progress(
        profile=node.profile_name or node.profile,
        done=node.progress,
        task_index=node.current_task_index,
        task=None if node.current_task is None else _read_progress(node.current_task),
    )


def _read_begins(d: _Begins) -> ev.Event:
    config = d.config
    settings = ev.Settings(
        dynamic_jobs=bool(config.get("dynamic-jobs-enabled", False)),
        acknowledge_dynamic_jobs=bool(config.get("dynamic-jobs-acknowledged", False)),
        profile_reuse=bool(config.get("profile-reuse-enabled", False)),
        forward_profiles=bool(config.get("profiles-forwarded-on-submission", False)),
        forward_unknown_events=bool(config.get("forward-unknown-events", False)),
        compute_sharing=d.allow_compute_sharing,
        storage_sharing=d.allow_storage_sharing,
        scheduler_config=str(config.get("sched-config", "")),
    )
    return ev.SimulationBegins(
        hosts=d.compute_resources,
        storages=d.storage_resources,
        settings=settings,
        workloads=d.workloads,
        profiles={
            workload: {name: profile_from_json(profile) for name, profile in profiles.items()}
            for workload, profiles in d.profiles.items()
        },
    )


def _read_submitted(d: _JobSubmitted) -> ev.Event:
    if d.job is None:
        raise ProtocolError("field `job`: missing (Batsim's redis storage is not supported)")
    job = job_from_json(d.job)
    if job.id != d.job_id:
        raise ProtocolError(f"field `job_id`: {d.job_id!r} but the job calls itself {job.id!r}")
    return ev.JobSubmitted(job=job, profile=None if d.profile is None else profile_from_json(d.profile))


def _read_register_job(d: _RegisterJob) -> ev.Event:
    job = job_from_json(d.job, workload=d.job_id.partition("!")[0])
    if job.id != d.job_id:
        raise ProtocolError(f"field `job_id`: {d.job_id!r} but the job calls itself {job.id!r}")
    return ev.RegisterJob(job=job)


def _read_request_query(d: _Requests) -> ev.Event:
    if "estimate_waiting_time" in d.requests:
        query = d.requests["estimate_waiting_time"]
        return ev.WaitingTimeQuery(job_id=str(query.get("job_id", "")), job=query.get("job", {}))
    raise ProtocolError(f"field `requests`: unknown query {sorted(d.requests)}")


def _read_reply_query(d: _Requests) -> ev.Event:
    if list(d.requests) == ["consumed_energy"]:
        return ev.QueryEnergy()
    raise ProtocolError(f"field `requests`: only consumed_energy can be asked for, got {sorted(d.requests)}")


def _read_request_answer(d: dict[str, Any]) -> ev.Event:
    if "consumed_energy" not in d:
        raise ProtocolError(f"unknown answer {sorted(d)}")
    return ev.EnergyAnswer(joules=_number(d["consumed_energy"], "consumed_energy"))


def _read_reply_answer(d: dict[str, Any]) -> ev.Event:
    answer = d.get("estimate_waiting_time")
    if not isinstance(answer, dict):
        raise ProtocolError(f"unknown answer {sorted(d)}")
    seconds = _number(answer.get("estimated_waiting_time"), "estimated_waiting_time")
    return ev.WaitingTimeAnswer(job_id=str(answer.get("job_id", "")), seconds=seconds)


def _read_request_notify(d: dict[str, Any]) -> ev.Event:
    match d.get("type"):
        case "no_more_static_job_to_submit":
            return ev.NoMoreStaticJobs()
        case "no_more_external_event_to_occur":
            return ev.NoMoreExternalEvents()
        case "event_machine_unavailable":
            return ev.HostsUnavailable(hosts=_hosts(str(d.get("resources", "")), "resources"))
        case "event_machine_available":
            return ev.HostsAvailable(hosts=_hosts(str(d.get("resources", "")), "resources"))
        case str():
            return ev.ExternalEvent(data=d)
        case other:
            raise ProtocolError(f"field `type`: expected the kind of notice, got {other!r}")


def _read_reply_notify(d: dict[str, Any]) -> ev.Event:
    match d.get("type"):
        case "registration_finished":
            return ev.RegistrationFinished()
        case "continue_registration":
            return ev.ContinueRegistration()
        case other:
            raise ProtocolError(
                f"field `type`: expected registration_finished or continue_registration, got {other!r}"
            )


def _read_execute(d: _Execute) -> ev.Event:
    optional = (d.mapping is not None) + (d.storage_mapping is not None) + (d.additional_io_job is not None)
    if optional > 1:
        raise ProtocolError("at most one of `mapping`, `storage_mapping`, `additional_io_job` may be given")
    mapping = None
    if d.mapping is not None:
        try:
            places = {int(executor): int(host) for executor, host in d.mapping.items()}
            mapping = [places[executor] for executor in range(len(places))]
        except (ValueError, KeyError):
            raise ProtocolError(
                "field `mapping`: must give an integer for each executor from 0 on, without a hole"
            ) from None
    return ev.ExecuteJob(
        job_id=d.job_id,
        hosts=_hosts(d.alloc, "alloc"),
        mapping=mapping,
        storage_mapping=d.storage_mapping,
        io_job=d.additional_io_job,
    )


def _pstate(text: str) -> int:
    if not re.fullmatch(r"-?\d+", text):
        raise ProtocolError(f"field `state`: expected a power state's number as a string, got {text!r}")
    return int(text)


_Reader = tuple[Any, Callable[[Any], ev.Event]]

_REQUEST_READERS: dict[str, _Reader] = {
    "SIMULATION_BEGINS": (_Begins, _read_begins),
    "SIMULATION_ENDS": (_Empty, lambda d: ev.SimulationEnds()),
    "JOB_SUBMITTED": (_JobSubmitted, _read_submitted),
    "JOB_COMPLETED": (
        _JobCompleted,
        lambda d: ev.JobCompleted(
            job_id=d.job_id, state=d.job_state, return_code=d.return_code, hosts=_hosts(d.alloc, "alloc")
        ),
    ),
    "JOB_KILLED": (
        _JobsKilled,
        lambda d: ev.JobsKilled(
            job_ids=d.job_ids, progress={job: _read_progress(node) for job, node in d.job_progress.items()}
        ),
    ),
    "RESOURCE_STATE_CHANGED": (
        _Resources,
        lambda d: ev.HostsStateChanged(hosts=_hosts(d.resources, "resources"), pstate=_pstate(d.state)),
    ),
    "REQUESTED_CALL": (_Empty, lambda d: ev.RequestedCall()),
    "ANSWER": (dict[str, Any], _read_request_answer),
    "QUERY": (_Requests, _read_request_query),
    "NOTIFY": (dict[str, Any], _read_request_notify),
    "FROM_JOB_MSG": (_Object, lambda d: ev.JobSaid(job_id=d.job_id, message=d.msg)),
}

_REPLY_READERS: dict[str, _Reader] = {
    "EXECUTE_JOB": (_Execute, _read_execute),
    "REJECT_JOB": (_JobId, lambda d: ev.RejectJob(job_id=d.job_id)),
    "KILL_JOB": (_JobIds, lambda d: ev.KillJobs(job_ids=d.job_ids)),
    "CALL_ME_LATER": (_Timestamp, lambda d: ev.CallMeLater(at=d.timestamp)),
    "REGISTER_PROFILE": (
        _RegisterProfile,
        lambda d: ev.RegisterProfile(
            workload=d.workload_name, name=d.profile_name, profile=profile_from_json(d.profile)
        ),
    ),
    "REGISTER_JOB": (_RegisterJob, _read_register_job),
    "NOTIFY": (dict[str, Any], _read_reply_notify),
    "SET_RESOURCE_STATE": (
        _Resources,
        lambda d: ev.SetHostsState(hosts=_hosts(d.resources, "resources"), pstate=_pstate(d.state)),
    ),
    "SET_JOB_METADATA": (_Metadata, lambda d: ev.SetJobMetadata(job_id=d.job_id, metadata=d.metadata)),
    "CHANGE_JOB_STATE": (
        _ChangeState,
        lambda d: ev.ChangeJobState(job_id=d.job_id, state=d.job_state, kill_reason=d.kill_reason),
    ),
    "QUERY": (_Requests, _read_reply_query),
    "ANSWER": (dict[str, Any], _read_reply_answer),
    "TO_JOB_MSG": (_Text, lambda d: ev.TellJob(job_id=d.job_id, message=d.msg)),
}

_envelope = msgspec.json.Decoder(_Envelope)
_event = msgspec.json.Decoder(_Event)
_decoders = {
    shape: msgspec.json.Decoder(shape)
    for readers in (_REQUEST_READERS, _REPLY_READERS)
    for shape, _ in readers.values()
}


def decode_request(text: bytes | str) -> ev.Message:
    """Read what Batsim says."""
    return _decode(text, _REQUEST_READERS)


def decode_reply(text: bytes | str) -> ev.Message:
    """Read what a decision process says."""
    return _decode(text, _REPLY_READERS)


def _decode(text: bytes | str, readers: dict[str, _Reader]) -> ev.Message:
    try:
        envelope = _envelope.decode(text)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"not a message of Batsim's protocol: {error}") from None
    except UnicodeDecodeError:
        raise ProtocolError("not a message of Batsim's protocol: the bytes are not UTF-8") from None
    except RecursionError:
        raise ProtocolError("not a message of Batsim's protocol: it is nested too deeply") from None
    events = [_decode_event(raw, index, readers) for index, raw in enumerate(envelope.events)]
    return ev.Message(envelope.now, events)


def _decode_event(raw: Raw, index: int, readers: dict[str, _Reader]) -> ev.Event:
    kind = ""
    try:
        wire = _event.decode(raw)
        kind = f" ({wire.type})"
        event = _decode_data(wire, readers)
        event.time = wire.timestamp
        return event
    except (ProtocolError, msgspec.DecodeError) as error:
        raise ProtocolError(f"event {index}{kind}: {error}") from None
    except UnicodeDecodeError:
        raise ProtocolError(f"event {index}{kind}: the bytes are not UTF-8") from None


def _decode_data(wire: _Event, readers: dict[str, _Reader]) -> ev.Event:
    if wire.type not in readers:
        _log_once(f"event type {wire.type} is not known; it is kept but not interpreted")
        return ev.Unknown(type=wire.type, data=msgspec.json.decode(wire.data))
    shape, read = readers[wire.type]
    extra = None
    try:
        data = _decoders[shape].decode(wire.data)
    except msgspec.ValidationError as error:
        if "unknown field" not in str(error):
            raise
        fields = msgspec.json.decode(wire.data)
        known = set(shape.__struct_fields__)
        extra = {name: value for name, value in fields.items() if name not in known}
        for name in extra:
            _log_once(f"field `{name}` of {wire.type} is not known; it is kept but not interpreted")
        data = msgspec.convert({k: v for k, v in fields.items() if k in known}, shape)
    event = read(data)
    event.extra = extra
    return event


__all__ = [
    "decode_reply",
    "decode_request",
    "encode_reply",
    "encode_request",
    "job_from_json",
    "job_to_json",
    "profile_from_json",
    "profile_to_json",
    "six_decimals",
]
