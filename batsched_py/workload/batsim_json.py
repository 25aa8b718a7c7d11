"""Workload files of Batsim: ``{"nb_res": 4, "jobs": [...], "profiles": {...}}``.

A profile that a job names must exist; what it means is up to the simulator.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from batsched_py.errors import InputError, ProtocolError
from batsched_py.output_files import writing_text
from batsched_py.protocol.dialect import ON_ONE_HOST, Dialect
from batsched_py.protocol.dialects import BATSIM4, DIALECTS
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Profile, Unintelligible
from batsched_py.protocol.requests import read_request
from batsched_py.protocol.shown import shown
from batsched_py.protocol.sizes import malleable_of
from batsched_py.workload.dependencies import check_dependencies
from batsched_py.workload.model import CANCELLED_AFTER, Workload

T = TypeVar("T")

#: The field of a job that tells when it had finished on the machine it was recorded on; Batsim ignores it.
RECORDED_FINISH = "recorded_finish"

#: The largest number of hosts that a file may name.
_LARGEST = 2**53


#: So many different other fields of jobs are remembered at most, to be shared by those that have the same.
_MOST_SHARED = 1 << 14


class _File(Struct):
    nb_res: int
    jobs: list[msgspec.Raw]
    """Each is decoded when it is read: all at once would take several times the memory of the jobs."""
    profiles: dict[str, dict[str, Any]]


def read_batsim_json(path: str | Path, name: str, dialect: Dialect | None = None) -> Workload:
    """Read a workload file; its jobs get identifiers ``NAME!ID`` and come in the order of submission.

    As in Batsim, profiles that no job needs are left out. Without a dialect, the types of the profiles tell
    which one it is.
    """
    content = _read_file(path)
    dialect = dialect or _dialect(content)
    jobs = list(_read_jobs(path, content, dialect, name))
    seen: dict[str, int] = {}
    for index, job in enumerate(jobs):
        if job.profile not in content.profiles:
            raise InputError(f"{path}: job {index} ({job.id}): field `profile`: there is no {job.profile!r}")
        if seen.setdefault(job.id, index) != index:
            raise InputError(f"{path}: job {index} ({job.id}): field `id`: job {seen[job.id]} has it already")
    check_dependencies(jobs, str(path))
    jobs.sort(key=lambda job: job.submission_time)
    profiles = _needed_profiles(jobs, content.profiles, dialect)
    withdrawn = any(CANCELLED_AFTER in job.extra for job in jobs)
    return Workload(
        name, jobs, profiles, content.nb_res, str(path), _finishes(path, jobs), has_cancelled=withdrawn
    )


def _finishes(path: str | Path, jobs: list[Job]) -> list[float] | None:
    """When each job had finished on the machine it was recorded on, if all of them say that."""
    finishes = [job.extra.get(RECORDED_FINISH) for job in jobs]
    if None in finishes or not finishes:
        return None
    for job, finish in zip(jobs, finishes, strict=True):
        if isinstance(finish, bool) or not isinstance(finish, int | float) or not isfinite(finish):
            raise InputError(f"{path}: job {job.id}: field `{RECORDED_FINISH}`: {shown(finish)} is no time")
    return [float(finish) for finish in finishes if finish is not None]


def _read_file(path: str | Path) -> _File:
    content = _decode(path, _File)
    if not 1 <= content.nb_res <= _LARGEST:
        raise InputError(f"{path}: field `nb_res`: must be positive, got {shown(content.nb_res)}")
    return content


def _decode(path: str | Path, kind: type[T]) -> T:
    """The content of a workload file, decoded as this type."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=kind)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a Batsim workload: {error}") from None


def _dialect(content: _File) -> Dialect:
    """The dialect that knows most of the profiles; Batsim 4's if several do."""
    types = [kind for profile in content.profiles.values() if isinstance(kind := profile.get("type"), str)]
    return max(DIALECTS.values(), key=lambda dialect: sum(kind in dialect.profile_types for kind in types))


def _read_jobs(path: str | Path, content: _File, dialect: Dialect, workload: str | None) -> Iterator[Job]:
    """The jobs of a file; without the name of a workload, each tells its own or is of ``w0``.

    Those that ask for the same and have the same other fields share them.
    """
    known: dict[tuple[int, str], dict[str, Any]] = {}
    names = {name: name for name in content.profiles}
    for index, fields in enumerate(_decoded_jobs(path, content)):
        try:
            job = dialect.read_job(fields, workload or str(fields.get("id")).rpartition("!")[0] or "w0")
            key = job.size, repr(job.extra)
            if key not in known:
                if "request" in job.extra:
                    read_request(job.size, job.extra["request"])
                malleable_of(job)
                if len(known) >= _MOST_SHARED:
                    known.clear()
                known[key] = job.extra
        except (ProtocolError, ValueError) as error:
            label = f" ({fields['id']})" if "id" in fields else ""
            raise InputError(f"{path}: job {index}{label}: {error}") from None
        profile = names.get(job.profile, job.profile)
        yield Job(job.id, job.submission_time, job.size, job.walltime, profile, known[key])


