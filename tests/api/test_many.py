"""``bp.simulate_many``: a log is read once, and each simulation comes to what it comes to alone."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.api.many import FIGURES, read_for_many
from batsched_py.api.simulate import experiment_of
from batsched_py.errors import InputError
from batsched_py.experiment.run import run_experiment
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.easy import Easy
from batsched_py.workload.swf.quick_reader import NativeJobs

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"

SCHEDULERS: list[str | tuple[str, dict[str, str]]] = [
    "fcfs",
    "easy",
    ("easy", {"order": "wait / walltime"}),
    "conservative",
]


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


# --- several at a time ------------------------------------------------------------------------------


@pytest.fixture
def at_a_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """With four processors; by which threads simulations were gone through."""
    threads: set[str] = set()

    def outcome(*given: Any) -> Any:
        threads.add(threading.current_thread().name)
        return run_experiment(*given)

    monkeypatch.setattr("batsched_py.api.many.usable_cores", lambda: 4)
    monkeypatch.setattr("batsched_py.api.many.LONG", 1)
    monkeypatch.setattr("batsched_py.api.many.run_experiment", outcome)
    before = threading.active_count()
    yield threads
    assert threading.active_count() == before


OF_LIBRARY: list[str | tuple[str, dict[str, str]]] = [
    "easy",
    "easy-sjbf",
    ("easy", {"order": "wait / walltime"}),
    "conservative",
]


@pytest.mark.parametrize("users", [None, "think-time"])
def test_threads_change_nothing(
    log: bp.Log, at_a_time: set[str], monkeypatch: pytest.MonkeyPatch, users: str | None
) -> None:
    pytest.importorskip("batsched_py._native")
    several = bp.simulate_many([log, log.first(200)], OF_LIBRARY * 2, users=users, hosts=64)
    assert len(at_a_time) > 1
    monkeypatch.setattr("batsched_py.api.many.usable_cores", lambda: 1)
    pd.testing.assert_frame_equal(
        bp.simulate_many([log, log.first(200)], OF_LIBRARY * 2, users=users, hosts=64), several
    )


def test_code_of_others_is_called_as_without_threads(
    log: bp.Log, at_a_time: set[str], tmp_path: Path
) -> None:
    """It may keep something from one simulation to the next, as this policy does."""
    (tmp_path / "own.py").write_text(
        "import sys\n"
        "import batsched_py as bp\n"
        "class Alternating(bp.Scheduler):\n"
        "    def begin(self, cluster):\n"
        "        sys.turn = 1 - getattr(sys, 'turn', 0)\n"
        "    def schedule(self, cluster):\n"
        "        cluster.start_fitting() if sys.turn else cluster.start_from_head()\n"
    )
    table = bp.simulate_many(log, ["easy", f"{tmp_path}/own.py:Alternating"] * 3, hosts=64)
    waits = table["mean_waiting_time"]
    assert waits[1] == waits[5] != waits[3]
    assert waits[0] == waits[2] == waits[4]
    assert at_a_time == {threading.current_thread().name}


def test_the_first_of_the_faults_is_told(log: bp.Log, at_a_time: set[str]) -> None:
    wrong = [("easy", {"order": f"no-{number}"}) for number in range(2)]
    with pytest.raises(InputError, match="no-0"):
        bp.simulate_many(log, ["easy"] * 5 + wrong + ["easy"] * 5, hosts=64)


def test_an_interruption_ends_all_threads(log: bp.Log, at_a_time: set[str]) -> None:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(
            signal.ITIMER_REAL, 0.2, 10
        )  # again, for one that comes while garbage is looked for is lost
        with pytest.raises(KeyboardInterrupt):
            bp.simulate_many(log, ["easy", "conservative"] * 100_000, hosts=64)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
