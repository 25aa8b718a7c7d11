"""The same simulation gives the same bytes in any process, whatever the seed of Python's hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.schedulers import SCHEDULERS
from tests.processes import call

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden"


@pytest.mark.parametrize("scheduler", SCHEDULERS.all())
def test_outputs_do_not_depend_on_the_hash_seed(scheduler: str, tmp_path: Path) -> None:
    folder = GOLDEN / "two_workloads"
    arguments = ["-w", folder / "small12.json", "-w", folder / "rigid200.json", "-p", folder / "flat16.xml"]
    written = []
    for seed in ("1", "4242"):
        prefix = tmp_path / seed
        code, _, err = call(["run", *arguments, "-s", scheduler, "-e", prefix], PYTHONHASHSEED=seed)
        assert (code, err) == (0, "")
        written.append([(tmp_path / f"{seed}_{name}").read_bytes() for name in ("jobs.csv", "schedule.csv")])
    assert written[0] == written[1]
