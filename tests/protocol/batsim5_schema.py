"""A strict reading of messages of Batsim 5: the fields of its schema, their kinds, which are required."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

ENUMS = {
    "FinalJobState": """COMPLETED_SUCCESSFULLY COMPLETED_FAILED COMPLETED_WALLTIME_REACHED
        COMPLETED_KILLED REJECTED""",
    "HostState": "SLEEPING IDLE COMPUTING SWITCHING_ON SWITCHING_OFF",
    "Strategy": "DefinedAmountsUsedForEachValue DefinedAmountsSpreadUniformly",
    "TraceType": "SMPI FractionalComputation",
    "Placement": "SpreadOverHostsFirst FillOneHostCoresFirst",
    "TimeUnit": "Second Millisecond",
}

#: What a union can be.
UNIONS = {
    "Profile": """DelayProfile ParallelTaskProfile ParallelTaskHomogeneousProfile SequentialCompositionProfile
        ParallelTaskOnStorageHomogeneousProfile ParallelTaskDataStagingBetweenStoragesProfile
        TraceReplayProfile""",
    "KillProgress": "KillProgressAtomicProfile KillProgressSequentialProfile",
    "ExternalEvent": "GenericExternalEvent",
    "ExecutorPlacement": "PredefinedExecutorPlacementStrategyWrapper CustomExecutorToHostMapping",
    "TemporalTrigger": "OneShot",
    "Happening": """SimulationBeginsEvent SimulationEndsEvent JobSubmittedEvent JobCompletedEvent
        JobsKilledEvent RequestedCallEvent AllStaticJobsHaveBeenSubmittedEvent
        AllStaticExternalEventsHaveBeenInjectedEvent ExternalEventOccurredEvent HostsPStateChangedEvent
        HostsTurnedOnOffEvent""",
    "Decision": """EDCHelloEvent ExecuteJobEvent RejectJobEvent KillJobsEvent RegisterProfileEvent
        RegisterJobEvent FinishRegistrationEvent CallMeLaterEvent ChangeHostsPStateEvent
        TurnOnOffHostsEvent""",
}

#: The fields of each table, with their kinds; those with a ``!`` must be there. ``[kind]`` is a list.
TABLES = {
    "Request": "now:float64 events:[HappeningAndTimestamp]",
    "Reply": "now:float64 events:[DecisionAndTimestamp]",
    "HappeningAndTimestamp": "timestamp:float64 event:Happening!",
    "DecisionAndTimestamp": "timestamp:float64 event:Decision!",
    "SimulationBeginsEvent": """host_number:uint32 computation_host_number:uint32 computation_hosts:[Host]
        storage_host_number:uint32 storage_hosts:[Host] batsim_arguments:[string]
        batsim_execution_context_json:string! workloads:[Named] profiles:[ProfileAndId]
        batprotocol_version:string! batsim_version:string! batsim_commit:string
        external_event_lists:[Named]""",
    "Host": """id:uint32 name:string! pstate:uint32 pstate_count:uint32 state:HostState
        properties:[HostProperty] zone_properties:[HostProperty] core_count:uint32
        computation_speed:[float64]""",
    "HostProperty": "key:string! value:string!",
    "Named": "name:string! filename:string!",
    "SimulationEndsEvent": "",
    "AllStaticJobsHaveBeenSubmittedEvent": "",
    "AllStaticExternalEventsHaveBeenInjectedEvent": "",
    "FinishRegistrationEvent": "",
    "Job": "resource_request:uint32 walltime:float64 extra_data:string rigid:bool profile_id:string",
    "JobSubmittedEvent": "job_id:string! job:Job! submission_time:float64 profile:ProfileAndId",
    "JobCompletedEvent": "job_id:string! state:FinalJobState return_code:uint32",
    "JobsKilledEvent": "job_ids:[string]! progresses:[JobAndProgress]! profiles:[ProfileAndId]",
    "JobAndProgress": "job_id:string! wrapper:KillProgressWrapper!",
    "KillProgressWrapper": "kill_progress:KillProgress!",
    "KillProgressAtomicProfile": "profile_id:string! progress:float64",
    "KillProgressSequentialProfile": """profile_id:string! current_repetition:uint32
        current_task_index:uint32 current_task_progress:KillProgressWrapper!""",
    "RequestedCallEvent": "call_me_later_id:string! last_periodic_call:bool",
    "ExternalEventOccurredEvent": "id:string! external_event:ExternalEvent!",
    "GenericExternalEvent": "data:string!",
    "HostsPStateChangedEvent": "host_ids:string! pstate:uint32",
    "HostsTurnedOnOffEvent": "host_ids:string! state:uint32",
    "ProfileAndId": "id:string! profile:Profile! extra_data:string",
    "DelayProfile": "delay:float64",
    "ParallelTaskProfile": "computation_vector:[float64] communication_matrix:[float64]",
    "ParallelTaskHomogeneousProfile": """computation_amount:float64 communication_amount:float64
        generation_strategy:Strategy""",
    "SequentialCompositionProfile": "repetition_count:uint32 profile_ids:[string]!",
    "ParallelTaskOnStorageHomogeneousProfile": """storage_name:string! bytes_to_read:float64
        bytes_to_write:float64 generation_strategy:Strategy""",
    "ParallelTaskDataStagingBetweenStoragesProfile": """bytes_to_transfer:float64
        emitter_storage_name:string! receiver_storage_name:string!""",
    "TraceReplayProfile": "trace_type:TraceType filename:string!",
    "EDCHelloEvent": """batprotocol_version:string! decision_component_name:string!
        decision_component_version:string! decision_component_commit:string
        requested_simulation_features:Features""",
    "Features": """dynamic_registration:bool profile_reuse:bool acknowledge_dynamic_jobs:bool
        forward_profiles_on_job_submission:bool forward_profiles_on_jobs_killed:bool
        forward_profiles_on_simulation_begins:bool""",
    "ExecuteJobEvent": """job_id:string! allocation:Allocation! profile_allocation_override:[Nothing]
        storage_placement:[StorageHost]""",
    "Allocation": "host_allocation:string! executor_placement:ExecutorPlacement!",
    "PredefinedExecutorPlacementStrategyWrapper": "strategy:Placement",
    "CustomExecutorToHostMapping": "mapping:[uint32]",
    "StorageHost": "storage_name:string! host_id:uint32",
    "RejectJobEvent": "job_id:string!",
    "KillJobsEvent": "job_ids:[string]!",
    "RegisterProfileEvent": "profile:ProfileAndId",
    "RegisterJobEvent": "job_id:string! job:Job!",
    "CallMeLaterEvent": "call_me_later_id:string! when:TemporalTrigger!",
    "OneShot": "time:uint64 time_unit:TimeUnit",
    "ChangeHostsPStateEvent": "host_ids:string! pstate:uint32",
    "TurnOnOffHostsEvent": "host_ids:string! state:uint32",
}

_FIELDS = {
    table: {name: kind for name, _, kind in (field.partition(":") for field in text.split())}
    for table, text in TABLES.items()
}


def check(text: bytes, table: str) -> dict[str, Any]:
    """The message in a text, which must be a ``Request`` or a ``Reply`` in every detail."""
    message = json.loads(text.removesuffix(b"\0"), parse_constant=_refuse)
    _check(message, table, table)
    return dict(message)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no number of JSON")


def _check(value: Any, kind: str, where: str) -> None:
    if kind.startswith("["):
        assert isinstance(value, list), where
        for item in value:
            _check(item, kind[1:-1], where)
    elif kind in ENUMS:
        assert value in ENUMS[kind].split(), (where, value)
    elif kind in TABLES:
        _check_table(value, _FIELDS[kind], where)
    else:
        assert _SCALARS[kind](value), (where, kind, value)


def _check_table(value: Any, fields: dict[str, str], where: str) -> None:
    assert isinstance(value, dict), where
    left = dict(value)
    for name, kind in fields.items():
        if name not in left:
            assert not kind.endswith("!"), f"{where}: {name} is missing"
            continue
        kind, content = kind.removesuffix("!"), left.pop(name)
        if kind in UNIONS:
            chosen = left.pop(f"{name}_type", None)
            assert chosen in UNIONS[kind].split(), (where, name, chosen)
            kind = chosen
        _check(content, kind, f"{where}.{name}")
    assert not left, (where, left)


_SCALARS = {
    "string": lambda value: type(value) is str,
    "bool": lambda value: type(value) is bool,
    "float64": lambda value: type(value) in (int, float) and isfinite(value),
    "uint32": lambda value: type(value) is int and 0 <= value < 2**32,
    "uint64": lambda value: type(value) is int and 0 <= value < 2**64,
}
