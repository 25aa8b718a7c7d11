"""Jobs of Batsim 4, in messages and in workload files."""

from __future__ import annotations

from math import inf
from typing import Any

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4.six_decimals import quote, six_decimals
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.numbers import is_natural, is_number
from batsched_py.protocol.shown import shown


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
    return Job(
        job_id,
        number(submission, "job.subtime"),
        size,
        inf if walltime == -1 else walltime,
        profile,
        extra,
    )


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
