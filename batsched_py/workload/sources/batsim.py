"""Workloads of Batsim as logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.batsim_json import write_batsim_json
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.sources.base import Source, lost_of
from batsched_py.workload.swf import SwfLog, swf_to_workload
from batsched_py.workload.swf_text import LOG_SPEED

_NAMES = ("user", "group", "executable", "queue", "partition")


class _Job(Struct):
    id: str | int
    subtime: float
    res: int
    profile: str
    walltime: float = -1.0
    user: Any = -1
    group: Any = -1
    executable: Any = -1
    queue: Any = -1
    partition: Any = -1


class _Workload(Struct):
    nb_res: int
    jobs: list[_Job]
    profiles: dict[str, dict[str, Any]]


class Batsim(Source):
    """Workloads of Batsim (JSON): jobs and what they do, without anything that was recorded of them.

    The run time of a job is known where its profile is a delay, or computes as much on each host: then it is
    that on hosts of 1 Gflop/s. Other jobs are left out.
    """

    name = "batsim"
    endings = (".json",)

    def read(self, path: Path) -> SwfLog:
        """Read a workload."""
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_Workload)
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: not a Batsim workload: {error}") from None
        account = Account(path)
        run_times = {name: _run_time(profile) for name, profile in content.profiles.items()}
        jobs = [job for job in content.jobs if run_times.get(job.profile) is not None]
        for job in content.jobs:
            if run_times.get(job.profile) is None:
                kind = content.profiles.get(job.profile, {}).get("type", "unknown")
                account.left_out[f"run time of a profile of the type {kind}"] += 1
        columns = {
            "submit": np.array([job.subtime for job in jobs]),
            "run_time": np.array([run_times[job.profile] for job in jobs]),
            "allocated_processors": np.array([job.res for job in jobs]),
            "requested_processors": np.array([job.res for job in jobs]),
            "requested_time": np.array([job.walltime for job in jobs]),
            **{name: np.array([_number(getattr(job, name)) for job in jobs]) for name in _NAMES},
        }
        ids = [str(job.id).rpartition("!")[2] for job in jobs]
        if all(name.isdigit() for name in ids) and len(set(ids)) == len(ids):
            columns["job_number"] = np.array([int(name) for name in ids])
        return account.log(columns, {"MaxProcs": str(content.nb_res)})

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a workload."""
        write_batsim_json(path, swf_to_workload(log, walltime="requested"))

    def lost(self, log: SwfLog) -> dict[str, int]:
        """What was recorded of the jobs is no part of a workload."""
        return lost_of(log, ("wait", "status", "average_cpu_time", "used_memory", "requested_memory"))

    def recognises(self, beginning: bytes) -> bool:
        """Curly."""
        return beginning.lstrip().startswith(b"{") and b'"nb_res"' in beginning


def _run_time(profile: dict[str, Any]) -> float | None:
    match profile:
        case {"type": "delay", "delay": int() | float() as seconds}:
            return float(seconds)
        case {"type": "parallel_homogeneous", "cpu": int() | float() as operations, "com": 0}:
            return float(operations) / LOG_SPEED
    return None


def _number(value: Any) -> int:
    return value if isinstance(value, int) else -1
