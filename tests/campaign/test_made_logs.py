"""Logs of a plan that are changed or generated."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from batsched_py.campaign.plan_file import read_plan
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from batsched_py.workload.swf import read_swf

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = ROOT / "workloads" / "sample.swf"

PLAN = f"""\
[logs]
whole = {{file = "{SAMPLE}"}}
short = {{file = "{SAMPLE}", changes = ["first jobs=200"]}}
heavy = {{file = "{SAMPLE}", changes = ["first jobs=200", "load factor=1.5"], walltime = "requested"}}
model = {{model = "lublin", jobs = 150, seed = 3}}

[platforms]
m64 = {{hosts = 256}}

[schedulers]
easy = {{}}
"""


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    return file


def test_a_log_of_a_recipe_is_a_file_that_is_yet_to_be_made(plan_file: Path) -> None:
    plan = read_plan(plan_file)
    assert [log.path.name.split("-")[0] for log in plan.unmade] == ["short", "heavy", "model"]
    files = {run.axes["log"]: run.experiment.scenario.workloads for run in plan.runs}
    assert [Path(files[log.path.name.split("-")[0]].files[0]) for log in plan.unmade] == [
        log.path for log in plan.unmade
    ]
    assert files["heavy"].walltime == "requested"


def test_a_campaign_makes_them_once_and_simulates_them(plan_file: Path, tmp_path: Path) -> None:
    arguments = ["campaign", "run", str(plan_file), "-d", str(tmp_path / "out"), "-j", "1"]
    arguments += ["--only", "short_m64_easy", "--only", "model_m64_easy"]
    result = CliRunner().invoke(batsched_py, arguments)
    assert result.exit_code == 0, result.output
    plan = read_plan(plan_file)
    assert not plan.unmade
    made = {path.name.split("-")[0]: path for path in (tmp_path / "made").iterdir()}
    assert {name: len(read_swf(path)) for name, path in made.items()} == {
        "short": 200,
        "heavy": 200,
        "model": 150,
    }
    before = {path: path.stat().st_mtime_ns for path in made.values()}
    assert CliRunner().invoke(batsched_py, arguments).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in made.values()} == before


def test_another_recipe_is_another_file(plan_file: Path) -> None:
    before = {log.path for log in read_plan(plan_file).unmade}
    plan_file.write_text(PLAN.replace("factor=1.5", "factor=1.6"))
    after = {log.path for log in read_plan(plan_file).unmade}
    assert len(before - after) == len(after - before) == 1


def test_a_source_that_is_not_there_is_named_with_its_line(plan_file: Path) -> None:
    plan_file.write_text(PLAN.replace('sample.swf", changes = ["first jobs=200"]', 'no.swf", changes = []'))
    with pytest.raises(InputError, match=r"plan\.toml:3: logs\.short\.file.*there is no file"):
        read_plan(plan_file)
