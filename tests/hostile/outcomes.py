"""What comes of a simulation with a hostile policy or user: one line of error, or results that are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from batsched_py import native
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import validate
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.native import NativeSimulation
from batsched_py.engines.python import Batsim, PythonSimulation
from batsched_py.errors import BatschedError
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.users import User
from batsched_py.workload.model import Workload

needs_both = pytest.mark.skipif(native.library is None, reason="the native engine is not in use")

T = TypeVar("T")

HOSTS = 4

#: Some jobs that run at once, some that wait, one that can never run.
JOBS = [
    Job("w0!1", 0.0, 2, 20.0, "long", {"user": "a"}),
    Job("w0!2", 0.0, 3, 20.0, "short", {"user": "b"}),
    Job("w0!3", 1.5, 1, 20.0, "short", {"user": "a"}),
    Job("w0!4", 1.5, 9, 20.0, "short"),
    Job("w0!5", 2.25, 4, 5.0, "long"),
]
PROFILES: dict[str, Profile] = {"long": Homogeneous(10e9), "short": Homogeneous(4e9)}


#: Results that the validator has seen; most harmless acts have the same.
_VALID: set[str] = set()


def simulate(engine: str, setup: Setup, process: DecisionProcess, outputs: Outputs) -> None:
    """Run a simulation by one of the engines."""
    if engine == "native":
        NativeSimulation(setup, process, outputs).run()
    else:
        PythonSimulation(Batsim(setup, outputs), process).run()


def outcome_of_policy(
    engine: str,
    policy: Scheduler,
    folder: Path,
    jobs: Sequence[Job] = JOBS,
    platform: Platform | None = None,
) -> str:
    """The line that is said about a policy, or the jobs as they were run."""
    workload = Workload("w0", jobs, PROFILES)
    setup = Setup(platform or Platform.homogeneous(HOSTS), [workload])
    return _outcome(engine, setup, DecisionProcess(policy), [workload], folder)


def outcome_of_users(engine: str, users: Sequence[User], folder: Path) -> str:
    """The line that is said about users, or the jobs as they were run."""
    setup = Setup(Platform.homogeneous(HOSTS), (), ev.Settings(dynamic_jobs=True, profile_reuse=True))
    return _outcome(engine, setup, DecisionProcess(Fcfs(), users), [], folder)


def same_outcomes(makers: Mapping[str, T], outcome: Callable[[str, T], str]) -> dict[str, str]:
    """What comes of each, which must be the same in both engines."""
    by_python = {name: outcome("python", make) for name, make in makers.items()}
    by_native = {name: outcome("native", make) for name, make in makers.items()}
    assert by_native == by_python
    return by_python


def _outcome(
    engine: str, setup: Setup, process: DecisionProcess, workloads: list[Workload], folder: Path
) -> str:
    outputs = Outputs(str(folder / "out"))
    try:
        simulate(engine, setup, process, outputs)
    except BatschedError as error:
        line = str(error)
        assert line.isprintable(), line
        return line
    text = (folder / "out_jobs.csv").read_text()
    if text not in _VALID:
        violations = validate(read_schedule(folder / "out_jobs.csv"), HOSTS, workloads)
        assert not violations, violations
        _VALID.add(text)
    return text


class Policy(Scheduler):
    """Starts what fits, and does something hostile at some moment."""

    name = "hostile"

    def __init__(
        self, act: Callable[[Cluster], object], moment: str = "schedule", once: bool = False
    ) -> None:
        self.act = act
        self.moment = moment
        self.once = once
        self.cluster: Any = None

    def begin(self, cluster: Cluster) -> None:
        self.cluster = cluster
        if self.moment == "begin":
            self.act(cluster)
        if self.moment == "end":
            cluster.on_end(lambda ended: self.act(cluster) and None)
        if self.moment == "order":
            cluster.order_queue(self._order)

    def _order(self, waiting: Any, now: float) -> Any:
        self.act(self.cluster)
        return waiting.submission

    def _condition(self, size: int, estimate: float) -> bool:
        self.act(self.cluster)
        return True

    def estimate(self, job: Job) -> float:
        if self.moment == "estimate":
            self.act(self.cluster)
        return job.walltime

    def schedule(self, cluster: Cluster) -> None:
        if self.moment == "schedule" and cluster.queue and cluster.running:
            self.act(cluster)
            self.moment = "never" if self.once else self.moment
        for job in cluster.fitting(self._condition if self.moment == "condition" else None):
            cluster.start(job)
        if self.moment == "decided":
            self.act(cluster)
