"""An exported campaign on another machine: it has what its plan needs, and goes on there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.campaign.test_hostile_archives import invoke
from tests.processes import PROGRESS

USERS = '''"""Users of a study."""

from batsched_py.users.think_time import ThinkTime


class Mine(ThinkTime):
    """Think as others do."""

    name = "mine"
'''

CHANGE = '''"""A change and a model of a study."""

from dataclasses import dataclass, replace

import numpy as np

from batsched_py.workload.changes import Change
from batsched_py.workload.models.lublin import Lublin
from batsched_py.workload.swf.log import SwfLog


@dataclass(frozen=True)
class Half(Change):
    """Keep the first half."""

    name = "half"

    def alter(self, log: SwfLog) -> tuple[SwfLog, str]:
        return log.select(np.arange(len(log) // 2)), "kept the first half"


@dataclass
class Ours(Lublin):
    """All jobs are of one user."""

    name = "ours"

    def generate(self, jobs: int, seed: int = 0) -> SwfLog:
        log = super().generate(jobs, seed)
        return replace(log, user=np.ones(len(log), dtype=np.int64))
'''

PLAN = """
metrics = ["mean_waiting_time"]

control = false

[logs]
half = { file = "small.swf", changes = ["code/logs.py:Half"] }
ours = { model = "code/logs.py:Ours", jobs = 20, processors = 32 }

[platforms]
m128 = { hosts = 128, events = "outages.txt" }

[schedulers]
shuffled = { name = "policies.py:Shuffled" }
twin = { name = "code/policies.py:Shuffled" }

[users]
mine = { name = "code/mine.py:Mine" }
"""


@pytest.fixture
def study(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with code of its own in two folders, moved so that nothing is found where the tests run."""
    here = tmp_path_factory.mktemp("here and now")
    (here / "code").mkdir()
    shutil.copy(folder / "small.swf", here)
    shutil.copy(folder / "policies.py", here)
    shutil.copy(folder / "policies.py", here / "code")
    (here / "code" / "mine.py").write_text(USERS)
    (here / "code" / "logs.py").write_text(CHANGE)
    (here / "outages.txt").write_text('{"timestamp": 9, "type": "machine_unavailable", "resources": "0"}\n')
    (here / "plan.toml").write_text(PLAN)
    return here


def test_an_export_runs_on_another_machine(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = invoke("campaign", "run", study / "plan.toml", "-d", study / "r", "-j", "1")
    assert result.exit_code == 0, result.stderr
    archive = tmp_path / "artifact.zip"
    assert invoke("campaign", "export", study / "r", archive).exit_code == 0
    logs = tmp_path / "logs"
    logs.mkdir()
    shutil.copy(study / "small.swf", logs)
    shutil.rmtree(study)
    monkeypatch.chdir(tmp_path)

    assert invoke("campaign", "import", archive, "theirs").exit_code == 0
    listed = json.loads((tmp_path / "theirs" / "campaign.json").read_text())["inputs"]
    assert {each["name"]: each["copy"] for each in listed} == {
        "code/logs.py": "logs.py",
        "code/mine.py": "mine.py",
        "code/policies.py": "policies.py",
        "outages.txt": "outages.txt",
        "policies.py": "2-policies.py",
    }
    refused = invoke("campaign", "run", "theirs/plan.toml", "--logs", logs)
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    assert "this plan was imported; to use" in refused.stderr

    trusting = ("campaign", "run", "theirs/plan.toml", "--logs", logs, "-j", "1", "--trust")
    result = invoke(*trusting)
    assert (result.exit_code, PROGRESS.sub("", result.stderr)) == (0, "")
    assert "4 runs in theirs, 0 to do" in result.stdout
    shutil.rmtree(tmp_path / "theirs" / "runs" / "half_m128_twin_mine")
    assert "4 runs in theirs, 1 to do" in invoke(*trusting).stdout
    assert invoke("campaign", "table", "theirs/plan.toml").exit_code == 0
    assert invoke("campaign", "report", "theirs", "--output", "page.html", "--trust").exit_code == 0
    assert "4 of 4 runs are finished." in (tmp_path / "page.html").read_text()


def test_a_trusted_import_needs_no_further_word(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("campaign", "run", study / "plan.toml", "-d", study / "r", "-j", "1")
    assert invoke(*arguments, "--only", "half_m128_twin_mine").exit_code == 0
    assert invoke("campaign", "export", study / "r", tmp_path / "artifact.zip").exit_code == 0
    monkeypatch.chdir(tmp_path)
    assert invoke("campaign", "import", "artifact.zip", "theirs", "--trust").exit_code == 0
    result = invoke("campaign", "run", "theirs/plan.toml", "--logs", study, "-j", "1")
    assert (result.exit_code, PROGRESS.sub("", result.stderr)) == (0, "")
    assert "4 runs in theirs, 3 to do" in result.stdout


def test_code_that_was_changed_after_the_runs_is_not_exported(study: Path, tmp_path: Path) -> None:
    """The archive has what made the results."""
    arguments = ("campaign", "run", study / "plan.toml", "-d", study / "r", "-j", "1")
    assert invoke(*arguments, "--only", "half_m128_twin_mine").exit_code == 0
    (study / "code" / "mine.py").write_text("another")
    assert invoke("campaign", "export", study / "r", tmp_path / "artifact.zip").exit_code == 0
    (study / "r" / "inputs" / "mine.py").write_text("another")
    result = invoke("campaign", "export", study / "r", tmp_path / "artifact.zip")
    assert result.exit_code == 1
    assert "inputs/mine.py was changed; run the campaign again" in result.stderr


def test_code_of_a_recipe_is_looked_for_beside_the_plan_and_renews_its_log(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ("campaign", "run", study / "plan.toml", "-d", study / "r", "-j", "1")
    arguments += ("--only", "half_m128_twin_mine")
    assert invoke(*arguments).exit_code == 0
    made = set((study / "r" / "made").glob("half-*"))
    (study / "code" / "logs.py").write_text(CHANGE.replace("// 2", "// 3"))
    assert "1 to do" in invoke(*arguments).stdout
    assert len(set((study / "r" / "made").glob("half-*")) - made) == 1
