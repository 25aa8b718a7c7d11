"""Logs of a plan that are changed or generated."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from batsched_py.campaign.plan_file import read_plan
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from batsched_py.workload.swf.reader import read_swf

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


AXES = f"""\
parts = "28d"
loads = [0.8, 1.0, 1.25]

[logs]
sample = {{file = "{SAMPLE}", walltime = "requested"}}

[schedulers]
fcfs = {{}}
easy = {{}}
"""


def test_parts_and_loads_are_axes(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(AXES)
    plan = read_plan(tmp_path / "plan.toml")
    assert len(plan.runs) == 2 * 3 * 2
    assert [run.name for run in plan.runs[:3]] == [
        "sample_part1_load0.8_recorded_fcfs",
        "sample_part1_load0.8_recorded_easy",
        "sample_part1_load1_recorded_fcfs",
    ]
    assert plan.runs[0].axes == {
        "log": "sample",
        "part": "1",
        "load": "0.8",
        "platform": "recorded",
        "scheduler": "fcfs",
    }
    assert {run.experiment.scenario.workloads.walltime for run in plan.runs} == {"requested"}


def test_a_part_is_cut_before_its_load_is_changed(tmp_path: Path) -> None:
    """So the jobs of a part are the same with every load, and can be compared one by one."""
    (tmp_path / "plan.toml").write_text(AXES)
    arguments = ["campaign", "run", str(tmp_path / "plan.toml"), "-d", str(tmp_path / "out"), "-j", "1"]
    arguments += [
        "--only",
        "sample_part2_load0.8_recorded_easy",
        "--only",
        "sample_part2_load1.25_recorded_easy",
    ]
    result = CliRunner().invoke(batsched_py, arguments)
    assert result.exit_code == 0, result.output
    wanted = read_swf(SAMPLE)
    files = {
        run.axes["load"]: run.experiment.scenario.workloads.files[0]
        for run in read_plan(tmp_path / "plan.toml").runs
        if run.axes["part"] == "2"
    }
    slow, fast = read_swf(files["0.8"]), read_swf(files["1.25"])
    inside = (wanted.submit - wanted.submit[0]) // (28 * 86400) == 1
    assert (slow.job_number == wanted.job_number[inside]).all()
    assert (slow.job_number == fast.job_number).all()
    assert (slow.submit[-1] - slow.submit[0]) / (fast.submit[-1] - fast.submit[0]) == pytest.approx(
        1.25 / 0.8
    )


def test_parts_of_a_log_that_is_yet_to_be_made_come_later(tmp_path: Path) -> None:
    text = 'parts = "2d"\n[logs]\nmade = {model = "lublin", jobs = 2000, processors = 64}\n'
    text += "[schedulers]\nfcfs = {}\n[[exclude]]\npart = 2\n"
    (tmp_path / "plan.toml").write_text(text)
    assert read_plan(tmp_path / "plan.toml").runs == []
    arguments = ["campaign", "run", str(tmp_path / "plan.toml"), "-d", str(tmp_path / "out"), "-j", "1"]
    result = CliRunner().invoke(batsched_py, arguments)
    assert result.exit_code == 0, result.output
    parts = [run.axes["part"] for run in read_plan(tmp_path / "plan.toml").runs]
    assert len(parts) >= 2
    assert "2" not in parts


def test_files_that_are_played_together_have_no_parts(tmp_path: Path) -> None:
    text = f'parts = "week"\n[logs]\nboth = {{file = ["{SAMPLE}", "{SAMPLE}"]}}\n[schedulers]\nfcfs = {{}}\n'
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=r"plan.toml:3: logs.both.file: .* have no parts and loads"):
        read_plan(tmp_path / "plan.toml")


def test_a_part_may_be_excluded_by_its_number_and_a_load_by_its_factor(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(AXES + "[[exclude]]\npart = 1\nload = [0.8, 1.0]\n")
    assert len(read_plan(tmp_path / "plan.toml").runs) == 12 - 4
    (tmp_path / "plan.toml").write_text(AXES + "[[exclude]]\nload = 3.0\n")
    with pytest.raises(InputError, match="no run has the load '3'"):
        read_plan(tmp_path / "plan.toml")


def test_a_table_with_names_of_its_own_is_read_as_it_is_and_changed(tmp_path: Path) -> None:
    rows = "".join(f"{60 * number},30,1\n" for number in range(50))
    (tmp_path / "jobs.csv").write_text(f"Queued,run_time,requested_processors\n{rows}")
    log = 'file = "jobs.csv", input_options = ["columns=submit:Queued"]'
    (tmp_path / "plan.toml").write_text(
        f'[logs]\nall = {{{log}}}\nfew = {{{log}, changes = ["first jobs=20"]}}\n'
        "[platforms]\nm4 = {hosts = 4}\n[schedulers]\nfcfs = {}\n"
    )
    arguments = ["campaign", "run", str(tmp_path / "plan.toml"), "-d", str(tmp_path / "out"), "-j", "1"]
    result = CliRunner().invoke(batsched_py, arguments)
    assert result.exit_code == 0, result.output
    jobs = {path.parent.name: path for path in (tmp_path / "out").glob("**/*jobs.csv")}
    assert sorted(len(path.read_text().splitlines()) - 1 for path in jobs.values()) == [20, 50]
