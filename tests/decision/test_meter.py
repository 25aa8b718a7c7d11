"""What decisions take is measured in a file of its own, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py import native
from batsched_py.analysis.outcome import decisions_beside
from batsched_py.analysis.plots.kinds.distributions import queue_sizes, slowdowns
from batsched_py.analysis.plots.kinds.over_time import by_queue_length, means_over_time
from batsched_py.decision.observers import memory_in_use
from batsched_py.errors import InputError, PolicyError
from tests.runs import Row, write_jobs

LOG = bp.read_log(Path(__file__).parents[2] / "workloads" / "sample.swf").first(jobs=300)


@pytest.fixture(params=["native", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each engine in turn."""
    if request.param == "python":
        monkeypatch.setattr(native, "library", None)
    elif native.library is None:
        pytest.skip("the native engine is not in use")
    return str(request.param)


def test_every_other_file_stays_as_it_is(engine: str, tmp_path: Path) -> None:
    for folder, decisions in ((tmp_path / "a", False), (tmp_path / "b", True)):
        bp.simulate(LOG, "easy", export=folder / "out", decisions=decisions, progress=False)
    for file in sorted((tmp_path / "a").iterdir()):
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    new = {file.name for file in (tmp_path / "b").iterdir()} - {
        file.name for file in (tmp_path / "a").iterdir()
    }
    assert new == {"out_decisions.csv"}


def test_a_line_for_each_time_the_policy_is_asked(engine: str) -> None:
    asked: list[tuple[float, int]] = []

    class Noting(bp.Scheduler):
        """First come, first served; notes when it is asked."""

        name = "noting"

        def schedule(self, cluster: bp.Cluster) -> None:
            asked.append((cluster.now, len(cluster.queue)))
            for job in cluster.fitting():
                cluster.start(job)

    result = bp.simulate(LOG, Noting, decisions=True, progress=False)
    table = result.decisions
    assert list(zip(table["time"], table["queue"], strict=True)) == asked
    assert (table[["decision_seconds", "other_seconds"]] >= 0).all().all()
    assert table["decision_seconds"].sum() > 0
    assert result.metrics["scheduling_time"] == table["decision_seconds"].sum()
    assert result.metrics["mean_decision_time"] == pytest.approx(1000 * table["decision_seconds"].mean())
    assert result.metrics["mean_memory"] == pytest.approx(table["memory_bytes"].mean())
    assert result.metrics["max_memory"] == table["memory_bytes"].max()


def test_the_line_of_a_policy_that_fails_is_still_named(engine: str) -> None:
    class Failing(bp.Scheduler):
        """Fails at once."""

        name = "failing"

        def schedule(self, cluster: bp.Cluster) -> None:
            raise ValueError("no")

    with pytest.raises(PolicyError, match=r"failed at time 0: ValueError: no \(.*test_meter.py:\d+\)"):
        bp.simulate(LOG, Failing, decisions=True, progress=False)


def test_users_and_delays_are_measured_too() -> None:
    for settings in ({"users": "think-time"}, {"scheduling_delay": 1.0}):
        result = bp.simulate(LOG, "fcfs", decisions=True, progress=False, **settings)
        assert len(result.decisions) > 300


def test_memory_in_use_grows_with_what_is_held() -> None:
    before = memory_in_use()
    held = bytearray(b"x" * (64 << 20))
    assert memory_in_use() - before > len(held) / 2


def test_nothing_is_measured_unless_asked_for(tmp_path: Path) -> None:
    result = bp.simulate(LOG, "fcfs", progress=False)
    with pytest.raises(InputError, match="decisions=True"):
        _ = result.decisions
    assert "scheduling_time" not in result.metrics
    with pytest.raises(InputError, match="simulate it with --decisions"):
        result.plot.decisions()
    assert decisions_beside(tmp_path / "out_jobs.csv") is None
    (tmp_path / "out_decisions.csv").write_text("time\n1\n")
    with pytest.raises(InputError, match="is not what a simulation with --decisions writes"):
        decisions_beside(tmp_path / "out_jobs.csv")


def test_means_over_time_and_by_queue_length() -> None:
    table = pd.DataFrame(
        {"time": [0.0, 10, 3600, 3700], "queue": [1, 1, 2, 90], "decision_seconds": [1.0, 3, 5, 7]}
    )
    assert by_queue_length(table).to_dict() == {1.0: 2.0, 2.0: 5.0, 90.0: 7.0}
    assert means_over_time(table, "decision_seconds", 3600.0).to_dict() == {0.0: 2.0, 3600.0: 6.0}


def test_what_boxes_show(tmp_path: Path) -> None:
    """Job 2 waits for job 1, job 3 for both; job 4 starts at once."""
    rows = [Row(1, 0, 0, 10, "0"), Row(2, 5, 10, 20, "0"), Row(3, 5, 20, 25, "0"), Row(4, 30, 30, 40, "0")]
    from batsched_py.analysis.plots.runs import read_run

    run = read_run(write_jobs(tmp_path / "out_jobs.csv", rows), "run")
    assert slowdowns(run).tolist() == [1.0, 1.5, 4.0, 1.0]
    assert queue_sizes(run).tolist() == [1, 2, 2, 1, 0, 1, 0]  # at 0, 5, 10, 20, 25, 30, 40
