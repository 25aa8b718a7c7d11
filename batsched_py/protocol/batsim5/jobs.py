"""Jobs of Batsim 5: in messages without their identifier, in workload files nearly as in Batsim 4.

Fields that it does not know are in ``extra_data``. A profile is called ``WORKLOAD!NAME`` in messages, and by
its name alone in files.
"""

from __future__ import annotations

from math import inf
from typing import Any

from msgspec import structs

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4.jobs import job_from_json, job_to_json, number
from batsched_py.protocol.batsim5.extra_data import FIELD, pack, unpack
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.numbers import is_natural
from batsched_py.protocol.shown import shown

Fields = dict[str, Any]

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
    walltime = inf if walltime is None or walltime == -1 else number(walltime, "job.walltime")
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
    job = job_from_json(fields, workload)
    return structs.replace(job, extra=job.extra | carried)


def job_to_file(job: Job) -> Fields:
    """The object that describes a job in a workload file."""
    fields = job_to_json(structs.replace(job, extra={}))
    return fields | {FIELD: pack(job.extra, _TAKEN)} if job.extra else fields


def _text(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProtocolError(f"field `job.{FIELD}`: expected a text, got {shown(value)}")
    return value
