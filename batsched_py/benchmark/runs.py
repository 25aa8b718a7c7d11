"""A policy on a task: the digest of its schedule, and what is measured of it."""

from __future__ import annotations

import hashlib
from functools import partial
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.outcome import Outcome, summary_in
from batsched_py.analysis.schedule import read_table, schedule_in
from batsched_py.benchmark.policies import Policy
from batsched_py.benchmark.workloads import Made
from batsched_py.engines import python
from batsched_py.errors import BatschedError
from batsched_py.experiment.build import new_batsim, read_machine
from batsched_py.experiment.run import run_experiment
from batsched_py.protocol.dialects import VERSIONS
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.simulator.outputs import PREFIX, MemoryFiles, Outputs
from batsched_py.testing.programs import Program
from batsched_py.trust import NotTrusted

#: What is measured over the week of a task.
MEASURED = (
    "mean_bounded_slowdown",
    "area_weighted_turnaround_time",
    "mean_waiting_time",
    "p99_waiting_time",
    "utilization",
    "nb_jobs_rejected",
)

#: So many seconds a program may take for each reply.
PATIENCE = 60.0

State = Literal["ok", "failed", "not-applicable"]


class Done(Struct, frozen=True, omit_defaults=True):
    """What has come of a task."""

    state: State
    jobs_sha256: str = ""
    """The SHA-256 of the bytes of the file of jobs: two schedules are the same if this is."""
    metrics: dict[str, float | None] = {}
    """To six digits; nothing where a metric has no value."""
    error: str = ""
    """Why it failed."""

    def is_as(self, other: Done) -> bool:
        """Whether both came to the same."""
        return (self.state, self.jobs_sha256, self.metrics) == (other.state, other.jobs_sha256, other.metrics)


def done(policy: Policy, made: Made) -> Done:
    """Do a task; a policy that fails has failed on this task only."""
    try:
        kept = _decided_elsewhere(policy, made) if policy.scheduler is None else _decided_here(policy, made)
        schedule = read_table(kept.open, "jobs", schedule_in)
        jobs = kept.open("jobs")
        assert schedule is not None and jobs is not None
        digest = hashlib.sha256(jobs.read().encode()).hexdigest()
        inside = Outcome.of(schedule, summary_in(kept.open("schedule"))).within(made.window)
        values = {metric.name: float(metric.compute(inside)) for metric in METRICS if metric.name in MEASURED}
    except NotTrusted:
        raise
    except BatschedError as error:
        return Done("failed", error=str(error))
    return Done("ok", digest, {name: _rounded(values[name]) for name in MEASURED})


def _decided_here(policy: Policy, made: Made) -> MemoryFiles:
    assert policy.scheduler is not None
    kept = MemoryFiles()
    run_experiment(made.under(policy.scheduler), made.workloads, PREFIX, new_file=kept.new_file)
    return kept


def _decided_elsewhere(policy: Policy, made: Made) -> MemoryFiles:
    """A program decides; it is started anew for each task."""
    kept, scenario = MemoryFiles(), made.experiment.scenario
    platform = read_machine(scenario.machine, made.workloads)
    outputs = partial(Outputs, new_file=kept.new_file)
    with TemporaryDirectory() as folder, Program(policy.words, Path(folder), PATIENCE) as program:
        process = RemoteProcess(program, VERSIONS["4"])
        batsim = new_batsim(scenario, platform, made.workloads, PREFIX, outputs)
        python.simulate(batsim, process)
    return kept


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if isfinite(value) else None
