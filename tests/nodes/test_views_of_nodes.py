"""How machines of nodes look: live, step by step, as a Gantt chart, in a report."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.report.figures import gantt
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.machine_files import read_toml_machine
from batsched_py.simulator.setup import Setup
from batsched_py.watch.live import Dashboard
from batsched_py.watch.scenes import Scene, scenes
from batsched_py.watch.telling import host_lines, waits
from batsched_py.workload.model import Workload
from tests.nodes.test_explain_on_nodes import MACHINE
from tests.processes import call_here

LARGE = {"per_node": {"memory": "7 GB"}, "features": "a100"}
JOBS = [
    Job("w0!1", 0.0, 2, 900.0, "p", {"request": LARGE}),
    Job("w0!2", 60.0, 1, 900.0, "p", {"request": LARGE | {"licences": {"matlab": 1}}}),
]
WORKLOAD = Workload("w0", JOBS, {"p": Delay(600.0)}, 8)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    file = tmp_path / "machine.toml"
    file.write_text(MACHINE)
    return file


def while_waiting(machine: Path, dashboard: Dashboard | None = None) -> Scene:
    """How things stand when the second job has come."""
    batsim = Batsim(Setup(read_toml_machine(str(machine)), [WORKLOAD]))
    for scene in scenes(batsim, DecisionProcess(SCHEDULERS.create("easy", {}))):
        if dashboard is not None:
            dashboard.note(scene)
        if scene.now >= 60:
            return scene
    raise AssertionError("nobody waited")


def test_that_the_live_view_shows_nodes_and_what_is_free_on_them(machine: Path) -> None:
    dashboard = Dashboard("easy", 2)
    while_waiting(machine, dashboard)
    console = Console(file=io.StringIO(), width=240, height=30, color_system=None)
    console.print(dashboard.picture("running", 2.0, 61.0, 240, 30))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "cores of 2 nodes" in text
    assert "1 of 2 nodes empty   56% of memory free   1 of 1 matlab free" in text
    assert "7G/node 1 matlab a100" in text


def test_that_going_step_by_step_tells_what_a_job_waits_for(machine: Path) -> None:
    scene = while_waiting(machine)
    assert waits(JOBS[1], scene.ledger, 60.0) == (
        "w0!2 needs 1 host, and waits for memory on nodes with a100; expected by 900"
    )
    assert [line.strip() for line in host_lines(scene.ledger, 60.0)][-2:] == [
        "node fast0: 2 of 4 cores, 1 of 8 GB free",
        "node slow0: 4 of 4 cores, 8 of 8 GB free",
    ]


@pytest.fixture
def schedule(machine: Path, tmp_path: Path) -> Path:
    jobs = [
        {"id": job.name, "subtime": job.submission_time, "res": job.size, "walltime": 900, "profile": "p"}
        | {"request": dict(job.extra["request"])}
        for job in JOBS
    ]
    profiles = {"p": {"type": "delay", "delay": 600}}
    workload = tmp_path / "jobs.json"
    workload.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    code, _, err = call_here(["run", "-s", "easy", "-w", workload, "-p", machine, "-e", tmp_path / "out"])
    assert code == 0, err
    return tmp_path / "out_jobs.csv"


def test_that_a_gantt_chart_has_the_names_of_nodes(machine: Path, schedule: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    figure = schedule.with_name("gantt.svg")
    code, _, err = call_here(["plot", "gantt", schedule, "--platform", machine, "--output", figure])
    assert (code, err) == (0, "")
    text = figure.read_text()
    assert "fast0" in text and "slow0" in text and "node, core by core" in text


def test_that_a_report_knows_the_nodes_of_a_gantt_chart(schedule: Path) -> None:
    run = read_run(schedule, "easy")
    assert "nodes" not in gantt(run, most=100)
    chart = gantt(replace(run, nodes={"fast0": 0, "slow0": 4}), most=100)
    assert chart["nodes"] == {"names": ["fast0", "slow0"], "firsts": [0, 4]}
