"""The same simulation gives the same bytes in any process, whatever the seed of Python's hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.schedulers import SCHEDULERS
from tests.processes import call_one_after_another

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders with the outputs of every scheduler, each written by a process with a seed of its own."""
    golden = GOLDEN / "two_workloads"
    inputs = ["-w", golden / "small12.json", "-w", golden / "rigid200.json", "-p", golden / "flat16.xml"]
    folders = []
    for seed in ("1", "4242"):
        folder = tmp_path_factory.mktemp(f"seed{seed}")
        runs = [["run", *inputs, "-s", name, "-e", folder / name] for name in SCHEDULERS.all()]
        call_one_after_another(runs, PYTHONHASHSEED=seed)
        folders.append(folder)
    return folders


@pytest.mark.parametrize("file", ["jobs.csv", "schedule.csv"])
@pytest.mark.parametrize("scheduler", SCHEDULERS.all())
def test_outputs_do_not_depend_on_the_hash_seed(scheduler: str, file: str, outputs: list[Path]) -> None:
    one, other = ((folder / f"{scheduler}_{file}").read_bytes() for folder in outputs)
    assert one == other
