"""Jobs and profiles of Batsim 5, in messages and in workload files.

In files jobs are nearly as in Batsim 4, in messages without their identifier. Profiles have new names for the
types of Batsim 4 in files, and a single type where Batsim 4 has one for each way to divide the work. In
messages their fields have new names too, and a profile is called ``WORKLOAD!NAME``, not by its name alone.
Fields that Batsim 5 does not know, and return codes in messages, are in the text ``extra_data``.
"""

from collections.abc import Collection
from math import inf, isqrt
from typing import Any

import msgspec
from msgspec import structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4 import jobs as batsim4
from batsched_py.protocol.dialect import UNREADABLE
from batsched_py.protocol.jobs import Job, is_natural
from batsched_py.protocol.profiles import Homogeneous, Parallel, Profile, Unintelligible
from batsched_py.protocol.shown import shown

Fields = dict[str, Any]

#: The field for a text that is not a JSON object.
FIELD = "extra_data"


def pack(extra: dict[str, Any], taken: Collection[str] = ()) -> str:
    """The text that contains these fields.

    >>> pack({}), pack({"user": "ann"}), pack({"extra_data": "anything"})
    ('', '{"user":"ann"}', 'anything')
    """
    if not extra:
        return ""
    text = extra.get(FIELD)
    if len(extra) == 1 and isinstance(text, str) and unpack(text, taken) == extra:
        return text
    return msgspec.json.encode(extra).decode()


def unpack(text: str, taken: Collection[str] = ()) -> dict[str, Any]:
    """The fields in a text; a text that is not a JSON object, or uses a reserved name, is kept as one field.

    >>> unpack(""), unpack('{"user": "ann"}'), unpack("anything"), unpack('{"id": 1}', {"id"})
    ({}, {'user': 'ann'}, {'extra_data': 'anything'}, {'extra_data': '{"id": 1}'})
    """
    if not text:
        return {}
    try:
        fields = msgspec.json.decode(text)
    except UNREADABLE:
        fields = None
    if isinstance(fields, dict) and fields and fields.keys().isdisjoint(taken):
        return fields
    return {FIELD: text}


#: The names of a job's own fields.
_TAKEN = frozenset(("id", "subtime", "res", "walltime", "profile"))


def full_name(profile: str, workload: str) -> str:
    """A profile's identifier in messages.

    >>> full_name("p", "w0"), full_name("w1!p", "w0")
    ('w0!p', 'w1!p')
    """
    return profile if "!" in profile else f"{workload}!{profile}"


def short_name(profile_id: str, workload: str) -> str:
    """The name of a profile inside a workload.

    >>> short_name("w0!p", "w0"), short_name("p", "w0"), short_name("w1!p", "w0")
    ('p', 'p', 'w1!p')
    """
    return profile_id.removeprefix(f"{workload}!")


def job_from_message(job_id: str, fields: Fields, submission_time: float) -> Job:
    """The job that a message describes."""
    if job_id.count("!") != 1:
        raise ProtocolError(f"field `job_id`: {shown(job_id)} is not of the form WORKLOAD!NAME")
    size: Any = fields.get("resource_request")
    profile, walltime = fields.get("profile_id"), fields.get("walltime")
    if not is_natural(size):
        raise ProtocolError(f"field `job.resource_request`: expected a number of hosts, got {shown(size)}")
    if not isinstance(profile, str):
        raise ProtocolError(f"field `job.profile_id`: expected a profile's name, got {shown(profile)}")
    walltime = inf if walltime is None or walltime == -1 else batsim4.number(walltime, "job.walltime")
    if not walltime > 0:
        raise ProtocolError(f"field `job.walltime`: must be positive, or absent for none, got {walltime:g}")
    extra = unpack(_text(fields.get(FIELD)), _TAKEN)
    if fields.get("rigid") is False:
        extra["rigid"] = False
    return Job(job_id, submission_time, size, walltime, short_name(profile, job_id.partition("!")[0]), extra)


def job_to_message(job: Job) -> Fields:
    """The object that describes a job in a message."""
    extra = job.extra
    rigid = extra.get("rigid") is not False
    if not rigid:
        extra = {name: value for name, value in extra.items() if name != "rigid"}
    fields: Fields = {"resource_request": job.size}
    if job.has_walltime:
        fields["walltime"] = job.walltime
    fields |= {FIELD: pack(extra, _TAKEN), "rigid": rigid, "profile_id": full_name(job.profile, job.workload)}
    return fields


