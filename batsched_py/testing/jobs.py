"""Jobs to test with, in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous, HomogeneousTotal
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.conventions import LOG_SPEED


@dataclass(frozen=True)
class JobSpec:
    """A job to be simulated: what it asks for, and how long it would run if it were never killed."""

    id: str
    submission: float
    size: int
    run_time: float
    walltime: float = inf
    user: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    """What it asks of nodes, as in a workload file; without it, single cores anywhere."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further fields, as in a workload file: ``after``, ``array``, ``sizes``, ``malleable``."""

    @property
    def duration(self) -> float:
        """How long it runs: until it ends by itself or is killed at its walltime."""
        return min(self.run_time, self.walltime)


def job(
    name: str,
    size: int = 1,
    walltime: float = inf,
    submission: float = 0.0,
    user: str | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Job:
    """A job as a policy sees it, which does not know how long it will run.

    Its further ``fields`` are those of a workload file, like ``{"after": "afterok:a"}``.
    """
    extra = {**(fields or {}), **({} if user is None else {"user": user})}
    return Job(f"w0!{name}", float(submission), size, float(walltime), "p", extra)


def workload_of(jobs: Sequence[JobSpec]) -> Workload:
    """The jobs as a workload; those without a user belong to three users in turn."""
    return Workload(
        name="w0",
        jobs=[
            Job(
                f"w0!{spec.id}",
                float(spec.submission),
                spec.size,
                float(spec.walltime),
                _profile_name(spec),
                {"user": str(number % 3) if spec.user is None else spec.user}
                | ({"request": dict(spec.request)} if spec.request else {})
                | dict(spec.fields),
            )
            for number, spec in enumerate(jobs)
        ],
        profiles={_profile_name(spec): _profile(spec) for spec in jobs},
    )


def _profile_name(spec: JobSpec) -> str:
    return f"run_{spec.run_time}" + (f"_shared_by_{spec.size}" if "sizes" in spec.fields else "")


def _profile(spec: JobSpec) -> Homogeneous:
    """What a job does; one with several sizes divides it among its hosts."""
    work = spec.run_time * LOG_SPEED
    return HomogeneousTotal(work * spec.size) if "sizes" in spec.fields else Homogeneous(work)
