"""Failures, closures and prices in the plan of a campaign."""

from __future__ import annotations

from pathlib import Path

from batsched_py.campaign.plan_file import read_plan

PLAN = """
[logs]
short = {file = "log.swf"}

[platforms]
small = {hosts = 4, failures = "weibull", mtbf = 5000}

[schedulers]
easy = {name = "easy", on_failure = "checkpoint", checkpoint_interval = 60, closures = "closures.csv"}
"""


def test_a_plan_gives_the_same_settings_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(f"1 0 -1 60 2 -1 -1 2 100 -1 1 1 {'-1 ' * 6}\n")
    (tmp_path / "closures.csv").write_text("start,end,hosts\n0,50,all\n")
    (tmp_path / "plan.toml").write_text(PLAN)
    (run,) = read_plan(tmp_path / "plan.toml").runs
    experiment = run.experiment
    assert (experiment.scenario.failing.failures, experiment.scenario.failing.mtbf) == ("weibull", 5000)
    assert experiment.actors.restarting.on_failure == "checkpoint"
    assert experiment.actors.restarting.checkpoint_interval == 60
    assert experiment.actors.outside.closures == str(tmp_path / "closures.csv")
    assert str(tmp_path / "closures.csv") in experiment.files
