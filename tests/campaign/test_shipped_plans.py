from __future__ import annotations

import tomllib
from pathlib import Path

from batsched_py.campaign.plan_file import read_plan
from batsched_py.experiment.build import read_machine, read_workloads


def test_the_sample_plan_repeats_only_what_is_random(root: Path) -> None:
    plan = read_plan(root / "examples" / "plans" / "sample.toml")
    assert len(plan.runs) == 20
    assert {run.axes["scheduler"] for run in plan.runs if "seed" in run.axes} == {"random"}


def test_replay_with_feedback_has_the_18_experiments(root: Path, shared: Path) -> None:
    plan = read_plan(root / "examples" / "plans" / "replay-with-feedback.toml", [shared / "logs"])
    assert plan.missing == []
    assert len(plan.runs) == 18
    assert {run.axes["platform"] for run in plan.runs if run.axes["scheduler"] == "fcfs"} == {"base"}
    users = [run.experiment.actors.users for run in plan.runs]
    sessions = {each.options.get("sessions") for each in users if each is not None}
    assert sessions == {None, "arrival:0", "arrival:60"}


def test_the_plan_about_energy_has_a_machine_for_every_job_of_its_log(root: Path) -> None:
    plan = read_plan(root / "examples" / "plans" / "energy.toml")
    assert "consumed_joules" in plan.metrics
    scenario = plan.runs[0].experiment.scenario
    workloads = read_workloads(scenario.workloads)
    assert scenario.energy
    hosts = len(read_machine(scenario.machine, workloads).hosts)
    assert hosts == max(job.size for job in workloads[0].jobs)


def test_allocators_are_crossed_with_schedulers(root: Path) -> None:
    plan = read_plan(root / "examples" / "plans" / "allocators.toml")
    chosen = {(run.axes["scheduler"], run.experiment.actors.scheduler.options["nodes"]) for run in plan.runs}
    assert len(plan.runs) == len(chosen) == 8
    assert all(run.axes["allocator"] in run.name and run.experiment.decisions for run in plan.runs)


def test_the_log_of_replay_with_feedback_can_be_had(root: Path) -> None:
    log = tomllib.loads((root / "examples" / "plans" / "replay-with-feedback.toml").read_text())["logs"][
        "kth"
    ]
    assert log["url"].startswith("https://www.cs.huji.ac.il/labs/parallel/workload/")
    assert log["url"].endswith(log["file"])
    assert len(log["sha256"]) == 64


def test_resampling_with_feedback_has_thirty_populations_for_each_comparison(
    root: Path, shared: Path
) -> None:
    plan = read_plan(root / "examples" / "plans" / "resampling-with-feedback.toml", [shared / "logs"])
    assert plan.missing == []
    assert len(plan.runs) == 2 * 30 * (2 + 2 + 2 + 2)
    seeds: dict[tuple[str, str], set[str]] = {}
    for run in plan.runs:
        assert run.experiment.actors.users is not None
        assert run.experiment.actors.users.options["seed"] == run.axes["seed"]
        seeds.setdefault((run.axes["users"], run.axes["scheduler"]), set()).add(run.axes["seed"])
    assert {len(each) for each in seeds.values()} == {30}
