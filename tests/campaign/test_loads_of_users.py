"""Loads as an axis where users react: more or fewer of them, or the same users with more work."""

from __future__ import annotations

from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.campaign.plan_file import Plan, read_plan
from batsched_py.campaign.prepare import make
from batsched_py.errors import InputError
from tests.processes import call_here

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


def planned(folder: Path, head: str, users: str = 'a60 = {name = "think-time"}') -> Plan:
    """A plan with other users, and loads as the head says."""
    text = f"{head}\n{PLAN.partition('[users]')[0]}[users]\n{users}\n"
    (folder / "plan.toml").write_text(text)
    return read_plan(folder / "plan.toml", folder=folder)


@pytest.mark.parametrize("head", ["", 'load_by = "users"'])
def test_with_users_a_load_is_a_population_of_them(tmp_path: Path, head: str) -> None:
    plan = planned(tmp_path, head)
    users = [run.experiment.actors.users for run in plan.runs if run.experiment is not None]
    assert [each.name for each in users if each is not None] == ["resample(think-time)"] * 2
    assert [each.options.get("load") for each in users if each is not None] == [None, "1.5"]
    assert plan.remarks[0] == "a60: because of the loads, a population: resample(think-time)."


def test_users_who_have_the_recorded_load_only_stay_as_they_are(tmp_path: Path) -> None:
    rest = '[[exclude]]\nusers = "a60"\nload = 1.5\n'
    plan = planned(tmp_path, "", f'a60 = {{name = "think-time"}}\nrigid = {{}}\n{rest}')
    names = {run.axes["users"]: run.experiment.actors.users for run in plan.runs if run.experiment}
    assert names["a60"] is not None
    assert names["a60"].name == "think-time"


@pytest.mark.parametrize("by", ["run-times", "sizes"])
def test_the_same_users_with_more_work_think_as_long_as_recorded(tmp_path: Path, by: str) -> None:
    """As by hand: sessions of the recorded log in a file, and a log with longer or larger jobs."""
    plan = planned(tmp_path, f'load_by = "{by}"')
    assert len(plan.unmade) == 2
    for each in plan.unmade:
        make(each.path, each.recipe)
    _, more = (run.experiment for run in planned(tmp_path, f'load_by = "{by}"').runs)
    assert more is not None
    assert more.actors.users is not None
    (log,), sessions = more.scenario.workloads.files, more.actors.users.options["sessions"]
    by_hand = tmp_path / "sessions.json"
    call_here(["sessions", SAMPLE, "--output", by_hand])
    assert Path(sessions).read_bytes() == by_hand.read_bytes()
    longer = bp.read_log(SAMPLE).load(1.5, by=by)
    one, other = (
        bp.simulate(each, "easy", hosts=96, users="think-time", sessions=sessions, progress=False).jobs
        for each in (log, longer)
    )
    assert one.equals(other)


@pytest.mark.parametrize(
    ("head", "users", "fault"),
    [
        ('load_by = "arrivals"', 'a = {name = "think-time"}', "think-time users have .* recorded arrivals"),
        ('load_by = "users"', "rigid = {}", "rigid users come as recorded"),
        ('load_by = "sizes"', 'a = {name = "resample"}', "resample is a population"),
        ('load_by = "sizes"', 'a = {name = "fluid"}', "fluid users have no sessions in a file"),
        ("", 'a = {name = "site-level"}', "site-level users are not made of a log's"),
        ('load_by = "work"', "rigid = {}", "Invalid enum value 'work'"),
    ],
)
def test_what_means_nothing_is_refused_by_name(tmp_path: Path, head: str, users: str, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        planned(tmp_path, head, users)


def test_who_has_no_loads_does_not_say_how_they_are_made(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN.replace("loads = [1.0, 1.5]", 'load_by = "sizes"'))
    with pytest.raises(InputError, match="load_by: says how loads are made, but the plan has no loads"):
        read_plan(tmp_path / "plan.toml")


def test_with_users_the_makespan_is_no_usual_column(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    assert "makespan" not in read_plan(tmp_path / "plan.toml").metrics
    (tmp_path / "plan.toml").write_text(PLAN.split("[users]")[0])
    assert "makespan" in read_plan(tmp_path / "plan.toml").metrics
