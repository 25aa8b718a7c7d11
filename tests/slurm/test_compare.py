"""Recorded schedules beside simulated ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batsched_py.slurm.comparison import Comparison, compare, read_jobs, with_workload
from tests.processes import call_here
from tests.slurm.files import write_cluster

RECORDED = """\
number,slurm_id,submit,eligible,start,end,state,nodes,priority
1,11,0,0,0,100,COMPLETED,n1,5
2,12,10,10,110,210,COMPLETED,n[1-2],4
3,13,20,60,60,4000,COMPLETED,n[1-9],3
4,14,30,30,,,CANCELLED,,2
"""
SIMULATED = """\
number,slurm_id,submit,eligible,start,end,state,nodes,priority
1,11,0,0,0,100,COMPLETED,n1,5
2,12,10,10,130,230,COMPLETED,n[1-2],4
3,13,20,60,100,4040,COMPLETED,n[1-9],3
5,15,30,30,50,60,COMPLETED,n3,2
"""


def compared(folder: Path) -> Comparison:
    (folder / "a.csv").write_text(RECORDED)
    (folder / "b.csv").write_text(SIMULATED)
    return compare([read_jobs(folder / name, "UTC") for name in ("a.csv", "b.csv")], ("a", "b"))


def test_figures_by_hand(tmp_path: Path) -> None:
    found = compared(tmp_path)
    assert (found.only_recorded, found.only_simulated) == (0, 1)
    waits = found.all.waits
    assert (waits.jobs, waits.mean_recorded, waits.mean_simulated) == (3, 100 / 3, 160 / 3)
    assert (waits.median_recorded, waits.median_simulated) == (0, 40)
    assert found.all.deviation == pytest.approx(0.6)
    assert (found.all.start_difference, found.all.median_start_difference) == (20, 20)
    assert found.all.largest_start_difference == 40
    assert {name: each.start_difference for name, each in found.groups["class"].items()} == {
        "short, narrow": 10, "long, wide": 40,
    }  # fmt: skip


def test_utilization_over_time_holds_all_the_work(tmp_path: Path) -> None:
    utilization = compared(tmp_path).utilization
    step = utilization.edges[1] - utilization.edges[0]
    work = 100 + 2 * 100 + 9 * 3940
    assert sum(utilization.recorded) * step == pytest.approx(work)
    assert sum(utilization.simulated) * step == pytest.approx(work)


@pytest.mark.parametrize(
    ("name", "waits", "apart"),
    [("basic-1", (3109, 3111), 4), ("plans-1", (810, 926), 226), ("shared-1", (1771, 1729), 276)],
)
def test_recordings_differ_from_each_other_as_their_readme_says(
    shared: Path, name: str, waits: tuple[int, int], apart: int
) -> None:
    folder = shared / "slurm" / name
    tables = [read_jobs(folder / f"recorded-{which}.csv", "UTC") for which in "ab"]
    found = compare(tables, ("a", "b")).all
    assert (round(found.waits.mean_recorded), round(found.waits.mean_simulated)) == waits
    assert round(found.start_difference) == apart


def test_a_workload_tells_partitions_accounts_and_begin_times(tmp_path: Path) -> None:
    folder = write_cluster(tmp_path)
    call_here(["slurm", "import", folder / "slurm.conf", folder / "twin", "--jobs", folder / "jobs.sacct"])
    rows = "number,submit,eligible,start,end,state,nodes\n2,60,60,1200,1800,COMPLETED,g1\n"
    (tmp_path / "r.csv").write_text(rows)
    table = with_workload(read_jobs(tmp_path / "r.csv", "UTC"), folder / "twin" / "workload.json")
    assert table.loc["2"].to_dict() == {
        "submit": 60, "eligible": 660, "start": 1200, "end": 1800, "size": 2, "partition": "gpu",
        "account": "maths", "qos": "high", "user": "bob",
    }  # fmt: skip
    log = read_jobs(folder / "jobs.sacct", "UTC")
    assert log.loc["2"].to_dict() == table.loc["2"].to_dict()
    assert list(log.index) == ["1", "2", "3"]


def test_the_command_prints_a_table_json_and_a_page(tmp_path: Path) -> None:
    compared(tmp_path)
    arguments = ["slurm", "compare", tmp_path / "a.csv", tmp_path / "b.csv"]
    code, out, err = call_here([*arguments, "--output", tmp_path / "page.html"])
    assert (code, err) == (0, "")
    assert "all jobs" in out and "+60.0%" in out and "short, narrow" in out
    page = (tmp_path / "page.html").read_text()
    assert "deviation of the mean wait" in page and 'data-figure="utilization"' in page
    _, out, _ = call_here([*arguments, "--json"])
    assert json.loads(out)["all"]["start_difference"] == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("number,submit,eligible,start,end,state,nodes\n1,0,0,x,5,COMPLETED,n1\n", "line 2"),
        ("number,submit,eligible,start,end,state,nodes\n1,0,0\n", "line 2"),
        ("number,submit,eligible,start,end,state,nodes\n1,0,0,,,FAILED,\n", "no job of this recording ran"),
        (
            "number,submit,eligible,start,end,state,nodes\n1,0,0,1,2,F,n\n1,0,0,1,2,F,n\n",
            "two jobs called '1'",
        ),
        ("number,submit,eligible,start,end,state,nodes\n9,0,0,1,2,COMPLETED,n1\n", "no job ran both"),
        ("nothing\n", "not the header of sacct"),
        (None, "cannot be read"),
    ],
)
def test_files_that_cannot_be_compared_are_told_in_one_line(
    tmp_path: Path, text: str | None, words: str
) -> None:
    (tmp_path / "a.csv").write_text(RECORDED)
    if text is not None:
        (tmp_path / "b.csv").write_text(text)
    code, out, err = call_here(["slurm", "compare", tmp_path / "a.csv", tmp_path / "b.csv"])
    assert (code, out) == (1, "") and words in err and len(err.splitlines()) == 1


def test_an_array_is_compared_by_its_last_task(tmp_path: Path) -> None:
    """A recording has one line for an array: that of the task that was the last to leave the queue."""
    (tmp_path / "a.csv").write_text(RECORDED)
    (tmp_path / "b.csv").write_text(SIMULATED.replace("\n2,", "\n2_1,").replace("\n5,", "\n2_2,"))
    found = compare([read_jobs(tmp_path / name, "UTC") for name in ("a.csv", "b.csv")], ("a", "b"))
    assert (found.only_recorded, found.only_simulated) == (0, 1)
    assert found.all.largest_start_difference == 60, "110 s and 50 s"


def test_a_task_of_an_array_is_eligible_anew_only_if_as_many_as_may_ran_until_then(tmp_path: Path) -> None:
    """At most two tasks: the third is held while one runs and one waits, the fourth while two run."""
    rows = "1,11,0,0,0,100\n2,12,0,0,150,300\n3,13,0,100,160,400\n4,14,0,300,300,500\n"
    listing = "number,slurm_id,submit,eligible,start,end,state,nodes\n"
    (tmp_path / "a.csv").write_text(listing + rows.replace("\n", ",COMPLETED,n1\n"))
    jobs = [
        {"id": str(number), "subtime": 0, "res": 1, "walltime": 900, "profile": "p", "array": "sweep%2"}
        for number in range(1, 5)
    ]
    profiles = {"p": {"type": "delay", "delay": 100}}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))
    found = with_workload(read_jobs(tmp_path / "a.csv", "UTC"), tmp_path / "w.json")
    assert found["eligible"].tolist() == [0, 0, 0, 300]
