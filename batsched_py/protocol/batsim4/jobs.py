"""Jobs and profiles of Batsim 4, in messages and in workload files."""

import re
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from math import inf, isfinite
from typing import Any

from msgspec import structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol import profiles
from batsched_py.protocol.jobs import Job, ReadOnlyDict, is_natural, is_number
from batsched_py.protocol.profiles import Profile, Unintelligible
from batsched_py.protocol.shown import shown

#: The text of a string, in ASCII.
quote = encode_basestring_ascii


def six_decimals(value: Any) -> str:
    """The text of a JSON value as Batsim 4 prints it: every number with a fraction has six decimals."""
    return _PRINT[type(value)](value)


def _print_float(value: float) -> str:
    if not isfinite(value):
        raise ProtocolError(f"{value} cannot be written as JSON")
    return f"{value:.6f}"


def _print_list(values: list[Any]) -> str:
    return f"[{','.join([_PRINT[type(value)](value) for value in values])}]"


def _print_dict(fields: dict[str, Any]) -> str:
    printed = [f"{quote(key)}:{_PRINT[type(value)](value)}" for key, value in fields.items()]
    return f"{{{','.join(printed)}}}"


_PRINT: dict[type, Callable[[Any], str]] = {
    str: quote,
    float: _print_float,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda value: "null",
    list: _print_list,
    tuple: _print_list,
    dict: _print_dict,
    ReadOnlyDict: _print_dict,
}


def job_from_json(fields: dict[str, Any], workload: str | None = None) -> Job:
    """Read a job object; ``workload`` is put before an identifier that does not contain it."""
    extra = fields.copy()
    try:
        job_id, size, profile = extra.pop("id"), extra.pop("res"), extra.pop("profile")
        submission = extra.pop("subtime")
    except KeyError as missing:
        raise ProtocolError(f"field `job`: a job needs `{missing.args[0]}`") from None
    walltime = extra.pop("walltime", -1)
    if type(job_id) not in (str, int):
        raise ProtocolError(f"field `job.id`: expected a string or an integer, got {shown(job_id)}")
    if not is_natural(size):
        raise ProtocolError(f"field `job.res`: expected a number of hosts, got {shown(size)}")
    if not isinstance(profile, str):
        raise ProtocolError(f"field `job.profile`: expected a profile's name, got {shown(profile)}")
    job_id = str(job_id)
    if workload is not None and workload not in job_id:
        job_id = f"{workload}!{job_id}"
    if job_id.count("!") != 1:
        raise ProtocolError(f"field `job.id`: {shown(job_id)} is not of the form WORKLOAD!NAME")
    walltime = number(walltime, "job.walltime")
    if walltime != -1 and not walltime > 0:
        raise ProtocolError(f"field `job.walltime`: must be positive, or -1 for none, got {walltime:g}")
    time = number(submission, "job.subtime")
    return Job(job_id, time, size, inf if walltime == -1 else walltime, profile, extra)


def number(value: Any, field: str) -> float:
    """The number in a field, if it is one that a double can hold."""
    if is_number(value):
        return float(value)
    raise ProtocolError(f"field `{field}`: expected a number, got {shown(value)}")


def job_to_json(job: Job) -> dict[str, Any]:
    """The object that describes a job."""
    fields: dict[str, Any] = {"id": job.id, "subtime": job.submission_time, "res": job.size}
    if job.has_walltime:
        fields["walltime"] = job.walltime
    fields["profile"] = job.profile
    fields.update(job.extra)
    return fields


def print_job(job: Job) -> str:
    """The text of that object, with six decimals."""
    walltime = f',"walltime":{six_decimals(job.walltime)}' if job.walltime != inf else ""
    extra = f",{six_decimals(job.extra)[1:-1]}" if job.extra else ""
    return (
        f'{{"id":{quote(job.id)},"subtime":{six_decimals(job.submission_time)},"res":{job.size}{walltime},'
        f'"profile":{quote(job.profile)}{extra}}}'
    )


def profile_from_json(fields: dict[str, Any]) -> Profile:
    """Read a profile object: the fields of its type, and their types.

    Whether its numbers make sense, and whether it can be run, is up to the simulator. Reading never fails,
    because a simulator may know more types of profiles than we do, and a decision process need not understand
    them.
    """
    name = fields.get("type")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    try:
        if kind is None:
            raise _Fault(f"has the type {shown(name)}; known are {', '.join(_KINDS)}")
        return kind.read(fields)
    except _Fault as fault:
        code = fields.get("ret")
        return Unintelligible(fields, str(fault), return_code=code if isinstance(code, int) else 0)


def profile_to_json(profile: Profile) -> dict[str, Any]:
    """The object that describes a profile, with the same fields as when it was read."""
    if isinstance(profile, Unintelligible):
        return profile.fields
    return _KINDS[profile.kind].write(profile)


class _Fault(Exception):
    """What is wrong with the shape of a profile."""


#: Reads the value of a field of this name, or raises :class:`_Fault`.
_Reader = Callable[[str, Any], Any]


def _reader(what: str, is_right: Callable[[Any], bool]) -> _Reader:
    """Reads a value of a kind, as it was given."""

    def read(name: str, value: Any) -> Any:
        if not is_right(value):
            raise _Fault(f"needs {what} as `{name}`, not {shown(value)}")
        return value

    return read


