"""The example that trains an agent, with a budget of seconds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import batsched_py as bp
from batsched_py.cli.main import batsched_py


@pytest.fixture(scope="module")
def trained(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The weights that it has learned from seven weeks, and what it prints about the eighth."""
    weights = tmp_path_factory.mktemp("trained") / "deep" / "agent.npy"
    budget = "--weeks 7 --generations 2 --pairs 1 --jobs 30".split()
    command = [sys.executable, str(root / "examples" / "train_agent.py"), *budget, "--output", str(weights)]
    return weights, subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_it_compares_the_agent_with_known_policies(root: Path, trained: tuple[Path, str]) -> None:
    """Over the jobs of a week inside a simulation of the whole log."""
    row = r"^\| ([^|]+) \| (\S+) \| \S+ \| - \| \S+ h \|$"
    rows = dict(re.findall(row, trained[1], flags=re.MULTILINE))
    log = bp.read_log(root / "workloads" / "sample.swf")
    week = log.part(8).columns.job_number.astype(str)
    for name, scheduler in (("FCFS", "fcfs"), ("SJF", "sjf"), ("EASY", "easy")):
        jobs = bp.simulate(log, scheduler, hosts=64).jobs.set_index("job_id").loc[week]
        slowdowns = (jobs["turnaround_time"] / jobs["execution_time"].clip(lower=10)).clip(lower=1)
        assert rows[name] == f"{slowdowns.mean():.1f}"
    assert {"F1", "agent before training", "agent", "agent with backfilling"} < rows.keys()


def run(root: Path, weights: str, folder: Path) -> Result:
    log, agent = root / "workloads" / "sample.swf", root / "examples" / "agent.py"
    command = f"run -w {log} --hosts 64 -s {agent}:Agent -o weights_file={weights} -e {folder}/out"
    return CliRunner().invoke(batsched_py, command.split())


def test_what_it_has_learned_is_a_scheduler(root: Path, tmp_path: Path, trained: tuple[Path, str]) -> None:
    assert run(root, str(trained[0]), tmp_path).exit_code == 0
    assert len((tmp_path / "out_jobs.csv").read_text().splitlines()) == 3001


def test_an_agent_that_was_not_trained_says_so(root: Path, tmp_path: Path) -> None:
    failed = run(root, "nowhere.npy", tmp_path)
    assert failed.exit_code == 1
    assert failed.stderr == (
        "batsched-py: error: nowhere.npy: No such file or directory; run train_agent.py first\n"
    )
