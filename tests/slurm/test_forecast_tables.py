"""Forecasts from the tables of ``squeue``.

The tables in ``tests/data/slurm/tables`` were printed by Slurm 22.05.8, all of one queue, and at the same
time as ``jobs.txt``, which ``scontrol show job`` printed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.slurm.forecast.squeue_table import Cutter, read_live
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.sbatch import Submission
from tests.processes import call_here
from tests.slurm.test_forecast import forecast_of

AT = ("--at", "2026-11-17T11:36:59")
HEADER = "JOBID PARTITION ST TIME TIME_LIMIT NODES NODELIST(REASON)\n"


@pytest.fixture
def tables(root: Path) -> Path:
    return root / "tests" / "data" / "slurm" / "tables"


def starts(found: dict[str, Any]) -> dict[str, float]:
    return {job["id"]: job["start"]["by_limits"] for job in found["jobs"]}


def jobs_of(folder: Path, text: str, moment: float | None = 100_000.0) -> dict[str, Submission]:
    (folder / "table.txt").write_text(text)
    findings = Findings()
    live = read_live(folder / "table.txt", "UTC", findings, moment)
    assert not findings.mistakes
    return {job.id: job for job in live.jobs}


@pytest.mark.parametrize("name", ["bars.txt", "all.txt"])
def test_a_table_with_all_that_counts_tells_the_same_as_scontrol(tables: Path, name: str) -> None:
    found, expected = forecast_of(tables, listing=name), forecast_of(tables)
    assert found["now"] == expected["now"] == "2026-11-17 11:36:59", "a running job tells"
    assert starts(found) == starts(expected)
    assert (found["running"], found["held"]) == (6, 2)
    assert len(found["not_modelled"]) == 1 and "tells no tasks" in found["not_modelled"][0]


@pytest.mark.parametrize(("name", "unknown"), [("fields.txt", {"9"}), ("words.txt", {"8", "9"})])
def test_jobs_that_wait_for_what_is_not_told_have_no_forecast(
    tables: Path, name: str, unknown: set[str]
) -> None:
    found = forecast_of(tables, *AT, listing=name)
    expected = starts(forecast_of(tables))
    known = {job: start for job, start in expected.items() if job not in unknown}
    assert starts(found) == pytest.approx(known, abs=1), "a cycle takes longer with more jobs"
    told = [line for line in found["not_modelled"] if "no forecast (1 x)" in line]
    assert len(told) == len(unknown)


def test_the_long_table_tells_when_it_was_printed_and_whole_nodes_are_assumed(tables: Path) -> None:
    found = forecast_of(tables, listing="long.txt")
    expected = starts(forecast_of(tables))
    assert found["now"] == "2026-11-17 11:36:59"
    assert (found["running"], found["held"], found["misplaced"]) == (6, 4, 0)
    for job in ("3", "5_[3-8%2]", "6_[1,4,9]", "15"):
        assert starts(found)[job] == pytest.approx(expected[job], abs=1), "it needs whole nodes"
    assert starts(found)["16"] > expected["16"], "it needs a part of two nodes"
    assert sum("whole nodes" in line for line in found["not_modelled"]) == 1


def test_without_time_limits_those_of_the_partitions_count(tables: Path) -> None:
    found = forecast_of(tables, *AT, listing="plain.txt")
    limits = {job["id"]: (job["partition"], job["time_limit"]) for job in found["jobs"]}
    assert limits["3"] == ("batch", 3600), "its DefaultTime"
    assert limits["15"] == ("interactive", 7200), "its MaxTime; its name is cut in the table"
    assert any("tells no time limits" in line for line in found["not_modelled"])


def test_without_any_time_limit_there_is_no_forecast(tables: Path, tmp_path: Path) -> None:
    text = (tables / "slurm.conf").read_text()
    (tmp_path / "slurm.conf").write_text(text.replace(" MaxTime=2-0 DefaultTime=1:00:00", ""))
    arguments = ["slurm", "forecast", tmp_path / "slurm.conf", tables / "plain.txt", *AT]
    code, out, err = call_here(arguments)
    assert (code, out) == (1, "") and len(err.splitlines()) == 1
    assert "line 9: job 1: neither the table nor partition batch has a time limit; give" in err


def test_each_task_of_an_array_in_a_row_of_its_own(tables: Path) -> None:
    live = read_live(tables / "each.txt", "UTC", Findings(), 0.0)
    tasks = [job for job in live.jobs if job.name == "5"]
    assert [(job.id, job.array) for job in tasks] == [(f"5_{task}", str(task)) for task in range(3, 9)]


def test_states_times_and_arrays(tmp_path: Path) -> None:
    jobs = jobs_of(
        tmp_path,
        HEADER + "12_3 batch R 1-02:03:04 2-00:00:00 1 n1\n"
        "12_[4-8%2] batch PD 0:00 2-00:00:00 1 (Resources)\n"
        "13 batch CG 5:00 1:00:00 1 n2\n"
        "14 batch CD 5:00 1:00:00 1 n2\n"
        "15 batch PD 0:00 UNLIMITED 1K (Nodes required for job are DOWN, DRAINED or reserved)\n"
        "16 batch PD 0:00 NOT_SET 1 (JobHeldAdmin)\n",
    )
    assert jobs.keys() == {"12_3", "12_[4-8%2]", "13", "15", "16"}
    assert jobs["12_3"].started == 100_000 - 93_784
    assert jobs["12_3"].array == "3%2", "the limit is that of the whole array"
    assert jobs["13"].time == 0, "it ends"
    assert (jobs["15"].nodes[0], jobs["15"].time) == (1024, float("inf"))
    assert (jobs["16"].fields["priority"], jobs["16"].time) == (0, None)
    assert jobs["12_[4-8%2]"].fields["priority"] > jobs["15"].fields["priority"] > 0


def test_what_a_job_has_in_all_tells_processors_memory_and_gpus(tmp_path: Path) -> None:
    header = "JOBID|PARTITION|STATE|TIME_LEFT|TIME|TRES_ALLOC|PRIORITY|NODELIST\n"
    jobs = jobs_of(
        tmp_path,
        header + "1|gpu|RUNNING|50:00|10:00|cpu=8,mem=800M,node=2,billing=8,gres/gpu=4|0.5|n[1-2]\n"
        "2|gpu|COMPLETI|0:00|10:00|cpu=1,mem=100M,node=1,billing=1|0.00000000023283|n3\n",
    )
    assert (jobs["1"].tasks, jobs["1"].memory_per_cpu, jobs["1"].nodes[0]) == (8, 100, 2)
    assert jobs["1"].resources_per_node == {"gpu": 2}
    assert jobs["1"].time == 3600
    assert [jobs[name].fields["priority"] for name in "12"] == [1 << 31, 1], "of 2 ** 32 - 1"


def test_running_jobs_may_share_a_node_and_its_memory(tables: Path, tmp_path: Path) -> None:
    conf = (tables / "slurm.conf").read_text().replace("CR_Core", "CR_Core_Memory")
    (tmp_path / "slurm.conf").write_text(conf)
    (tmp_path / "long.txt").write_text((tables / "long.txt").read_text())
    found = forecast_of(tmp_path, listing="long.txt")
    assert found["misplaced"] == 0
    assert any("tells no memory" in line for line in found["not_modelled"])


def test_rows_that_are_wider_than_their_columns() -> None:
    header = " JOBID     NAME TIME_LIMI  NODES NODELIST(REASON)"
    rows = [
        "     1     wrap   1:00:00      4 (Resources)",
        "     2 two word 10-02:04:00      2 (Nodes are DOWN)",
        "     3 running    1:00:00      1 n3",
    ]
    cutter = Cutter(header, rows)
    assert [cutter.cells(row) for row in rows] == [
        ["1", "wrap", "1:00:00", "4", "(Resources)"],
        ["2", "two word", "10-02:04:00", "2", "(Nodes are DOWN)"],
        ["3", "running", "1:00:00", "1", "n3"],
    ]


def test_cells_that_are_empty_or_touch_each_other() -> None:
    header = "JOBID     NODELIST  NAME      ST"
    rows = ["1                   wrap      PD", "2         n[1,3,5,7]two words R"]
    cutter = Cutter(header, rows)
    assert [cutter.cells(row) for row in rows] == [
        ["1", "", "wrap", "PD"],
        ["2", "n[1,3,5,7]", "two words", "R"],
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER, "there is no job that waits or runs"),
        ("JOBID PARTITION TIME\n1 batch 0:00\n", "line 1: has no column ST or STATE"),
        (HEADER + "1 batch R\n", "line 2: has 3 columns, and the header has 7"),
        ("JOBID|NAME|ST\n1|a|b|R\n", "line 2: has 4 columns, and the header has 3"),
        (HEADER + "5_[3- batch R 0:00 1:00 1 n1\n", "line 2: JOBID '5_[3-' is cut"),
        (HEADER + "x batch R 0:00 1:00 1 n1\n", "line 2: JOBID 'x' is not the number of a job"),
        (HEADER + "1 batch R soon 1:00 1 n1\n", "line 2: 'soon' is not a time like 1-02:03:04"),
        (HEADER + "1 batch R 0:00 long 1 n1\n", "line 2: job 1: 'long' is not a time"),
        (HEADER + "1 batch R 0:00 1:00 some n1\n", "line 2: job 1: NumNodes='some' is not a number"),
        (HEADER + "1 batch R 0:00 1:00 2 n[1,3\n", "line 2: job 1: 'n[1,3' is not a list of nodes"),
        (HEADER + "1 gone R 0:00 1:00 1 n1\n", "there is no partition gone"),
        ("JOBID|ST|TIME|START_TIME\n1|R|0:01|today\n", "line 2: job 1: StartTime 'today' is not a moment"),
        ("JOBID|ST|PRIORITY\n1|PD|0.x\n", "line 2: '0.x' is not a number"),
    ],
)
def test_tables_that_are_wrong_are_told_by_line(tables: Path, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "table.txt").write_text(text)
    code, out, err = call_here(["slurm", "forecast", tables / "slurm.conf", tmp_path / "table.txt", *AT])
    assert (code, out) == (1, "") and words in err and "Traceback" not in err
    assert len(err.splitlines()) == 1


def test_a_table_that_does_not_tell_when_it_was_printed_needs_the_moment(tables: Path) -> None:
    code, _, err = call_here(["slurm", "forecast", tables / "slurm.conf", tables / "plain.txt"])
    assert code == 1 and "give --at TIME" in err
