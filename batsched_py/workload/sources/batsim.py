"""Workloads of Batsim as logs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta, Struct

from batsched_py.protocol.batsim5.extra_data import unpack
from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.numbers import is_natural
from batsched_py.protocol.profiles import Delay, Homogeneous, Profile, Unintelligible
from batsched_py.workload.batsim_json import decode_workload, dialect_of, write_batsim_json
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.sources.base import Source, lost_of
from batsched_py.workload.swf import SwfLog, swf_to_workload
from batsched_py.workload.swf_text import LOG_SPEED

_NAMES = ("user", "group", "executable", "queue", "partition")

Count = Annotated[int, Meta(ge=0, le=2**53)]


class _Job(Struct):
    id: str | int
    subtime: float
    res: Count
    profile: str
    walltime: float = -1.0
    user: Any = None
    group: Any = None
    executable: Any = None
    queue: Any = None
    partition: Any = None
    extra_data: Any = None
    """Where Batsim 5 has what stands in the fields above in files of Batsim 4."""

    def numbers(self) -> list[Any]:
        """Who submitted what where, as far as that is a number."""
        carried = unpack(self.extra_data) if isinstance(self.extra_data, str) else {}
        said = {name: getattr(self, name) for name in _NAMES}
        values = (carried.get(name) if value is None else value for name, value in said.items())
        return [value if is_natural(value) else -1 for value in values]


class _Workload(Struct):
    nb_res: Count
    jobs: list[_Job]
    profiles: dict[str, dict[str, Any]]


class Batsim(Source):
    """Workloads of Batsim (JSON): jobs and what they do, without anything that was recorded of them.

    The run time of a job is known where its profile is a delay, or computes as much on each host: then it is
    that on hosts of 1 Gflop/s. Other jobs are left out. Those of Batsim 5 are recognised when they are read;
    written are those of Batsim 4.
    """

    name = "batsim"
    endings = (".json",)
    dialect: ClassVar[Dialect] = BATSIM4
    """What is written."""

    def read(self, path: Path) -> SwfLog:
        """Read a workload, of either Batsim."""
        content = decode_workload(path, _Workload)
        account = Account(path)
        spoken = dialect_of(content.profiles.values())
        profiles = {name: spoken.read_profile(fields) for name, fields in content.profiles.items()}
        run_times = {name: _run_time(profile) for name, profile in profiles.items()}
        jobs = [job for job in content.jobs if run_times.get(job.profile) is not None]
        for job in content.jobs:
            if run_times.get(job.profile) is None:
                kind = _kind(profiles.get(job.profile))
                account.left_out[f"run time of a profile of the type {kind}"] += 1
        numbers = np.array([job.numbers() for job in jobs], dtype=np.int64).reshape(-1, len(_NAMES))
        columns = {
            "submit": np.array([job.subtime for job in jobs]),
            "run_time": np.array([run_times[job.profile] for job in jobs]),
            "allocated_processors": np.array([job.res for job in jobs]),
            "requested_processors": np.array([job.res for job in jobs]),
            "requested_time": np.array([job.walltime for job in jobs]),
            **dict(zip(_NAMES, numbers.T, strict=True)),
        }
        ids = [str(job.id).rpartition("!")[2] for job in jobs]
        if all(re.fullmatch("[0-9]{1,15}", name) for name in ids) and len(set(ids)) == len(ids):
            columns["job_number"] = np.array([int(name) for name in ids])
        return account.log(columns, {"MaxProcs": str(content.nb_res)})

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a workload."""
        write_batsim_json(path, swf_to_workload(log, walltime="requested"), self.dialect)

    def lost(self, log: SwfLog) -> dict[str, int]:
        """What was recorded of the jobs is no part of a workload."""
        return lost_of(log, ("wait", "status", "average_cpu_time", "used_memory", "requested_memory"))

    def recognises(self, beginning: bytes) -> bool:
        """Curly."""
        return beginning.lstrip().startswith(b"{") and b'"nb_res"' in beginning


class Batsim5(Batsim):
    """The same, but written are workloads of Batsim 5."""

    name = "batsim5"
    endings = (".batsim5.json",)
    dialect = BATSIM5


def _run_time(profile: Profile) -> float | None:
    if type(profile) is Delay:
        return float(profile.seconds)
    if type(profile) is Homogeneous and not profile.sends_bytes:
        return float(profile.work) / LOG_SPEED
    return None


def _kind(profile: Profile | None) -> str:
    if profile is None:
        return "unknown"
    return str(profile.fields.get("type", "unknown")) if isinstance(profile, Unintelligible) else profile.kind
