"""Logs of a plan that are changed or generated."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

from batsched_py.analysis.windows import Window
from batsched_py.campaign.plan_entries import _windows_in_words
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.prepare import make
from batsched_py.campaign.store import Campaign, conduct, planned_campaign, runs_to_do
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from batsched_py.workload.swf.reader import read_swf
from tests.campaigns import Here, conducted
from tests.runs import write_log

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
    plan = read_plan(plan_file, folder=tmp_path / "out")
    assert not plan.unmade
    made = {path.name.split("-")[0]: path for path in (tmp_path / "out" / "made").iterdir()}
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
    assert len(plan.runs) == 3 * 2
    assert [run.name for run in plan.runs[:3]] == [
        "sample_load0.8_recorded_fcfs",
        "sample_load0.8_recorded_easy",
        "sample_load1_recorded_fcfs",
    ]
    day = 86400.0
    assert plan.runs[0].windows == {
        "1": Window(0, 28 * day / 0.8),
        "2": Window(28 * day / 0.8, 56 * day / 0.8),
    }
    assert plan.runs[0].axes == {
        "log": "sample",
        "load": "0.8",
        "platform": "recorded",
        "scheduler": "fcfs",
    }
    assert {run.experiment.scenario.workloads.walltime for run in plan.runs} == {"requested"}


def test_jobs_that_are_in_no_whole_part_are_counted(tmp_path: Path) -> None:
    """They are told of by `plan`, by `run`, with the tables and on the page."""
    jobs = read_swf(SAMPLE).submit
    left = jobs[jobs - jobs[0] >= 3 * 16 * 86400]
    said = (
        "sample is simulated as a whole and measured in 3 windows of 16d; the first of them begins on an "
        f"empty machine; the last {len(left)} jobs, of {(left[-1] - left[0]) / 86400:.1f} days, are in none."
    )
    (tmp_path / "plan.toml").write_text(
        AXES.replace("28d", "16d").replace("loads =", "#").replace("fcfs", "#")
    )
    assert read_plan(tmp_path / "plan.toml").remarks == [said]
    assert read_plan(tmp_path / "plan.toml").window == (
        "windows of 16d of whole runs, of which the first begins on an empty machine"
    )
    plan, out = str(tmp_path / "plan.toml"), str(tmp_path / "out")
    page = tmp_path / "report.html"
    for command in (
        ["plan", plan],
        ["run", plan, "-d", out, "-j", "1"],
        ["table", out],
        ["report", out, "--output", str(page)],
    ):
        result = CliRunner().invoke(batsched_py, ["campaign", *command])
        assert result.exit_code == 0, result.output
        assert f"batsched-py: {said}\n" in result.stderr, command
    assert said in page.read_text()


def test_of_many_parts_the_first_leads_in_and_the_last_leads_out(tmp_path: Path) -> None:
    """Unless the plan says what to measure."""
    log = write_log(tmp_path / "log.swf", [(n + 1, 0.9 * 86400 * n, 0, 60, 1, 1) for n in range(32)])
    text = AXES.replace("28d", "4d").replace(str(SAMPLE), str(log))
    (tmp_path / "plan.toml").write_text(text)
    plan = read_plan(tmp_path / "plan.toml")
    assert plan.remarks == [
        "sample is simulated as a whole and measured in 5 windows of 4d: parts 2 to 6 of 7, the first leads "
        "in and the last leads out.",
        "sample: other loads are other times between arrivals, not other run times or sizes.",
    ]
    assert [*plan.runs[0].windows] == ["2", "3", "4", "5", "6"]
    (tmp_path / "plan.toml").write_text('measure = "4d:13d"\n' + text)
    assert [*read_plan(tmp_path / "plan.toml").runs[0].windows] == ["2", "3"]
    (tmp_path / "plan.toml").write_text('measure = "25d:26d"\n' + text)
    with pytest.raises(InputError, match=r"plan.toml:1: measure: '25d:26d' contains no whole part of 4d"):
        read_plan(tmp_path / "plan.toml")


def test_windows_of_a_run_are_measured_with_the_queue_that_the_one_before_has_left(tmp_path: Path) -> None:
    """The jobs of a window are those of the run that are submitted then, with the waits they had there."""
    (tmp_path / "plan.toml").write_text(AXES.replace("loads =", "#").replace("fcfs", "#"))
    campaign = conducted(tmp_path)
    (run,) = campaign.finished()
    jobs = pd.read_csv(run.jobs_file)
    table = campaign.table().set_index("part")
    for part, window in run.measurement.windows.items():
        inside = jobs[jobs.submission_time.between(window.begin, window.end, inclusive="left")]
        assert table.loc[part, "nb_jobs"] == len(inside)
        assert table.loc[part, "mean_waiting_time"] == pytest.approx(inside.waiting_time.mean())
        begin, end = (
            jobs.starting_time.clip(window.begin, window.end),
            jobs.finish_time.clip(window.begin, window.end),
        )
        used = ((end - begin) * jobs.requested_number_of_resources).sum() / (64 * 28 * 86400)
        assert table.loc[part, "utilization"] == pytest.approx(used)
    assert "makespan" not in table.columns


def test_a_part_has_the_same_jobs_with_every_load(tmp_path: Path) -> None:
    """So parts can be compared one by one."""
    (tmp_path / "plan.toml").write_text(AXES.replace("fcfs", "#"))
    for log in read_plan(tmp_path / "plan.toml", folder=tmp_path).unmade:
        make(log.path, log.recipe)
    plan = read_plan(tmp_path / "plan.toml", folder=tmp_path)
    campaign = planned_campaign(plan, tmp_path / "out")
    list(conduct(campaign, runs_to_do(plan, campaign), Here()))
    table = Campaign.open(campaign.folder).table()
    assert table.groupby("part").nb_jobs.nunique().to_dict() == {"1": 1, "2": 1}
    wanted = read_swf(SAMPLE)
    inside = (wanted.submit - wanted.submit[0]) // (28 * 86400) == 1
    assert (table[table.part == "2"].nb_jobs == inside.sum()).all()


def test_parts_of_a_log_that_is_yet_to_be_made_come_later(tmp_path: Path) -> None:
    text = 'parts = "2d"\n[logs]\nmade = {model = "lublin", jobs = 2000, processors = 64}\n'
    text += "[schedulers]\nfcfs = {}\n[[exclude]]\npart = 2\n"
    (tmp_path / "plan.toml").write_text(text)
    assert [(run.name, run.windows) for run in read_plan(tmp_path / "plan.toml").runs] == [
        ("made_recorded_fcfs", {})
    ]
    arguments = ["campaign", "run", str(tmp_path / "plan.toml"), "-d", str(tmp_path / "out"), "-j", "1"]
    result = CliRunner().invoke(batsched_py, arguments)
    assert result.exit_code == 0, result.output
    plan = read_plan(tmp_path / "plan.toml", folder=tmp_path / "out")
    (run,) = plan.runs
    assert len(run.windows) >= 2
    assert "2" not in run.windows


def test_runs_of_logs_that_are_yet_to_be_made_are_counted(tmp_path: Path) -> None:
    text = 'loads = [0.8, 1.0]\n[logs]\nmade = {model = "lublin", jobs = 200, processors = 64}\n'
    (tmp_path / "plan.toml").write_text(text + "[schedulers]\nfcfs = {}\neasy = {}\n")
    before = [run.name for run in read_plan(tmp_path / "plan.toml").runs]
    arguments = ["campaign", "run", str(tmp_path / "plan.toml"), "-d", str(tmp_path / "out"), "-j", "1"]
    assert CliRunner().invoke(batsched_py, arguments).exit_code == 0
    plan = read_plan(tmp_path / "plan.toml", folder=tmp_path / "out")
    assert [run.name for run in plan.runs] == before
    assert len(before) == 4


def test_files_that_are_played_together_have_no_parts(tmp_path: Path) -> None:
    text = f'parts = "week"\n[logs]\nboth = {{file = ["{SAMPLE}", "{SAMPLE}"]}}\n[schedulers]\nfcfs = {{}}\n'
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(InputError, match=r"plan.toml:3: logs.both.file: .* have no parts and loads"):
        read_plan(tmp_path / "plan.toml")


def test_a_part_may_be_excluded_by_its_number_and_a_load_by_its_factor(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(AXES + "[[exclude]]\npart = 1\nload = [0.8, 1.0]\n")
    windows = {run.name: [*run.windows] for run in read_plan(tmp_path / "plan.toml").runs}
    assert windows["sample_load0.8_recorded_easy"] == ["2"]
    assert windows["sample_load1.25_recorded_easy"] == ["1", "2"]
    (tmp_path / "plan.toml").write_text(AXES + "[[exclude]]\nload = 3.0\n")
    with pytest.raises(InputError, match="no run has the load '3'"):
        read_plan(tmp_path / "plan.toml")


def test_after_a_run_with_logs_from_elsewhere_the_plan_is_all_that_other_commands_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing is written to the folder with the logs, which may be everybody's."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "sample.swf").write_bytes(SAMPLE.read_bytes())
    (tmp_path / "study.toml").write_text(AXES.replace(str(SAMPLE), "sample.swf"))
    monkeypatch.chdir(tmp_path)
    name = "sample_load0.8_recorded_easy"

    def campaign(command: str, *more: str) -> str:
        result = CliRunner().invoke(batsched_py, ["campaign", command, "study.toml", *more])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    campaign("run", "--logs", "logs", "-j", "1", "--only", name)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["sample.swf"]
    assert len(list((tmp_path / "out" / "study" / "made").iterdir())) == 2
    assert "easy" in campaign("table")
    assert "easy" in campaign("report")
    assert name in campaign("show", name)
    assert "1 runs" in campaign("export", "x.zip")


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


@pytest.mark.parametrize(
    ("parts", "leads", "text"),
    [
        (["1", "2"], False, "2 windows of 4d; the first of them begins on an empty machine"),
        (["2", "3"], False, "2 windows of 4d"),
        (["2", "3"], True, "2 windows of 4d: parts 2 to 3 of 4, the first leads in and the last leads out"),
    ],
)
def test_a_reader_is_told_of_windows_on_an_empty_machine(parts: list[str], leads: bool, text: str) -> None:
    told = _windows_in_words("log", "4d", parts, 4, leads, "")
    assert told == f"log is simulated as a whole and measured in {text}."
