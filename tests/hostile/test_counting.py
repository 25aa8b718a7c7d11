"""No job is counted twice, whenever a policy acts and however close two instants are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing.runs import rows_in
from batsched_py.workload.model import Workload
from tests.hostile.outcomes import needs_both, simulate

ENGINES = ["python", pytest.param("native", marks=needs_both)]

#: Three jobs, two of which are submitted within one microsecond; the last can never run.
CLOSE = [
    Job("w0!1", 0.0, 8, 20.0, "p"),
    Job("w0!2", 1.1666676, 8, 20.0, "p"),
    Job("w0!3", 1.1666678, 9, 20.0, "p"),
]


def play(engine: str, policy: Scheduler, jobs: list[Job], folder: Path) -> tuple[Any, list[dict[str, str]]]:
    """The sums and the rows of a simulation on eight hosts."""
    outputs = Outputs(str(folder / "out"))
    workload = Workload("w0", jobs, {"p": Homogeneous(10e9)})
    simulate(engine, Setup(Platform.homogeneous(8), [workload]), DecisionProcess(policy), outputs)
    return outputs.results, rows_in(folder / "out_jobs.csv")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_is_rejected_once(engine: str, tmp_path: Path) -> None:
    results, rows = play(engine, Fcfs(), CLOSE, tmp_path)
    assert Counter(row["job_id"] for row in rows) == {"1": 1, "2": 1, "3": 1}
    assert (results.nb_jobs, results.nb_rejected, results.nb_success) == (3, 1, 2)


class Eager(Scheduler):
    """Starts jobs as soon as others end, before it is asked, and again when it is asked."""

    name = "eager"

    def begin(self, cluster: Cluster) -> None:
        cluster.on_end(lambda ended: self.schedule(cluster))

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.fitting():
            cluster.start(job)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_that_is_started_when_another_ends_runs_once(engine: str, tmp_path: Path) -> None:
    jobs = [Job(f"w0!{n}", n / 3, n % 8 + 1, 20.0, "p") for n in range(40)]
    results, rows = play(engine, Eager(), jobs, tmp_path)
    assert Counter(row["job_id"] for row in rows) == {str(n): 1 for n in range(40)}
    busy = sum(float(row["execution_time"]) * int(row["requested_number_of_resources"]) for row in rows)
    assert busy == pytest.approx(10 * sum(job.size for job in jobs))
    assert busy <= 8 * results.makespan
