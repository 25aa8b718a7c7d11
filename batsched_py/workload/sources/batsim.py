"""Workloads of Batsim as logs."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.jobs import Job, is_natural
from batsched_py.protocol.profiles import Delay, Homogeneous, Profile, Unintelligible
from batsched_py.workload.batsim_json import read_content, write_batsim_json
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.sources import Source, count_lost
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.swf.conventions import EXTRA, LOG_SPEED
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.workload import swf_to_workload

_RECORDED = (
    "wait", "status", "average_cpu_time", "used_memory", "requested_memory", "preceding_job", "think_time",
)  # fmt: skip


class Batsim(Source):
    """Workloads of Batsim (JSON): jobs and what they do, without anything that was recorded of them.

    The run time of a job is known where its profile is a delay, or computes as much on each host: then it is
    that on hosts of 1 Gflop/s. Other jobs are left out. Those of Batsim 5 are recognised when they are read;
    written are those of Batsim 4.
    """

    name = "batsim"
    endings = (".json",)
    keeps_cancelled = False
    dialect: ClassVar[Dialect] = BATSIM4
    """What is written."""

    def read(self, path: Path) -> SwfLog:
        """Read a workload, of either Batsim."""
        content = read_content(path)
        account = Account(path)
        run_times = {name: _run_time(profile) for name, profile in content.profiles.items()}
        jobs = [job for job in content.jobs if run_times.get(job.profile) is not None]
        for job in content.jobs:
            if run_times.get(job.profile) is None:
                kind = _kind(content.profiles.get(job.profile))
                account.left_out[f"run time of a profile of the type {kind}"] += 1
        columns = {
            "submit": np.array([job.submission_time for job in jobs]),
            "run_time": np.array([run_times[job.profile] for job in jobs]),
            "allocated_processors": np.array([job.size for job in jobs]),
            "requested_processors": np.array([job.size for job in jobs]),
            "requested_time": np.array([job.walltime if job.has_walltime else -1.0 for job in jobs]),
            **{name: _extra_of(jobs, name) for name in EXTRA},
        }
        more = {}
        if any("request" in job.extra for job in jobs):
            more["request"] = _requests_of(jobs)
        ids = [job.name for job in jobs]
        if all(re.fullmatch("[0-9]{1,15}", name) for name in ids) and len(set(ids)) == len(ids):
            columns["job_number"] = np.array([int(name) for name in ids])
        return account.log(columns, {"MaxProcs": str(content.about["nb_res"])}, more=more)

    def write(self, path: Path, log: SwfLog) -> None:
        """Write a workload."""
        words = NodeWords() if "request" in log.more else None
        write_batsim_json(path, swf_to_workload(log, walltime="requested", words=words), self.dialect)

    def lost(self, log: SwfLog) -> dict[str, int]:
        """What was recorded of the jobs is no part of a workload."""
        return count_lost(log, _RECORDED, kept=("request", "after", "array"))

    def recognises(self, beginning: bytes) -> bool:
        """Curly."""
        return beginning.lstrip().startswith(b"{") and b'"nb_res"' in beginning


class Batsim5(Batsim):
    """The same, but written are workloads of Batsim 5."""

    name = "batsim5"
    endings = (".batsim5.json",)
    dialect = BATSIM5


def _extra_of(jobs: Sequence[Job], name: str) -> NDArray[Any]:
    """What a field of the jobs is where it is a number; else -1."""
    return np.array([each if is_natural(each := job.extra.get(name)) else -1 for job in jobs])


def _requests_of(jobs: Sequence[Job]) -> NDArray[Any]:
    """What the jobs ask for on a machine of nodes, as texts that are empty where it is nothing."""
    requests = [msgspec.json.encode(job.extra.get("request", {})).decode() for job in jobs]
    return np.array([text if text != "{}" else "" for text in requests], dtype=object)


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
