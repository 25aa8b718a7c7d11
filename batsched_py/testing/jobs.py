"""Jobs to test with, in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
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

    @property
    def duration(self) -> float:
        """How long it runs: until it ends by itself or is killed at its walltime."""
        return min(self.run_time, self.walltime)


def job(
    name: str, size: int = 1, walltime: float = inf, submission: float = 0.0, user: str | None = None
) -> Job:
    """A job as a policy sees it, which does not know how long it will run."""
    return Job(
        f"w0!{name}", float(submission), size, float(walltime), "p", {} if user is None else {"user": user}
    )


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
                f"run_{spec.run_time}",
                {"user": str(number % 3) if spec.user is None else spec.user}
                | ({"request": dict(spec.request)} if spec.request else {}),
            )
            for number, spec in enumerate(jobs)
        ],
        profiles={f"run_{spec.run_time}": Homogeneous(spec.run_time * LOG_SPEED) for spec in jobs},
    )
