"""A trained agent on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py.cli.main import batsched_py

AGENT = '''
from batsched_py.gym import AgentScheduler, PickJob

class Agent(AgentScheduler):
    """The first waiting job, by way of an agent."""

    name = "agent"

    def task(self):
        return PickJob(backfilling=True)

    def act(self, observation):
        return %s
'''


@pytest.fixture
def sample(root: Path) -> Path:
    return root / "workloads" / "sample.swf"


def run(sample: Path, scheduler: str, prefix: Path) -> Result:
    command = ["run", "-w", str(sample), "--hosts", "64", "-s", scheduler, "-e", str(prefix), "--json"]
    return CliRunner().invoke(batsched_py, command)


def test_it_is_a_scheduler_like_any_other(tmp_path: Path, sample: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT % 0)
    run(sample, "easy", tmp_path / "easy")
    report = json.loads(run(sample, f"{tmp_path}/agent.py:Agent", tmp_path / "agent").stdout)
    assert report["jobs"] == 3000
    assert (tmp_path / "agent_jobs.csv").read_bytes() == (tmp_path / "easy_jobs.csv").read_bytes()


def test_an_agent_that_fails_is_blamed_by_its_line(tmp_path: Path, sample: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT % "next(iter([]))")
    failed = run(sample, f"{tmp_path}/agent.py:Agent", tmp_path / "agent")
    assert failed.exit_code == 1
    assert "scheduler 'agent' failed at time 0: StopIteration" in failed.stderr
    assert "agent.py:13)" in failed.stderr
