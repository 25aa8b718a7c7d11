"""What ``docs/campaigns.md`` says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from batsched_py.campaign.plan_entries import LogEntry, PlatformEntry, PluginEntry, SchedulerEntry
from batsched_py.campaign.plan_file import AllocatorEntry, read_plan
from docs.hooks.settings import tables
from tests.experiment.commands import parsed

DOCUMENT = (Path(__file__).parents[2] / "docs" / "campaigns.md").read_text()

MINE = """
from dataclasses import dataclass
from batsched_py.schedulers.easy import Easy


@dataclass
class Mine(Easy):
    name = "mine"
    depth: int = 3
    seed: int = 0
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)


def test_the_plan_is_one(root: Path, folder: Path) -> None:
    (plan,) = blocks("toml")
    workload = json.dumps({"nb_res": 4, "jobs": [], "profiles": {}})
    for name in ("day.json", "night.json"):
        (folder / name).write_text(workload)
    (folder / "small.swf").rename(folder / "KTH-SP2-1996-2.1-cln.swf.gz")
    (folder / "power100.xml").write_bytes((root / "platforms" / "power16.xml").read_bytes())
    (folder / "outages.txt").write_text("")
    (folder / "mine.py").write_text(MINE)
    for name in ("own_metric.py", "own_figure.py"):
        (folder / name).write_bytes((root / "examples" / name).read_bytes())
    (folder / "plan.toml").write_text(plan)
    runs = {run.name for run in read_plan(folder / "plan.toml").runs}
    assert "kth_base_mine_packed_a60_seed3" in runs
    assert {"both_power_slow_first-fit_rigid", "kth_flaky_easy_packed_a60"} <= runs


@pytest.mark.parametrize("entry", [LogEntry, PlatformEntry, SchedulerEntry, PluginEntry, AllocatorEntry])
def test_every_key_of_a_plan_is_explained(entry: type) -> None:
    assert set(entry.__struct_fields__) <= set(re.findall(r"`(\w+)`", DOCUMENT + tables()))


def test_the_experiment_in_python_is_that_of_its_command(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workloads").symlink_to(root / "workloads")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(blocks("python")[-1], names)
    assert (tmp_path / "out" / "half_jobs.csv").is_file()
    program, command, *options, _, _ = shlex.split(capsys.readouterr().out)
    assert (program, command) == ("batsched-py", "run")
    assert parsed(options) == names["experiment"]
