"""``bp.simulate_many``: a log is read once, and each simulation comes to what it comes to alone."""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import ref

import pytest

import batsched_py as bp
from batsched_py.api.many import FIGURES, read_for_many
from batsched_py.api.simulate import experiment_of
from batsched_py.errors import InputError
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.easy import Easy
from batsched_py.workload.swf.quick_reader import NativeJobs

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"

SCHEDULERS = ["fcfs", "easy", ("easy", {"order": "wait / walltime"}), "conservative"]


@pytest.fixture(scope="module")
def log() -> bp.Log:
    return bp.read_log(SAMPLE).first(300)


def test_figures_are_those_of_single_simulations(log: bp.Log) -> None:
    table = bp.simulate_many([log, SAMPLE], SCHEDULERS, hosts=64)
    assert list(table["workload"]) == [0] * 4 + [1] * 4
    for row in table.to_dict("records"):
        workload = [log, SAMPLE][row["workload"]]
        alone = bp.simulate(workload, row["scheduler"], options=row["options"], hosts=64)
        for name in FIGURES:
            assert row[name] == pytest.approx(alone.metrics[name], rel=1e-12), name
    assert table["mean_waiting_time"].nunique() > 4


def test_the_first_submission_need_not_be_at_zero(log: bp.Log) -> None:
    """Without rows nobody sees when the first job was submitted, so the engine is told."""
    late = log.period(start="1h")
    table = bp.simulate_many(late, "easy", hosts=64)
    assert table["makespan"][0] == bp.simulate(late, "easy", hosts=64).overview.makespan > 0


def test_windows_and_other_metrics_are_those_of_single_simulations(log: bp.Log) -> None:
    names = ["mean_bounded_slowdown", "area_weighted_turnaround_time", "utilization"]
    table = bp.simulate_many(
        log, "easy", metrics=names, measure=["1h:3h", "3h:"], users="think-time", hosts=64
    )
    assert list(table["window"]) == ["1h:3h", "3h:"]
    for row in table.to_dict("records"):
        alone = bp.simulate(log, "easy", users="think-time", hosts=64, measure=row["window"]).metrics
        assert {name: row[name] for name in names} == {name: alone[name] for name in names}


def test_the_native_engine_need_not_make_jobs_again(log: bp.Log) -> None:
    pytest.importorskip("batsched_py._native")
    experiment, logs, _ = experiment_of([log], "easy", {}, None, {}, {"hosts": 64})
    jobs = read_for_many(experiment, logs)[0].jobs
    assert isinstance(jobs, NativeJobs)
    assert not jobs.have_dependencies
    alone = bp.simulate(log, "easy", hosts=64).workloads[0].jobs
    assert [(job.id, job.size, job.walltime, job.user) for job in jobs] == [
        (job.id, job.size, job.walltime, job.user) for job in alone
    ]


def test_what_cannot_be_measured_is_named(log: bp.Log) -> None:
    with pytest.raises(InputError, match="there is no metric 'speed'"):
        bp.simulate_many(log, "easy", metrics=["speed"])
    with pytest.raises(InputError, match="energy_cost is not known"):
        bp.simulate_many(log, "easy", metrics=["energy_cost"])


def test_simulations_are_forgotten(log: bp.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leaves few objects behind, which hold many jobs; 200 trials on a log of 90,000 jobs took 12 GB."""
    made: list[ref[Easy]] = []
    most = 0

    class Remembered(Easy):
        def begin(self, cluster: Cluster) -> None:
            nonlocal most
            super().begin(cluster)
            made.append(ref(self))
            most = max(most, sum(each() is not None for each in made))

    monkeypatch.setattr("batsched_py.experiment.run._MANY_JOBS", 3 * (300 + 1000))
    gc.disable()  # which otherwise comes by chance
    try:
        for _ in range(12):
            bp.simulate(log, Remembered, hosts=64)
    finally:
        gc.enable()
    assert len(made) == 12
    assert most <= 5
