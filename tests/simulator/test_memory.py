"""What is finished is written and forgotten, on both sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.many_jobs import ALL, EARLY
from tests.processes import ROOT, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory there")

#: Seconds; these are the longest simulations of all tests.
PATIENCE = 300


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


@pytest.mark.parametrize("arguments", [["--reuse"], []])
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
