"""What it takes to add a limit and a kind of resource: one file outside of the package, and none at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from batsched_py.errors import RuleBroken
from batsched_py.ledger.limits import Limit
from batsched_py.protocol.jobs import Job
from batsched_py.testing import Workbench
from tests.processes import call_here

ROOT = Path(__file__).parents[2]
USER_LIMIT = ROOT / "examples" / "user_limit.py"

#: Nodes with two FPGAs each, a resource that no code of ours names.
MACHINE = '[[nodes]]\ncount = 4\nname = "n"\ncores = 8\nfpga = 2\n'


def files(folder: Path) -> dict[Path, bytes]:
    """All files of a package."""
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path: path.read_bytes() for path in found}


def most_at_once(jobs: pd.DataFrame, amount: pd.Series) -> float:
    """The most of something that running jobs have together."""
    starts = pd.Series(amount.to_numpy(), jobs["starting_time"])
    ends = pd.Series(-amount.to_numpy(), jobs["finish_time"])
    changes = pd.concat([ends, starts]).groupby(level=0).sum()
    return float(changes.cumsum().max())


def test_a_new_limit_touches_one_file_outside_of_the_package(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "batsched_py", tmp_path / "batsched_py", ignore=shutil.ignore_patterns("__pycache__")
    )
    before = files(tmp_path / "batsched_py")
    shutil.copy(USER_LIMIT, tmp_path / "limit.py")
    log = ROOT / "workloads" / "sample.swf"
    words = ["run", "-w", log, "--hosts", "64", "-s", "limit.py:UserLimit(easy)", "-o", "most=1", "-e", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "batsched_py", *map(str, words)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "batsched_py") == before
    jobs = pd.read_csv(tmp_path / "out_jobs.csv")
    users = pd.Series(
        {
            int(words[0]): words[11]
            for line in log.open()
            if not line.startswith(";") and (words := line.split())
        }
    )
    jobs["user"] = users.loc[jobs["job_id"]].to_numpy()
    for _, mine in jobs.groupby("user"):
        assert most_at_once(mine, pd.Series(1, mine.index)) == 1


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "conservative"])
@pytest.mark.parametrize("machine", [["--hosts", "64"], ["-p", ROOT / "platforms" / "nodes64.toml"]])
def test_a_limit_that_nobody_reaches_changes_nothing(
    policy: str, machine: list[object], tmp_path: Path
) -> None:
    lines = (ROOT / "workloads" / "sample.swf").read_text().splitlines()
    log = tmp_path / "log.swf"
    log.write_text("\n".join(lines[:600]) + "\n")
    run = ["run", "-w", log, *machine, "-e", tmp_path / "out", "-s"]
    assert call_here([*run, policy])[0] == 0
    plain = (tmp_path / "out_jobs.csv").read_bytes()
    assert call_here([*run, f"{USER_LIMIT}:UserLimit({policy})", "-o", "most=1000"])[0] == 0
    assert (tmp_path / "out_jobs.csv").read_bytes() == plain


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("pure", ["0", "1"])
def test_a_new_resource_touches_no_file_of_the_package(policy: str, pure: str, tmp_path: Path) -> None:
    (tmp_path / "machine.toml").write_text(MACHINE)
    jobs = [
        {"id": i, "subtime": 10 * i, "res": 1, "walltime": 500, "profile": "p", "request": request}
        for i, request in enumerate([{"per_task": {"fpga": 1}}, {}] * 30)
    ]
    profiles = {"p": {"type": "delay", "delay": 400}}
    workload = tmp_path / "jobs.json"
    workload.write_text(json.dumps({"nb_res": 32, "jobs": jobs, "profiles": profiles}))
    words = ["run", "-w", workload, "-p", tmp_path / "machine.toml", "-s", policy, "-e", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-m", "batsched_py", *map(str, words)],
        env={**os.environ, "BATSCHED_PY_PURE": pure},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out_jobs.csv")
    assert most_at_once(table, pd.Series((table["job_id"] % 2 == 0).astype(int), table.index)) == 8
    words = ["validate", tmp_path / "out_jobs.csv", "-w", workload, "-p", tmp_path / "machine.toml"]
    assert call_here([*words, "--policy", policy])[0] == 0


class Nobody(Limit):
    """Lets no job start."""

    def allows(self, job: Job, run_time: float) -> bool:
        """Never."""
        return False


def test_a_limit_is_asked_by_all_that_look_at_the_machine() -> None:
    with pytest.raises(RuleBroken, match="narrows_the_machine"):
        Workbench(4, "fcfs").cluster.put_beside(Nobody())
    bench = Workbench(4, "cooled(fcfs)")
    cluster, limit = bench.cluster, Nobody()
    waiting = Job("w!a", 0.0, 2, 60.0, "p")
    bench.submit(waiting)
    assert cluster.fits(waiting) and [*cluster.fitting()] == [waiting]
    cluster.put_beside(limit)
    assert not cluster.fits(waiting) and not [*cluster.fitting()]
    assert cluster.hosts_beside(waiting, 60.0) is None
    assert cluster.lacks_only(limit, waiting) and cluster.could_fit(waiting)
    assert cluster.reservation(waiting).shadow_time == float("inf")
