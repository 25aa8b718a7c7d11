"""Loads as an axis where users react: more or fewer of a population, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.campaign.plan_file import read_plan
from batsched_py.errors import InputError

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"

PLAN = f"""\
loads = [1.0, 1.5]

[logs]
sample = {{file = "{SAMPLE}"}}

[schedulers]
easy = {{}}

[users]
rigid = {{name = "rigid"}}
many = {{name = "resample", options = {{weeks = "1"}}}}
"""


def test_a_load_is_so_many_times_the_users_of_a_population(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    runs = {run.name: run.experiment for run in read_plan(tmp_path / "plan.toml").runs}
    population = runs["sample_load1.5_recorded_easy_many"]
    assert population.scenario.workloads.files == (str(SAMPLE),)
    assert population.actors.users is not None
    assert population.actors.users.options == {"weeks": "1", "load": "1.5"}
    rigid = runs["sample_load1.5_recorded_easy_rigid"]
    assert rigid.scenario.workloads.files != (str(SAMPLE),)


def test_what_a_load_means_is_told_of_each_kind_of_users(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    assert read_plan(tmp_path / "plan.toml").remarks == [
        "sample: other loads are other times between arrivals, not other run times or sizes.",
        "sample: other loads are more or fewer users (many), of the same kind.",
    ]


def test_other_users_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace('"rigid"}', '"think-time"}'))
    with pytest.raises(InputError, match=r"think-time users have .* of the recorded load.* name = .resample"):
        read_plan(tmp_path / "plan.toml")


def test_with_users_the_makespan_is_no_usual_column(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    assert "makespan" not in read_plan(tmp_path / "plan.toml").metrics
    (tmp_path / "plan.toml").write_text(PLAN.split("[users]")[0])
    assert "makespan" in read_plan(tmp_path / "plan.toml").metrics
