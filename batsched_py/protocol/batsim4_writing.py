"""Writing the JSON dialect of Batsim 4.

A decision process writes numbers in full (:func:`encode_reply`); Batsim prints every non-integer with six
decimals, and so do we in its place (:func:`encode_request`).
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quote
from math import isfinite
from typing import Any

import msgspec

from batsched_py.errors import ProtocolError
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim4_profiles import profile_to_json
from batsched_py.protocol.jobs import Job


def job_to_json(job: Job) -> dict[str, Any]:
    """The object that describes a job in messages and workload files."""
    fields: dict[str, Any] = {"id": job.id, "subtime": job.submission_time, "res": job.size}
    if job.has_walltime:
        fields["walltime"] = job.walltime
    fields["profile"] = job.profile
    fields.update(job.extra)
    return fields


def _write_progress(node: ev.Progress) -> dict[str, Any]:
    if node.task_index is None:
        return {"profile_name": node.profile, "progress": node.done}
    fields: dict[str, Any] = {"profile_name": node.profile, "current_task_index": node.task_index}
    if node.task is not None:
        fields["current_task"] = _write_progress(node.task)
    return fields


def _write_begins(e: ev.SimulationBegins) -> dict[str, Any]:
    s = e.settings
    return {
        "nb_resources": len(e.hosts) + len(e.storages),
        "nb_compute_resources": len(e.hosts),
        "nb_storage_resources": len(e.storages),
        "allow_compute_sharing": s.compute_sharing,
        "allow_storage_sharing": s.storage_sharing,
        "config": {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": s.forward_profiles,
            "dynamic-jobs-enabled": s.dynamic_jobs,
            "dynamic-jobs-acknowledged": s.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": s.profile_reuse,
            "sched-config": s.scheduler_config,
            "forward-unknown-events": s.forward_unknown_events,
        },
        "compute_resources": [msgspec.structs.asdict(host) for host in e.hosts],
        "storage_resources": [msgspec.structs.asdict(host) for host in e.storages],
        "workloads": e.workloads,
        "profiles": {
            workload: {name: profile_to_json(profile) for name, profile in profiles.items()}
            for workload, profiles in e.profiles.items()
        },
    }


def _write_execute(e: ev.ExecuteJob) -> dict[str, Any]:
    data: dict[str, Any] = {"job_id": e.job_id, "alloc": str(e.hosts)}
    if e.mapping is not None:
        data["mapping"] = {str(executor): host for executor, host in enumerate(e.mapping)}
    if e.storage_mapping is not None:
        data["storage_mapping"] = e.storage_mapping
    if e.io_job is not None:
        data["additional_io_job"] = e.io_job
    return data


def _write_submitted(e: ev.JobSubmitted) -> dict[str, Any]:
    data: dict[str, Any] = {"job_id": e.job.id, "job": job_to_json(e.job)}
    if e.profile is not None:
        data["profile"] = profile_to_json(e.profile)
    return data


def _write_change_state(e: ev.ChangeJobState) -> dict[str, Any]:
    data: dict[str, Any] = {"job_id": e.job_id, "job_state": e.state}
    if e.kill_reason is not None:
        data["kill_reason"] = e.kill_reason
    return data


_Writer = tuple[str, Callable[[Any], dict[str, Any]]]

_WRITERS: dict[type[ev.Event], _Writer] = {
    ev.SimulationBegins: ("SIMULATION_BEGINS", _write_begins),
    ev.SimulationEnds: ("SIMULATION_ENDS", lambda e: {}),
    ev.JobSubmitted: ("JOB_SUBMITTED", _write_submitted),
    ev.JobCompleted: (
        "JOB_COMPLETED",
        lambda e: {
            "job_id": e.job_id,
            "job_state": e.state,
            "return_code": e.return_code,
            "alloc": str(e.hosts),
        },
    ),
    ev.JobsKilled: (
        "JOB_KILLED",
        lambda e: {
            "job_ids": e.job_ids,
            "job_progress": {job: _write_progress(node) for job, node in e.progress.items()},
        },
    ),
    ev.HostsStateChanged: (
        "RESOURCE_STATE_CHANGED",
        lambda e: {"resources": str(e.hosts), "state": str(e.pstate)},
    ),
    ev.RequestedCall: ("REQUESTED_CALL", lambda e: {}),
    ev.EnergyAnswer: ("ANSWER", lambda e: {"consumed_energy": e.joules}),
    ev.WaitingTimeQuery: (
        "QUERY",
        lambda e: {"requests": {"estimate_waiting_time": {"job_id": e.job_id, "job": e.job}}},
    ),
    ev.NoMoreStaticJobs: ("NOTIFY", lambda e: {"type": "no_more_static_job_to_submit"}),
    ev.NoMoreExternalEvents: ("NOTIFY", lambda e: {"type": "no_more_external_event_to_occur"}),
    ev.HostsUnavailable: (
        "NOTIFY",
        lambda e: {"type": "event_machine_unavailable", "resources": str(e.hosts)},
    ),
    ev.HostsAvailable: ("NOTIFY", lambda e: {"type": "event_machine_available", "resources": str(e.hosts)}),
    ev.ExternalEvent: ("NOTIFY", lambda e: e.data),
    ev.JobSaid: ("FROM_JOB_MSG", lambda e: {"job_id": e.job_id, "msg": e.message}),
    ev.ExecuteJob: ("EXECUTE_JOB", _write_execute),
    ev.RejectJob: ("REJECT_JOB", lambda e: {"job_id": e.job_id}),
    ev.KillJobs: ("KILL_JOB", lambda e: {"job_ids": e.job_ids}),
    ev.CallMeLater: ("CALL_ME_LATER", lambda e: {"timestamp": e.at}),
    ev.RegisterProfile: (
        "REGISTER_PROFILE",
        lambda e: {
            "workload_name": e.workload,
            "profile_name": e.name,
            "profile": profile_to_json(e.profile),
        },
    ),
    ev.RegisterJob: ("REGISTER_JOB", lambda e: {"job_id": e.job.id, "job": job_to_json(e.job)}),
    ev.RegistrationFinished: ("NOTIFY", lambda e: {"type": "registration_finished"}),
    ev.ContinueRegistration: ("NOTIFY", lambda e: {"type": "continue_registration"}),
    ev.SetHostsState: (
        "SET_RESOURCE_STATE",
        lambda e: {"resources": str(e.hosts), "state": str(e.pstate)},
    ),
    ev.SetJobMetadata: ("SET_JOB_METADATA", lambda e: {"job_id": e.job_id, "metadata": e.metadata}),
    ev.ChangeJobState: ("CHANGE_JOB_STATE", _write_change_state),
    ev.QueryEnergy: ("QUERY", lambda e: {"requests": {"consumed_energy": {}}}),
    ev.WaitingTimeAnswer: (
        "ANSWER",
        lambda e: {"estimate_waiting_time": {"job_id": e.job_id, "estimated_waiting_time": e.seconds}},
    ),
    ev.TellJob: ("TO_JOB_MSG", lambda e: {"job_id": e.job_id, "msg": e.message}),
}


def _to_json(message: ev.Message) -> dict[str, Any]:
    written = []
    for event in message.events:
        if isinstance(event, ev.Unknown):
            kind, data = event.type, event.data
        else:
            kind, write = _WRITERS[type(event)]
            data = write(event)
            if event.extra:
                data = data | event.extra
        written.append({"timestamp": event.time, "type": kind, "data": data})
    return {"now": message.now, "events": written}


def encode_reply(message: ev.Message) -> bytes:
    """What a decision process sends, with numbers in full."""
    return msgspec.json.encode(_to_json(message))


def encode_request(message: ev.Message) -> bytes:
    """What Batsim sends, with every non-integer printed to six decimals."""
    return six_decimals(_to_json(message)).encode()


def six_decimals(value: Any) -> str:
    """JSON text in which every float has exactly six decimals, as Batsim's writer prints it."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise ProtocolError(f"{value} cannot be written as JSON")
        return f"{value:.6f}"
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([six_decimals(item) for item in value]) + "]"
    return "{" + ",".join([f"{quote(str(key))}:{six_decimals(item)}" for key, item in value.items()]) + "}"