def job_from_file(fields: Fields, workload: str) -> Job:
    """A job of a workload file."""
    fields = dict(fields)
    carried = unpack(_text(fields.pop(FIELD, None)), _TAKEN)
    job = batsim4.job_from_json(fields, workload)
    return structs.replace(job, extra=job.extra | carried)


def job_to_file(job: Job) -> Fields:
    """The object that describes a job in a workload file."""
    fields = batsim4.job_to_json(structs.replace(job, extra={}))
    return fields | {FIELD: pack(job.extra, _TAKEN)} if job.extra else fields


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProtocolError(f"field `job.{FIELD}`: expected a text, got {shown(value)}")
    return value


_EACH, _SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
_MPI, _USAGE = "SMPI", "FractionalComputation"

#: For each type, its name in Batsim 4. If there are several, the additional field says which one it is.
_TYPES: dict[str, dict[str | None, str]] = {
    "DelayProfile": {None: "delay"},
    "ParallelTaskProfile": {None: "parallel"},
    "ParallelTaskHomogeneousProfile": {_EACH: "parallel_homogeneous", _SPREAD: "parallel_homogeneous_total"},
    "SequentialCompositionProfile": {None: "composed"},
    "ParallelTaskOnStorageHomogeneousProfile": {_EACH: "parallel_homogeneous_pfs"},
    "ParallelTaskDataStagingBetweenStoragesProfile": {None: "data_staging"},
    "TraceReplayProfile": {_MPI: "smpi", _USAGE: "usage_trace"},
}

#: The field that distinguishes types of Batsim 4 with one name in Batsim 5, and its value if it is absent.
_CHOICES = {
    "ParallelTaskHomogeneousProfile": ("generation_strategy", _EACH),
    "ParallelTaskOnStorageHomogeneousProfile": ("generation_strategy", _EACH),
    "TraceReplayProfile": ("trace_type", None),
}

#: For each of Batsim 4's types, that of Batsim 5 and the value of that field.
_NEW_TYPES = {old: (new, choice) for new, olds in _TYPES.items() for choice, old in olds.items()}

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
    new: {"filename" if field == "trace" else field for field in batsim4.PROFILE_FIELDS[old]}
    | ({_CHOICES[new][0]} if new in _CHOICES else set())
    for old, (new, _) in _NEW_TYPES.items()
}

PROFILE_TYPES = frozenset(_TYPES)


def on_one_host(profile: Profile) -> Profile | None:
    """What a job on one host runs in the place of a profile without work: a vector with a zero in it.

    Batsim 5.0.0-rc2 gives SimGrid no vector at all then, which SimGrid up to 4.1 refuses for one host.
    """
    if not isinstance(profile, Homogeneous) or profile.work:
        return None
    return Parallel((0.0,), (0.0,), return_code=profile.return_code, extra=profile.extra)


# --- in workload files ---------------------------------------------------------------------------


def profile_from_file(fields: Fields) -> Profile:
    """The profile that an object of a workload file describes, known or unknown."""
    try:
        old = _as_batsim4(fields)
    except ValueError as fault:
        return Unintelligible(fields, str(fault))
    profile = batsim4.profile_from_json(old)
    if isinstance(profile, Unintelligible):
        return Unintelligible(fields, profile.fault, return_code=profile.return_code)
    return profile


def profile_to_file(profile: Profile) -> Fields:
    """The object that describes a profile in a workload file."""
    fields = batsim4.profile_to_json(profile)
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
    known = _KNOWN[new] | {"type", "ret"}
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
    kinds, choice = _TYPES[name], None
    if name in _CHOICES:
        field, usual = _CHOICES[name]
        choice = old.pop(field, usual)
        if not isinstance(choice, str) or choice not in kinds:
            raise ValueError(f"needs {' or '.join(map(str, kinds))} as `{field}`, not {shown(choice)}")
    old["type"] = kinds[choice]
    if name == "ParallelTaskProfile":  # what was left out of it is no work, or no bytes
        if isinstance(work := old.get("cpu"), list):
            old.setdefault("com", [0] * len(work) ** 2)
        elif isinstance(sent := old.get("com"), list):
            old.setdefault("cpu", [0] * isqrt(len(sent)))
    carried = fields.get(FIELD, "")
    if not isinstance(carried, str):
        raise ValueError(f"needs a text as `{FIELD}`, not {shown(carried)}")
    return old | {key: value for key, value in unpack(carried, old).items() if key not in old}


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
