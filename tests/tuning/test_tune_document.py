"""The tutorial on tuning: its plan is the one that ships, its commands run, and its figures come out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.test_readme import ROOT, run

pytest.importorskip("optuna")

PAGE = (ROOT / "docs" / "tune.md").read_text()


def test_the_plan_is_the_one_that_ships() -> None:
    plan = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert plan is not None
    assert (ROOT / "examples" / "plans" / "tune.toml").read_text().endswith(plan[1])


def test_its_commands_run_and_its_figures_come_out(tmp_path: Path) -> None:
    """What is found depends on the version of Optuna; what today's settings come to does not."""
    for folder in ("workloads", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    shown, ran = [run(command, tmp_path) for command in re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)]
    assert "30 trials" in shown and "workloads/sample.swf --hosts 64 -s easy -o" in shown
    assert "mean bounded slowdown" in ran
    assert {path.name for path in (tmp_path / "out" / "tune").iterdir()} == {
        "best.toml", "held-out", "index.html", "plan.toml", "result.json", "trials"
    }  # fmt: skip
    (each,) = json.loads((tmp_path / "out" / "tune" / "result.json").read_text())["finalists"][0]["compared"]
    assert f"  mean_bounded_slowdown   {each['today']:.2f} " in PAGE
    assert each["nb_parts"] == 12
