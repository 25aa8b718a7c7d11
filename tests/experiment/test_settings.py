"""A setting is declared once, as a field of the experiment; everything else is made from that."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import click
import pytest
from hypothesis import given
from msgspec import Struct

import batsched_py as bp
from batsched_py.campaign.plan_entries import keys_of
from batsched_py.cli import run
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario
from batsched_py.settings import Option, Setting, settings_of, struct_from, values_of
from docs.hooks.settings import tables
from tests.experiment.strategies import experiments

ROOT = Path(__file__).parents[2]
SETTINGS = settings_of(Experiment)
each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=[setting.name for setting in SETTINGS])


@given(experiments)
def test_an_experiment_is_its_settings(experiment: Experiment) -> None:
    assert struct_from(Experiment, values_of(experiment)) == experiment


def test_what_is_not_given_has_its_default() -> None:
    easy = Choice("easy")
    assert struct_from(Experiment, {"hosts": 3, "scheduler": easy}) == Experiment(
        scenario=Scenario(machine=Machine(hosts=3)), actors=Actors(scheduler=easy)
    )


def test_no_two_settings_are_called_alike() -> None:
    for called in (
        [setting.name for setting in SETTINGS],
        [setting.plan_key for setting in SETTINGS],
        [option.word for setting in SETTINGS for option in (setting.option, *setting.option.further)],
        [flag for setting in SETTINGS for flag in setting.option.flags],
    ):
        assert len(set(called)) == len(called)


@each_setting
def test_run_has_its_options(setting: Setting) -> None:
    options = run.run_command.get_params(click.Context(run.run_command))
    flags = {flag for each in options for flag in (*each.opts, *each.secondary_opts)}
    for option in (setting.option, *setting.option.further):
        assert {*option.flags, *filter(None, [option.off])} <= flags


@each_setting
def test_simulate_has_its_parameter(setting: Setting) -> None:
    word = setting.option.word
    assert word in inspect.signature(bp.simulate).parameters
    assert f"{word}: {setting.option.help}" in str(bp.simulate.__doc__) or f"``{word}``" in str(
        bp.simulate.__doc__
    )


@each_setting
def test_a_plan_has_its_key(setting: Setting) -> None:
    table, key = setting.plan_key
    assert table in ("logs", "platforms", "schedulers", "users")
    assert (keys_of(table).get(key) == setting) != setting.is_choice


@each_setting
def test_the_page_has_its_row(setting: Setting) -> None:
    assert tables().count(f"\n| `{setting.option.usage}` | `{setting.option.word}` |") == 1


def test_a_field_that_is_no_setting_is_told() -> None:
    class Wrong(Struct):
        colour: str = "red"
        shade: Annotated[str, Option("--shade NAME", "How dark it is.")] = ""

    with pytest.raises(TypeError, match="the field 'colour' is neither a setting"):
        settings_of(Wrong)


#: A field more in the struct ``Machine``.
LINE = '    racks: Annotated[int, Option("--racks N", "Put the hosts into N racks.", "platforms")] = 1\n'

SCRIPT = """
import json, sys
from click.testing import CliRunner
import batsched_py as bp
from batsched_py.cli.main import batsched_py
from batsched_py.experiment.run import run_command
from docs.hooks.settings import tables

log = sys.argv[1]
if __name__ == "__main__":
    ran = CliRunner().invoke(batsched_py, ["run", "-w", log, "-s", "easy", "--racks", "2", "-e", "run"])
    plan = bp.Plan(logs={"log": log}, platforms={"p": {"racks": 4}}, schedulers=["easy"])
    campaign = plan.run("campaign", workers=1)
    print(json.dumps({
        "exit code": ran.exit_code,
        "help": CliRunner().invoke(batsched_py, ["run", "--help"]).stdout,
        "python": run_command(bp.simulate(log, "easy", racks=3).experiment, "out"),
        "doc": bp.simulate.__doc__,
        "manifest": [run.manifest.command for run in campaign.finished()],
        "page": tables(),
    }))
"""


def test_a_new_setting_is_one_line(tmp_path: Path) -> None:
    """In a copy of the package with one field more, commands, Python, plans and pages know the setting."""
    for package in ("batsched_py", "docs"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    value = tmp_path / "batsched_py" / "experiment" / "value.py"
    before, after = value.read_text().split("    mmax: ")
    value.write_text(f"{before}{LINE}    mmax: {after}")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py", ROOT / "workloads" / "sample.swf"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["exit code"] == 0
    assert "--racks N" in told["help"]
    assert "--racks 3" in told["python"]
    assert "racks: Put the hosts into N racks." in told["doc"]
    assert ["--racks 4" in command for command in told["manifest"]] == [True]
    assert "| `--racks N` | `racks` | `racks` | `1` | Put the hosts into N racks. |" in told["page"]
