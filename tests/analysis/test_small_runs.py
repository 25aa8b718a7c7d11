"""A small run is looked at without tables, and what is seen is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import to_builtins

import batsched_py as bp
from batsched_py.analysis import small_runs
from batsched_py.api.result import Overview

TIMES = {"wall_seconds", "files"}


def seen(overview: Overview) -> dict[str, object]:
    return {name: value for name, value in to_builtins(overview).items() if name not in TIMES}


@pytest.mark.parametrize("users", [None, "rigid", "think-time"])
@pytest.mark.parametrize("hosts", [64, 40, 30])
def test_an_overview_is_that_of_tables(
    root: Path, hosts: int, users: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> bp.Result:
        return bp.simulate(
            root / "workloads" / "sample.swf", "easy", hosts=hosts, users=users, progress=False
        )

    small = run()
    monkeypatch.setattr(small_runs, "MANY", 0)
    whole, found = seen(run().overview), seen(small.overview)
    assert whole.pop("utilization") == pytest.approx(found.pop("utilization"))
    assert whole == found


@pytest.mark.parametrize("hosts", [64, 33])
def test_the_engine_tells_how_busy_the_machine_was_as_the_rows_do(root: Path, hosts: int) -> None:
    log = root / "workloads" / "sample.swf"
    result = bp.simulate(log, "easy", hosts=hosts, users="think-time", sessions="arrival:60", progress=False)
    told = result.overview.utilization, result.overview.busy_until
    assert told == small_runs.busy(result._open_jobs, result.overview.jobs, hosts)


@pytest.mark.parametrize("hosts", [64, 30])
def test_steadiness_is_that_of_tables(root: Path, hosts: int) -> None:
    result = bp.simulate(root / "workloads" / "sample.swf", "fcfs", hosts=hosts, progress=False)
    jobs = result._open("jobs")
    assert jobs is not None and result.steadiness is not None
    found = small_runs.steadiness(jobs, hosts)
    assert found is not None
    for name, value in to_builtins(result.steadiness).items():
        assert getattr(found, name) == pytest.approx(value, abs=0.002), name


@pytest.mark.parametrize("engine", ["native", "python"])
def test_medians_are_those_of_tables(root: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To four digits, which is what people are told."""
    from batsched_py import native

    if engine == "python":
        monkeypatch.setattr(native, "library", None)
    log = bp.read_log(root / "workloads" / "sample.swf").first(1000)
    result = bp.simulate(log, "fcfs", hosts=40, progress=False)
    same = {
        "wait_median": "p50_waiting_time",
        "wait_p95": "p95_waiting_time",
        "bounded_slowdown_median": "p50_bounded_slowdown",
        "bounded_slowdown_p95": "p95_bounded_slowdown",
        "part_of_top_percent": "share_of_top_percent",
    }
    for ours, name in same.items():
        assert getattr(result.overview, ours) == pytest.approx(result.metrics[name], rel=1e-4), name
