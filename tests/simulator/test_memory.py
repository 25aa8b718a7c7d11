"""What is finished is written and forgotten, on both sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.many_jobs import ALL, EARLY
from tests.processes import PATIENCE, ROOT, environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is in bytes elsewhere")


def growth(tmp_path: Path, *arguments: str) -> float:
    """By how many bytes a finished job makes a process grow that is simulator and decision process in one."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.many_jobs", str(tmp_path / "out"), *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out_jobs.csv").read_text().count("\n") == ALL + 1
    early, late = map(int, run.stdout.split())
    return (late - early) / (ALL - EARLY)


def test_a_finished_job_leaves_only_its_name_behind(tmp_path: Path) -> None:
    """Batsim refuses an identifier for ever once a job had it, so both sides must remember it.

    That is a string of 64 bytes, and in a set on each side 2.6 places of 16 bytes: 150 bytes a job. Seen were
    120 (what the first 20,000 jobs left free is used again). The job itself would be 300 more.
    """
    assert growth(tmp_path, "--reuse") < 200


def test_without_reuse_it_leaves_the_name_of_its_profile_behind_as_well(tmp_path: Path) -> None:
    """Each job then has a profile of its own, and that name is never free again either.

    That is another string of 64 bytes, again a place in a set on each side, and for the guard one of 60 bytes
    in a dictionary: 200 bytes more, 350 in all. Seen were 273. The profile itself would be 230 more.
    """
    assert growth(tmp_path) < 400
