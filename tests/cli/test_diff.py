"""``batsched-py diff``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import call_here


@pytest.fixture(scope="module")
def runs(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two executions of the sample's first jobs."""
    folder = tmp_path_factory.mktemp("runs")
    lines = (root / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    (folder / "log.swf").write_text("".join(lines[:120]))
    for scheduler in ("fcfs", "easy"):
        assert call_here(["run", "-w", folder / "log.swf", "-s", scheduler, "-e", folder / scheduler])[0] == 0
    return folder


def test_two_runs_are_compared_job_by_job(runs: Path, tmp_path: Path) -> None:
    page, table = tmp_path / "both.html", tmp_path / "jobs.csv"
    code, out, _ = call_here(
        [
            "diff",
            runs / "fcfs_jobs.csv",
            runs / "easy_jobs.csv",
            "-n",
            "3",
            "--output",
            page,
            "--output",
            table,
        ]
    )
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["fcfs", "easy"] and lines[1].startswith("makespan")
    (head,) = [number for number, line in enumerate(lines) if line.startswith("job ")]
    assert [line.split()[0][:3] for line in lines[head + 1 : head + 4]] == ["w0!"] * 3
    assert lines[head + 4 :] == [str(page), str(table)]
    assert "<h1>fcfs and easy</h1>" in page.read_text()
    assert table.read_text().startswith("job,later,longer_wait,longer_run,first_submission,")


def test_a_run_is_the_same_as_itself(runs: Path) -> None:
    code, out, _ = call_here(["diff", runs / "easy_jobs.csv", f"again={runs / 'easy_jobs.csv'}"])
    assert code == 0 and out.endswith("Each at the same time, on the same hosts.\n")


def test_a_run_is_compared_with_what_was_recorded(runs: Path) -> None:
    code, out, _ = call_here(["diff", f"real={runs / 'log.swf'}", runs / "easy_jobs.csv"])
    assert code == 0 and "start later" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{runs}/easy_jobs.csv", "{runs}/nowhere_jobs.csv"], "cannot be read: No such file or directory"),
        (["{runs}/easy_jobs.csv", "{runs}/easy_jobs.csv"], "the label 'easy' is taken"),
        (
            ["{runs}/easy_jobs.csv", "{runs}/fcfs_jobs.csv", "--output", "x.png"],
            "ends in .html, .csv or .parquet",
        ),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, runs: Path) -> None:
    code, out, err = call_here(["diff", *(each.format(runs=runs) for each in arguments)])
    assert (code, out, len(err.splitlines())) == (1, "", 1) and message in err


def test_jobs_of_other_sizes_are_told(runs: Path, tmp_path: Path) -> None:
    """Names of jobs are numbers, so executions of two workloads have jobs with the same names."""
    assert call_here(["generate", "lublin", "-n", "50", "--output", tmp_path / "other.swf"])[0] == 0
    code, out, _ = call_here(["diff", runs / "easy_jobs.csv", tmp_path / "other.swf", "-n", "0"])
    assert code == 0 and "of them held other numbers of hosts: is this one workload?" in out
    assert "other numbers" not in call_here(["diff", runs / "easy_jobs.csv", runs / "fcfs_jobs.csv"])[1]
