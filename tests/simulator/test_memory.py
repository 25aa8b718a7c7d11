"""What is finished is written and forgotten, on both sides, and what is to come is a few numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.many_jobs import ALL, EARLY
from tests.processes import PATIENCE, ROOT, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory there")

#: A log is read block by block; the shorter one fills a block.
SHORT, LONG = 100_000, 300_000


def python(*arguments: str) -> tuple[str, str]:
    """What a module of the tests writes to stdout and stderr, run in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


@pytest.mark.parametrize("arguments", [["--reuse"], pytest.param([], marks=pytest.mark.slow)])
def test_a_finished_job_leaves_next_to_nothing_behind(tmp_path: Path, arguments: list[str]) -> None:
    """Batsim refuses an identifier for ever once a job had it, so that has to be remembered.

    A thousand names that differ in their last digits take 300 bytes together. Without reuse each job also
    has a profile of its own, whose name is never free again either. Seen were 0.3 and 1.2 bytes a job; a name
    as a string would be 64, and the job itself 300.
    """
    out, _ = python("tests.many_jobs", str(tmp_path / "out"), *arguments)
    assert (tmp_path / "out_jobs.csv").read_text().count("\n") == ALL + 1
    early, late = map(int, out.split())
    assert (late - early) / (ALL - EARLY) < 8


def write_log(path: Path, nb_jobs: int) -> None:
    """A log of twenty users; each submits three jobs in a row, waits for them and thinks for an hour."""
    with path.open("w") as log:
        log.write("; MaxProcs: 64\n")
        for number in range(nb_jobs):
            bout, user, place = number // 60, number // 3 % 20, number % 3
            submit = 5000 * bout + 10 * user + place
            run_time, size = 300 + number % 977, 1 + number % 3
            log.write(f"{number} {submit} {number % 7} {run_time} {size} 1 1 1 9999 1 1 {user} 1 1 1 1 1 1\n")


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        pytest.param([], 40, id="no users"),
        pytest.param(["--users", "think-time"], 60, id="think-time users", marks=pytest.mark.slow),
    ],
)
def test_a_longer_log_takes_a_few_bytes_a_job(tmp_path: Path, options: list[str], bound: int) -> None:
    """In Python, the columns of a job take 4 bytes each for number, submission, run time and walltime, and 1
    each for wait, size and extra: 19 in all. In the library they take 4 bytes each, 28 in all. Think-time
    users know the jobs by their places, 4 bytes each, and have for each session, of three jobs here, the
    place of its first job, its finish and two more numbers of 4 bytes, and how many jobs and predecessors it
    has: 18 bytes, 6 a job; in the library 32, 11 a job. While columns grow, the largest is there twice. The
    bounds leave room for pages that are half full. Objects would take 500 bytes a job.
    """
    peaks = []
    for nb_jobs in (SHORT, LONG):
        log, prefix = tmp_path / f"{nb_jobs}.swf", tmp_path / f"{nb_jobs}"
        write_log(log, nb_jobs)
        _, err = python("tests.peak", "run", "-w", str(log), "-s", "fcfs", "-e", str(prefix), *options)
        with open(f"{prefix}_jobs.csv") as rows:
            assert sum(1 for _ in rows) == nb_jobs + 1
        peaks.append(int(err.split()[-1]))
    assert (peaks[1] - peaks[0]) / (LONG - SHORT) < bound
