"""Profiles of Batsim 5.

In workload files it has new names for Batsim 4's types, and a single type where Batsim 4 has one for each way
to divide the work. In messages the fields have new names too, and other profiles have their full names.
Return codes and unknown fields have no field in messages and are in ``extra_data``.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

from msgspec import structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4.profiles import PROFILE_FIELDS, profile_from_json, profile_to_json
from batsched_py.protocol.batsim5.extra_data import FIELD, pack, unpack
from batsched_py.protocol.batsim5.jobs import full_name, short_name
from batsched_py.protocol.profiles import Profile, Unintelligible
from batsched_py.protocol.shown import shown

Fields = dict[str, Any]

_EACH, _SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
_MPI, _USAGE = "SMPI", "FractionalComputation"

#: For each type, its name in Batsim 4. If there are several, the additional field says which one it is.
_TYPES: dict[str, dict[str, str] | str] = {
    "DelayProfile": "delay",
    "ParallelTaskProfile": "parallel",
    "ParallelTaskHomogeneousProfile": {_EACH: "parallel_homogeneous", _SPREAD: "parallel_homogeneous_total"},
    "SequentialCompositionProfile": "composed",
    "ParallelTaskOnStorageHomogeneousProfile": {_EACH: "parallel_homogeneous_pfs"},
    "ParallelTaskDataStagingBetweenStoragesProfile": "data_staging",
    "TraceReplayProfile": {_MPI: "smpi", _USAGE: "usage_trace"},
}

#: The field that distinguishes types of Batsim 4 with one name in Batsim 5, and its value if it is absent.
_CHOICES = {
    "ParallelTaskHomogeneousProfile": ("generation_strategy", _EACH),
    "ParallelTaskOnStorageHomogeneousProfile": ("generation_strategy", _EACH),
    "TraceReplayProfile": ("trace_type", None),
}

#: For each of Batsim 4's types, that of Batsim 5 and the value of that field.
_NEW_TYPES = {
    old: (new, choice)
    for new, olds in _TYPES.items()
    for choice, old in ({None: olds} if isinstance(olds, str) else olds).items()
}

#: Fields with other names in messages than in workload files.
_IN_MESSAGES: dict[str, dict[str, str]] = {
    "ParallelTaskProfile": {"cpu": "computation_vector", "com": "communication_matrix"},
    "ParallelTaskHomogeneousProfile": {"cpu": "computation_amount", "com": "communication_amount"},
    "SequentialCompositionProfile": {"repeat": "repetition_count", "seq": "profile_ids"},
    "ParallelTaskOnStorageHomogeneousProfile": {"storage": "storage_name"},
    "ParallelTaskDataStagingBetweenStoragesProfile": {
        "nb_bytes": "bytes_to_transfer",
        "from": "emitter_storage_name",
        "to": "receiver_storage_name",
    },
}

#: All fields of each type in workload files, except those that every type may have.
_KNOWN = {
    new: {"filename" if field == "trace" else field for field in PROFILE_FIELDS[old]}
    | ({_CHOICES[new][0]} if new in _CHOICES else set())
    for old, (new, _) in _NEW_TYPES.items()
}

PROFILE_TYPES = frozenset(_TYPES)


# --- in workload files ---------------------------------------------------------------------------


def profile_from_file(fields: Fields) -> Profile:
    """The profile that an object of a workload file describes, known or unknown."""
    try:
        old = _as_batsim4(fields)
    except ValueError as fault:
        return Unintelligible(fields, str(fault))
    profile = profile_from_json(old)
    if isinstance(profile, Unintelligible):
        return Unintelligible(fields, profile.fault, return_code=profile.return_code)
    return profile


def profile_to_file(profile: Profile) -> Fields:
    """The object that describes a profile in a workload file."""
    fields = profile_to_json(profile)
    if isinstance(profile, Unintelligible):
        return fields
    fields = dict(fields)
    if profile.kind not in _NEW_TYPES:
        raise ProtocolError(f"a profile of the type {profile.kind} cannot be said to Batsim 5")
    new, choice = _NEW_TYPES[profile.kind]
    fields["type"] = new
    if new == "TraceReplayProfile":
        fields["filename"] = fields.pop("trace")
    if "host" in fields and "host" not in (profile.extra or {}):
        fields["storage"] = fields.pop("host")
    if choice is not None:
        fields[_CHOICES[new][0]] = choice
    return _with_extra_data(fields, _KNOWN[new] | {"type", "ret"})


def _with_extra_data(fields: Fields, known: set[str]) -> Fields:
    extra = {name: fields.pop(name) for name in list(fields) if name not in known}
    return fields | {FIELD: pack(extra)} if extra else fields


def _as_batsim4(fields: Fields) -> Fields:
    """The same profile as in Batsim 4."""
    name = fields.get("type")
    if not isinstance(name, str) or name not in _TYPES:
        raise ValueError(f"has the type {shown(name)}; known are {', '.join(_TYPES)}")
    old = {
        "trace" if name == "TraceReplayProfile" and key == "filename" else key: value
        for key, value in fields.items()
        if key != FIELD
    }
    kinds = _TYPES[name]
    if isinstance(kinds, str):
        old["type"] = kinds
    else:
        field, usual = _CHOICES[name]
        choice = old.pop(field, usual)
        if not isinstance(choice, str) or choice not in kinds:
            raise ValueError(f"needs {' or '.join(kinds)} as `{field}`, not {shown(choice)}")
        old["type"] = kinds[choice]
    if name == "ParallelTaskProfile":
        _complete(old)
    carried = fields.get(FIELD, "")
    if not isinstance(carried, str):
        raise ValueError(f"needs a text as `{FIELD}`, not {shown(carried)}")
    return old | {key: value for key, value in unpack(carried, old).items() if key not in old}


def _complete(parallel: Fields) -> None:
    """Add the part of a parallel task that was left out: no work, or no bytes."""
    if isinstance(work := parallel.get("cpu"), list):
        parallel.setdefault("com", [0] * len(work) ** 2)
    elif isinstance(sent := parallel.get("com"), list):
        parallel.setdefault("cpu", [0] * isqrt(len(sent)))


# --- in messages ---------------------------------------------------------------------------------


def profile_from_message(fields: Fields) -> tuple[str, str, Profile]:
    """Workload, name and content of a profile that a message describes."""
    profile_id, payload, name = fields.get("id"), fields.get("profile"), fields.get("profile_type")
    if not isinstance(profile_id, str) or profile_id.count("!") != 1:
        raise ProtocolError(f"field `profile.id`: {shown(profile_id)} is not of the form WORKLOAD!NAME")
    if not isinstance(payload, dict):
        raise ProtocolError(f"field `profile.profile`: expected an object, got {shown(payload)}")
    workload, _, short = profile_id.partition("!")
    carried = fields.get(FIELD)
    extra = unpack(carried, {"type"}) if isinstance(carried, str) else {}
    in_file = {spoken: written for written, spoken in _IN_MESSAGES.get(str(name), {}).items()}
    said: Fields = {"type": name}
    said |= {str(in_file.get(key, key)): value for key, value in payload.items()}
    said |= {key: value for key, value in extra.items() if key not in said}
    if name == "SequentialCompositionProfile" and isinstance(said.get("seq"), list):
        said["seq"] = [short_name(part, workload) if isinstance(part, str) else part for part in said["seq"]]
    return workload, short, profile_from_file(said)


def profile_to_message(profile: Profile, name: str, workload: str) -> Fields:
    """The object that describes a profile of this name in a message."""
    fields = dict(profile_to_file(structs.replace(profile, spelling=())))
    kind = fields.pop("type", None)
    known = _KNOWN.get(str(kind))
    carried = unpack(fields.pop(FIELD, ""), {"type"})
    if known is not None and (others := {key: fields.pop(key) for key in list(fields) if key not in known}):
        carried = others | carried
    if kind == "SequentialCompositionProfile" and isinstance(fields.get("seq"), list | tuple):
        fields["seq"] = [
            full_name(part, workload) if isinstance(part, str) else part for part in fields["seq"]
        ]
    names = _IN_MESSAGES.get(str(kind), {})
    spoken: Fields = {
        "id": full_name(name, workload),
        "profile_type": kind,
        "profile": {names.get(key, key): value for key, value in fields.items()},
    }
    return spoken | {FIELD: pack(carried)} if carried else spoken
