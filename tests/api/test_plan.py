"""Plans built in Python."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.campaign.plan_file import _File, read_plan
from batsched_py.cli.campaign import run_command
from batsched_py.errors import InputError, RunsFailed

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"

BROKEN = """
from batsched_py.schedulers import Scheduler

class Broken(Scheduler):
    name = "broken"
    def schedule(self, cluster):
        raise RuntimeError("no idea")
"""


@pytest.fixture(scope="module")
def log() -> bp.Log:
    return bp.read_log(SAMPLE).first(150)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_words_are_those_of_a_plan_file() -> None:
    assert inspect.signature(bp.Plan).parameters.keys() == set(_File.__struct_fields__)


def test_the_words_of_run_are_those_of_the_command() -> None:
    """But for the folders of logs and the trust, which reading a plan takes, and the view of a terminal."""
    words = {str(max(each.opts, key=len)).lstrip("-").replace("-", "_") for each in run_command.params}
    ours = inspect.signature(bp.Plan.run).parameters.keys()
    assert ours - {"self", "progress"} == words - {"plan_file", "logs", "live", "trust"}


def test_a_plan_in_python_is_the_plan_in_its_file(here: Path, log: bp.Log) -> None:
    log.save("log.swf")
    plan = bp.Plan(
        logs={
            "log": "log.swf",
            "busy": bp.read_log("log.swf").load(1.5),
            "made": {"model": "lublin", "jobs": 9},
        },
        platforms={"m64": {"hosts": 64}, "m300": {"hosts": 300, "speed": 1.5}},
        schedulers={"easy": {}, "slow": {"name": "fcfs", "delay": 2.5}, "random": {}},
        users=["rigid", "think-time"],
        seeds=[3, 5],
        exclude=[
            {"scheduler": "random", "users": "think-time"},
            {"log": ["busy", "made"], "platform": "m300"},
        ],
        metrics=["makespan"],
        name="both",
        title='EASY "against" FCFS',
    )
    plan.save("plan.toml")
    written = read_plan("plan.toml")
    assert plan.runs == [run.name for run in written.runs]
    assert (written.name, written.title, written.metrics) == ("both", 'EASY "against" FCFS', ["makespan"])
    assert bp.Plan.read("plan.toml").runs == plan.runs
    assert repr(plan) == f"<Plan both: {len(plan.runs)} runs>"


def test_its_table_is_what_single_simulations_give(here: Path, log: bp.Log) -> None:
    plan = bp.Plan(
        logs={"short": log, "busy": log.load(1.5)},
        platforms={"m64": {"hosts": 64}},
        schedulers=["fcfs", "easy"],
    )
    campaign = plan.run(workers=1)
    table = campaign.table().set_index(["log", "scheduler"])
    for name, simulated in (("short", log), ("busy", log.load(1.5))):
        for scheduler in ("fcfs", "easy"):
            metrics = bp.simulate(simulated, scheduler, hosts=64).metrics
            told = table.loc[(name, scheduler), list(metrics)].astype(float)
            assert told.to_dict() == pytest.approx(metrics, nan_ok=True)
    assert list(here.iterdir()) == [], "something was written that nobody asked for"
    folder = campaign.folder
    assert folder.is_dir()
    del campaign
    assert not folder.exists()


def test_what_is_done_in_a_directory_stays(here: Path, log: bp.Log) -> None:
    plan = bp.Plan(logs={"log": log}, schedulers=["easy"], name="one")
    done = plan.run("results", workers=1)
    again = plan.run("results", workers=1)
    opened = bp.Campaign.open(Path("results"))
    pd.testing.assert_frame_equal(done.table(), again.table())
    pd.testing.assert_frame_equal(done.table(), opened.table())
    assert repr(opened) == "<Campaign one: 1 of 1 runs done>"


def test_runs_that_fail_are_told_and_the_others_are_done(here: Path, log: bp.Log) -> None:
    Path("broken.py").write_text(BROKEN)
    plan = bp.Plan(logs={"log": log}, schedulers={"broken": {"name": "broken.py:Broken"}, "easy": {}})
    with pytest.raises(
        RunsFailed, match=r"1 of 2 runs failed, the first of them log_recorded_broken: .*no idea"
    ):
        plan.run("results", workers=1)
    assert list(bp.Campaign.open(Path("results")).table()["scheduler"]) == ["easy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"schedulers": ["best"]}, r"^plan: schedulers.best: there is no scheduler 'best'"),
        ({"platforms": {"m": {"host": 4}}}, r"^plan: platforms.m.host: there is no such key"),
        ({"logs": {"none": "none.swf"}}, r"^plan: logs.none.file: there is no file "),
        ({"loads": [1.0, 1.00000001]}, r"^plan: loads: a load is given twice"),
        ({"loads": [0.0]}, r"^plan: loads.*Expected `float` > 0.0"),
        ({"parts": "fortnight"}, r"^plan: parts: 'fortnight' is no span of time"),
        ({"parts": "90d"}, r"^plan: parts: .* covers no whole parts of 90d"),
    ],
)
def test_a_mistake_is_named_by_its_key(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bp.Plan(**{"logs": {"log": SAMPLE}, "schedulers": ["easy"], **words})


def test_a_log_of_unknown_origin_is_to_be_saved_first(log: bp.Log) -> None:
    with pytest.raises(
        InputError, match=r"^plan: logs.log: nobody knows how to make this log again; save it"
    ):
        bp.Plan(logs={"log": bp.Log(log.columns)}, schedulers=["easy"])


def test_what_is_written_is_read_again() -> None:
    from batsched_py.campaign.plan import to_toml

    content = {
        "title": 'a "quoted" \\ text\nof two lines \u00e9\U0001f600\x7f',
        "numbers": [1, -2.5, 1e30, True],
        "empty": [],
        "a table": {"strange key!": {"deep": {"er": ["x", {"y": 1}]}}, "plain": 1},
        "exclude": [{"log": ["a", "b"]}, {"seed": 3}],
    }
    assert tomllib.loads(to_toml(content)) == msgspec.to_builtins(content)
