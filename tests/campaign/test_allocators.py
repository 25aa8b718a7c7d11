"""Schedulers and allocators as two axes of a plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.campaign.plan import PlanText
from batsched_py.campaign.plan_entries import PlannedPlugin
from batsched_py.campaign.plan_file import allocating, read_plan
from batsched_py.errors import InputError
from batsched_py.experiment import Choice
from tests.campaigns import conducted

WritePlan = Callable[[str], Path]

PLAN = """
[logs]
small = { file = "small.json" }
[platforms]
nodes = { file = "machine.toml" }
[schedulers]
fcfs = {}
easy = { options = { backfill = "shortest" } }
[allocators]
first-fit = {}
emptiest = { nodes = "worst-fit", selection = "lowest" }
"""

MACHINE = '[[nodes]]\nname = "n"\ncount = 3\ncores = 2\n'


def test_each_scheduler_has_each_allocator_and_jobs_go_elsewhere(folder: Path, write_plan: WritePlan) -> None:
    (folder / "machine.toml").write_text(MACHINE)
    jobs = [{"id": str(each), "subtime": each, "res": 1, "profile": "p"} for each in range(3)]
    profile = {"type": "delay", "delay": 100}
    (folder / "small.json").write_text(json.dumps({"nb_res": 6, "jobs": jobs, "profiles": {"p": profile}}))
    write_plan(PLAN)
    table = conducted(folder).table()
    assert sorted(zip(table["scheduler"], table["allocator"], strict=True)) == [
        ("easy", "emptiest"), ("easy", "first-fit"), ("fcfs", "emptiest"), ("fcfs", "first-fit"),
    ]  # fmt: skip
    places = {}
    for run, allocator in zip(table["run"], table["allocator"], strict=True):
        lines = (folder / "results" / "runs" / run / "out_jobs.csv").read_text().splitlines()[1:]
        places[allocator] = [line.split(",")[14] for line in sorted(lines)]
    assert places == {"first-fit": ["0", "1", "2"], "emptiest": ["0", "2", "4"]}


def test_an_allocator_is_an_axis_of_exclusions_and_baselines(folder: Path, write_plan: WritePlan) -> None:
    (folder / "machine.toml").write_text(MACHINE)
    (folder / "small.json").write_text('{"nb_res": 6, "jobs": [], "profiles": {}}')
    text = (
        'baseline = "allocator=first-fit"\n'
        + PLAN
        + '[[exclude]]\nscheduler = "fcfs"\nallocator = "emptiest"\n'
    )
    runs = read_plan(write_plan(text)).runs
    assert [run.name for run in runs] == [
        "small_nodes_fcfs_first-fit", "small_nodes_easy_first-fit", "small_nodes_easy_emptiest",
    ]  # fmt: skip
    assert runs[-1].experiment.actors.scheduler.options == {
        "backfill": "shortest", "nodes": "worst-fit", "selection": "lowest",
    }  # fmt: skip


@pytest.mark.parametrize(
    "line, by, message",
    [
        ("first-fit = {}", "quickest = {}", "no choice of nodes 'quickest'; known are first-fit"),
        ("first-fit = {}", 'x = { nodes = "quickest" }', "quickest"),
        ("first-fit = {}", "x = { speed = 1 }", "speed"),
        ("fcfs = {}", 'fcfs = { options = { nodes = "spread" } }', "the allocator 'first-fit' says it, too"),
    ],
)
def test_mistakes_are_named(folder: Path, write_plan: WritePlan, line: str, by: str, message: str) -> None:
    (folder / "machine.toml").write_text(MACHINE)
    (folder / "small.json").write_text('{"nb_res": 6, "jobs": [], "profiles": {}}')
    with pytest.raises(InputError, match=message):
        read_plan(write_plan(PLAN.replace(line, by)))


def test_schedulers_of_pybatsim_choose_hosts_themselves(write_plan: WritePlan) -> None:
    text = PlanText.read(write_plan(PLAN))
    theirs = PlannedPlugin(Choice("pybatsim:easyBackfill"), random=False)
    with pytest.raises(InputError, match=r"a scheduler of PyBatsim decides without \[allocators\]"):
        allocating(text, theirs, {"nodes": "spread"}, ("fcfs", "first-fit"))


def test_a_plan_in_python_has_them_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    plan = bp.Plan(
        logs={"sample": {"file": "workloads/sample.swf"}},
        schedulers=["fcfs", "easy"],
        allocators=["first-fit", "spread"],
    )
    assert plan.runs == [
        f"sample_recorded_{scheduler}_{allocator}"
        for scheduler in ("fcfs", "easy")
        for allocator in ("first-fit", "spread")
    ]
