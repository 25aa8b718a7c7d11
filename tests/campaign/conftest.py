"""A small campaign to play with: a log of sixty jobs, policies of the tests' own, a plan that uses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from batsched_py.campaign.run import Run
from tests.campaigns import to_do

POLICIES = '''"""Policies for tests."""

import time
from dataclasses import dataclass
from random import Random

from batsched_py.schedulers import Cluster, Scheduler


def start_what_fits(jobs, cluster):
    for job in jobs:
        if cluster.fits(job):
            cluster.start(job)


@dataclass
class Shuffled(Scheduler):
    """Starts what fits, in random order."""

    name = "shuffled"
    seed: int = 0

    def begin(self, cluster: Cluster) -> None:
        self._random = Random(self.seed)

    def schedule(self, cluster: Cluster) -> None:
        jobs = list(cluster.queue)
        self._random.shuffle(jobs)
        start_what_fits(jobs, cluster)


@dataclass
class Slow(Shuffled):
    """The same, but takes its time."""

    name = "slow"
    seconds: float = 0.3

    def begin(self, cluster: Cluster) -> None:
        super().begin(cluster)
        time.sleep(self.seconds)


class Broken(Scheduler):
    """Fails."""

    name = "broken"

    def schedule(self, cluster: Cluster) -> None:
        raise RuntimeError("I am broken")


class Looping(Scheduler):
    """Never comes back."""

    name = "looping"

    def schedule(self, cluster: Cluster) -> None:
        while True:
            pass


class Idle(Scheduler):
    """Never starts a job."""

    name = "idle"

    def schedule(self, cluster: Cluster) -> None:
        pass
'''

PLAN = """
[logs]
small = { file = "small.swf" }

[platforms]
full = { hosts = 64 }
half = { hosts = 32 }

[schedulers]
fcfs = {}
easy = {}
"""


@pytest.fixture
def folder(root: Path, tmp_path: Path) -> Path:
    """A folder with the log, the policies and ``plan.toml``."""
    return write_folder(root, tmp_path)


def write_folder(root: Path, folder: Path) -> Path:
    """Write these files into a folder."""
    lines = (root / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    records = [number for number, line in enumerate(lines) if not line.startswith(";")]
    (folder / "small.swf").write_text("".join(lines[: records[60]]))
    (folder / "policies.py").write_text(POLICIES)
    (folder / "plan.toml").write_text(PLAN)
    return folder


@pytest.fixture
def write_plan(folder: Path) -> Callable[[str], Path]:
    """Writes another plan."""

    def write(text: str) -> Path:
        file = folder / "plan.toml"
        file.write_text(text)
        return file

    return write


@pytest.fixture
def first_run(folder: Path) -> Callable[[], Run]:
    """The first run of the plan, as it is now, that is not done."""
    return lambda: to_do(folder)[0]