def _decoded_jobs(path: str | Path, content: _File) -> Iterator[dict[str, Any]]:
    """The objects of the jobs of a file, one after another; what was decoded is let go."""
    decode, waiting = msgspec.json.Decoder(dict[str, Any]).decode, content.jobs
    content.jobs = []
    waiting.reverse()
    for index in range(len(waiting)):
        try:
            yield decode(waiting.pop())
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: not a Batsim workload: {error} - at `$.jobs[{index}]`") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{path}: not a Batsim workload: {error}") from None


def _needed_profiles(
    jobs: list[Job], profiles: dict[str, dict[str, Any]], dialect: Dialect
) -> dict[str, Profile]:
    """The profiles that jobs name, and those that these name in turn, in the order of the file."""
    needed: dict[str, Profile] = {}
    waiting = [job.profile for job in jobs]
    while waiting:
        name = waiting.pop()
        if name not in needed and name in profiles:
            needed[name] = dialect.read_profile(profiles[name])
            waiting.extend(needed[name].parts)
    return {name: needed[name] for name in profiles if name in needed}


def write_batsim_json(path: str | Path, workload: Workload, dialect: Dialect = BATSIM4) -> None:
    """Write a workload file, one job and one profile a line; identifiers go without the workload's name."""
    size = workload.nb_hosts or max([job.size for job in workload.jobs], default=1)
    profiles, jobs = _runnable(workload.jobs, workload.profiles, dialect)
    spelled = (dialect.spell_job(job) | {"id": job.name} for job in jobs)
    _write(path, {"nb_res": size}, spelled, _spelled(path, profiles, dialect))


def _runnable(
    jobs: Sequence[Job], profiles: Mapping[str, Profile], dialect: Dialect
) -> tuple[Mapping[str, Profile], Iterable[Job]]:
    """The profiles and the jobs; those on one host have others in the place of what cannot run there."""
    others = {name: other for name, each in profiles.items() if (other := dialect.on_one_host(each))}
    needed = {job.profile for job in jobs if job.size == 1 and job.profile in others} if others else set()
    if not needed:
        return profiles, jobs
    added = {f"{name}{ON_ONE_HOST}": other for name, other in others.items() if name in needed}
    return {**profiles, **added}, (
        structs.replace(job, profile=f"{job.profile}{ON_ONE_HOST}")
        if job.size == 1 and job.profile in needed
        else job
        for job in jobs
    )


class Content(Struct):
    """All that is in a workload file, in the order of the file."""

    about: dict[str, Any]
    """The size of the machine, and all members besides jobs and profiles."""
    ids: list[str | int]
    """The identifiers of the jobs, as they are written."""
    jobs: list[Job]
    profiles: dict[str, Profile]


def read_content(path: str | Path) -> Content:
    """Read a workload file without leaving anything out; the types of its profiles tell its dialect."""
    file = _read_file(path)
    dialect = _dialect(file)
    members = _decode(path, dict)
    return Content(
        about={name: value for name, value in members.items() if name not in ("jobs", "profiles")},
        jobs=list(_read_jobs(path, file, dialect, None)),
        ids=[fields["id"] for fields in members["jobs"]],
        profiles={name: dialect.read_profile(fields) for name, fields in file.profiles.items()},
    )


def translate_batsim_json(source: str | Path, target: str | Path, dialect: Dialect) -> int:
    """Write a workload file again, in another dialect or the same; returns how many jobs it has.

    Nothing is left out, not even unused profiles and unknown members. An error names a profile that the
    dialect cannot express.
    """
    content = read_content(source)
    for name, profile in content.profiles.items():
        if isinstance(profile, Unintelligible):
            raise InputError(f"{source}: profile {name!r} {profile.fault}")
    profiles, jobs = _runnable(content.jobs, content.profiles, dialect)
    spelled = (dialect.spell_job(job) | {"id": name} for job, name in zip(jobs, content.ids, strict=True))
    try:
        _write(target, content.about, spelled, _spelled(target, profiles, dialect))
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None
    return len(content.jobs)


def _spelled(
    path: str | Path, profiles: Mapping[str, Profile], dialect: Dialect
) -> dict[str, dict[str, Any]]:
    """The profiles as the dialect writes them; an error names one that it cannot write."""
    spelled = {}
    for name, profile in profiles.items():
        try:
            spelled[name] = dialect.spell_profile(profile)
        except ProtocolError as error:
            raise InputError(f"{path} cannot be written: profile {name!r}: {error}") from None
    return spelled


def _write(
    path: str | Path,
    about: Mapping[str, Any],
    jobs: Iterable[dict[str, Any]],
    profiles: Mapping[str, dict[str, Any]],
) -> None:
    with writing_text(path) as file:
        file.write("{")
        file.writelines(f"\n {_json(name)}:{_json(value)}," for name, value in about.items())
        file.write('\n "jobs":[')
        file.writelines(_listed(map(_json, jobs)))
        file.write('\n ],\n "profiles":{')
        file.writelines(_listed(f"{_json(name)}:{_json(fields)}" for name, fields in profiles.items()))
        file.write("\n }\n}\n")


def _listed(items: Iterable[str]) -> Iterator[str]:
    """One item a line, with a comma after each but the last."""
    for place, item in enumerate(items):
        yield f",\n  {item}" if place else f"\n  {item}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
