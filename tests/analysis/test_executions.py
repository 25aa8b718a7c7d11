"""Two executions of one workload, compared job by job."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.analysis import executions
from batsched_py.analysis.executions import Executions, all_figures, compare_executions
from batsched_py.analysis.plots.runs import Run, recorded_run, run_of
from batsched_py.errors import InputError
from batsched_py.workload.swf.log import SwfLog


def run(label: str, *jobs: tuple[str, float, float, float, str]) -> Run:
    """A run of jobs, each with name, submission, start, finish and hosts."""
    names, submissions, starts, finishes, hosts = zip(*jobs, strict=True)
    table = pd.DataFrame(
        {
            "job_id": names,
            "workload_name": "w0",
            "submission_time": submissions,
            "starting_time": starts,
            "finish_time": finishes,
            "allocated_resources": hosts,
            "final_state": "COMPLETED_SUCCESSFULLY",
        }
    )
    return run_of(table, label, 4)


@pytest.fixture
def both() -> Executions:
    first = run(
        "A", ("1", 0, 0, 10, "0-1"), ("2", 0, 10, 30, "0"), ("3", 5, 10, 20, "1"), ("4", 0, 0, 5, "3")
    )
    second = run(
        "B", ("1", 0, 0, 10, "0-1"), ("2", 0, 14, 34, "0"), ("3", 5, 10, 20, "2"), ("5", 0, 0, 5, "3")
    )
    return compare_executions(first, second)


def test_each_job_of_both_has_its_differences(both: Executions) -> None:
    assert both.jobs.index.to_list() == ["w0!2", "w0!1", "w0!3"]
    assert both.jobs["later"].to_list() == [4.0, 0.0, 0.0]
    assert both.jobs["longer_wait"].to_list() == [4.0, 0.0, 0.0]
    assert both.jobs["longer_run"].to_list() == [0.0, 0.0, 0.0]
    assert both.has_other_hosts.to_dict() == {"w0!2": False, "w0!1": False, "w0!3": True}
    assert (both.only_first, both.only_second) == (["w0!4"], ["w0!5"])
    assert both.first_difference == 10.0


def test_what_came_out_is_over_the_jobs_of_both(both: Executions) -> None:
    measured = both.measured()
    assert measured["makespan"] == (30.0, 34.0)
    assert measured["mean wait"] == (5.0, pytest.approx(19 / 3))
    assert measured["mean bounded slowdown"] == (
        pytest.approx((1 + 1.5 + 1.5) / 3),
        pytest.approx((1 + 34 / 20 + 1.5) / 3),
    )


def test_charts_say_of_each_job_what_became_of_it(both: Executions) -> None:
    drawn, since = all_figures(both)
    assert since == 0
    kinds = {
        name: {layer.name: [mark[4] for mark in layer.marks] for layer in figure.layers}
        for name, figure in drawn.items()
        if figure is not None and name != "differences"
    }
    assert kinds == {
        "first": {
            "as in the other": ["job w0!1"],
            "earlier": ["job w0!2"],
            "on other hosts": ["job w0!3"],
            "only here": ["job w0!4"],
        },
        "second": {
            "as in the other": ["job w0!1"],
            "later": ["job w0!2"],
            "on other hosts": ["job w0!3"],
            "only here": ["job w0!5"],
        },
    }


def test_crowded_charts_begin_where_the_executions_differ(
    both: Executions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "MOST_RECTANGLES", 2)
    drawn, since = all_figures(both)
    assert since == 10.0
    assert drawn["first"] is not None and drawn["first"].x.ends == (10.0, 34.0)
    assert sum(len(layer.marks) for layer in drawn["first"].layers) == 2


def test_the_same_execution_has_no_difference(both: Executions) -> None:
    assert compare_executions(both.first, both.first).first_difference is None


def test_a_log_is_an_execution_without_hosts(tmp_path: Path) -> None:
    sample = bp.read_log(Path(__file__).parents[2] / "workloads" / "sample.swf").first(60)
    columns: SwfLog = sample.columns
    simulated = bp.simulate(sample, "easy", progress=False)
    found = compare_executions(recorded_run(columns), run_of(simulated.jobs, "easy", 64))
    assert len(found.jobs) == 60 and not found.has_other_hosts.any()
    found.save(tmp_path / "page.html")
    data = re.search(r'id="data"[^>]*>(.*?)</script>', (tmp_path / "page.html").read_text(), re.DOTALL)
    assert data is not None and msgspec.json.decode(data[1])["first"] is None


def test_results_in_python_are_compared_and_saved(tmp_path: Path) -> None:
    sample = bp.read_log(Path(__file__).parents[2] / "workloads" / "sample.swf").first(60)
    fcfs, slow = (bp.simulate(sample, "fcfs", hosts=64, launch_time=time, progress=False) for time in (0, 30))
    slow.label = "launched slowly"
    found = fcfs.diff(slow)
    assert (found.jobs["later"] >= 30).all()
    found.save(tmp_path / "jobs.csv")
    assert len(pd.read_csv(tmp_path / "jobs.csv")) == 60
    with pytest.raises(InputError, match=r"ends in \.html, \.csv or \.parquet"):
        found.save(tmp_path / "jobs.png")


def test_runs_without_a_common_job_are_refused(both: Executions) -> None:
    with pytest.raises(InputError, match="no job ran both in A and in C"):
        compare_executions(both.first, run("C", ("9", 0, 0, 1, "0")))
    with pytest.raises(InputError, match="D: job w0!1 is there twice"):
        compare_executions(both.first, run("D", ("1", 0, 0, 1, "0"), ("1", 0, 1, 2, "0")))