_number = _reader("a number", is_number)
_positive_integer = _reader("an integer of 1 or more", lambda value: is_natural(value) and value > 0)
_return_code = _reader("an integer of 0 or more", is_natural)
_text = _reader("a text", lambda value: isinstance(value, str))
_list = _reader("a list of numbers", lambda value: isinstance(value, list))
_object = _reader("an object", lambda value: isinstance(value, dict))


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    return tuple([_number(name, item) for item in _list(name, value)])


def _regex(name: str, value: Any) -> str:
    try:
        re.compile(pattern := _text(name, value))
    except (re.error, RecursionError, OverflowError) as error:
        raise _Fault(f"has a `{name}` that cannot be read: {error}") from None
    return str(pattern)


def _names(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise _Fault(f"needs a list of profile names as `{name}`")
    return tuple(value)


class _Kind:
    """One type of profiles: its class, and for each field its attribute and its reader.

    A field may be left out if its attribute has a default.
    """

    def __init__(self, cls: type[Profile], fields: dict[str, tuple[str, _Reader]]) -> None:
        self._cls = cls
        self.own_fields = tuple(fields)
        self._fields = fields | {"ret": ("return_code", _return_code)}
        needed = {field.name for field in structs.fields(cls) if field.required}
        self._required = [(name, reader) for name, (own, reader) in fields.items() if own in needed]
        self._usual = ("type", *fields)

    def read(self, fields: dict[str, Any]) -> Profile:
        """The profile that these fields describe."""
        rules, values, extra = self._fields, {}, {}
        for name, value in fields.items():
            if name in rules:
                attribute, reader = rules[name]
                values[attribute] = reader(name, value)
            elif name != "type":
                extra[name] = value
        for name, reader in self._required:
            if name not in fields:
                reader(name, None)
        spelling = tuple(fields)
        if spelling == self._usual:
            return self._cls(**values)
        if spelling == self._spelling(values.get("return_code", 0), extra):
            spelling = ()
        return self._cls(**values, extra=extra or None, spelling=spelling)

    def write(self, profile: Profile) -> dict[str, Any]:
        """The fields that describe a profile."""
        extra = profile.extra or {}
        fields: dict[str, Any] = {}
        for name in profile.spelling or self._spelling(profile.return_code, extra):
            if name == "type":
                fields[name] = profile.kind
            elif name in extra:
                fields[name] = extra[name]
            else:
                fields[name] = getattr(profile, self._fields[name][0])
        return fields

    def _spelling(self, return_code: int, extra: dict[str, Any]) -> tuple[str, ...]:
        """The fields that are written by default, in order."""
        return (*self._usual, "ret", *extra) if return_code else (*self._usual, *extra)


class _FileSystemKind(_Kind):
    """Its storage may also be called ``host``, and one of its numbers is enough."""

    def __init__(self) -> None:
        fields: dict[str, tuple[str, _Reader]] = {
            "bytes_to_read": ("bytes_read", _number),
            "bytes_to_write": ("bytes_written", _number),
            "storage": ("storage", _text),
        }
        super().__init__(profiles.FileSystemAccess, fields)
        self._legacy = _Kind(profiles.FileSystemAccess, fields | {"host": fields["storage"]})

    def read(self, fields: dict[str, Any]) -> Profile:
        if "bytes_to_read" not in fields and "bytes_to_write" not in fields:
            raise _Fault("needs `bytes_to_read` or `bytes_to_write`")
        if "host" in fields and "storage" not in fields:
            return self._legacy.read(fields)
        return super().read(fields)

    def write(self, profile: Profile) -> dict[str, Any]:
        legacy = "host" in profile.spelling and "storage" not in profile.spelling
        return self._legacy.write(profile) if legacy else super().write(profile)


_WORK: dict[str, tuple[str, _Reader]] = {"cpu": ("work", _number), "com": ("bytes_sent", _number)}

_KINDS = {
    "delay": _Kind(profiles.Delay, {"delay": ("seconds", _number)}),
    "parallel": _Kind(profiles.Parallel, {"cpu": ("work", _numbers), "com": ("bytes_sent", _numbers)}),
    "parallel_homogeneous": _Kind(profiles.Homogeneous, _WORK),
    "parallel_homogeneous_total": _Kind(profiles.HomogeneousTotal, _WORK),
    "composed": _Kind(
        profiles.Composed, {"repeat": ("repeat", _positive_integer), "seq": ("sequence", _names)}
    ),
    "send": _Kind(profiles.Send, {"msg": ("message", _object), "sleeptime": ("seconds", _number)}),
    "recv": _Kind(
        profiles.Receive,
        {
            "regex": ("regex", _regex),
            "success": ("success", _text),
            "failure": ("failure", _text),
            "timeout": ("timeout", _text),
            "polltime": ("poll_seconds", _number),
        },
    ),
    "parallel_homogeneous_pfs": _FileSystemKind(),
    "data_staging": _Kind(
        profiles.DataStaging,
        {"nb_bytes": ("bytes_moved", _number), "from": ("source", _text), "to": ("target", _text)},
    ),
    "smpi": _Kind(profiles.MpiTrace, {"trace": ("file", _text)}),
    "usage_trace": _Kind(profiles.UsageTrace, {"trace": ("file", _text)}),
}

PROFILE_TYPES = frozenset(_KINDS)

#: The fields of each type, except those that every type may have.
PROFILE_FIELDS = {name: kind.own_fields for name, kind in _KINDS.items()}
