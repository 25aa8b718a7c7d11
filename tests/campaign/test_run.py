from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import structs

from batsched_py import native
from batsched_py.campaign import results
from batsched_py.campaign.executors import execute
from batsched_py.campaign.run import Run
from tests.processes import COMMAND, PATIENCE, environment

FirstRun = Callable[[], Run]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


MANIFEST = ("manifest.json", "manifest.sha256")


def test_a_run_leaves_its_results_and_a_manifest(folder: Path, first_run: FirstRun) -> None:
    run = first_run()
    assert execute(run).error is None
    place = folder / "results" / "runs" / run.name
    assert files(place) == [*MANIFEST, "metrics.json", "out_jobs.csv", "out_schedule.csv", "windows.json"]
    assert files(folder / "results" / "work") == []
    metrics = json.loads((place / "metrics.json").read_text())
    assert (metrics["nb_jobs"], metrics["nb_jobs_finished"]) == (60, 60)


def test_the_manifest_says_what_the_run_was_made_of(folder: Path, first_run: FirstRun) -> None:
    run = first_run()
    execute(run)
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest["identity"] == run.identity
    assert manifest["engine"] == ("python" if native.library is None else "native")
    assert manifest["axes"] == {"log": "small", "platform": "full", "scheduler": "fcfs"}
    assert [Path(file["path"]).name for file in manifest["inputs"]] == ["small.swf"]
    assert {"batsched-py", "python", "numpy"} <= set(manifest["versions"])
    assert {"name", "system", "processor", "cores"} <= set(manifest["host"])
    assert set(manifest["seconds"]) == {"read", "simulate", "measure"}


def test_the_command_in_the_manifest_makes_the_same_results(
    folder: Path, first_run: FirstRun, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = first_run()
    execute(run)
    place = folder / "results" / "runs" / run.name
    program, *arguments = shlex.split(json.loads((place / "manifest.json").read_text())["command"])
    assert program == "batsched-py"
    elsewhere = tmp_path_factory.mktemp("again")
    subprocess.run([*COMMAND, *arguments], cwd=elsewhere, env=environment(), check=True, capture_output=True)
    for name in ("jobs.csv", "schedule.csv"):
        assert (elsewhere / f"{run.name}_{name}").read_bytes() == (place / f"out_{name}").read_bytes()


OUTAGE = """{"timestamp": 1000, "type": "machine_unavailable", "resources": "0-3"}
{"timestamp": 90000, "type": "machine_available", "resources": "0-3"}
"""

#: What a plan says in place of its first platform and its first scheduler, and the files that a run has then.
RUNS = {
    "energy": (
        '{ file = "power.xml", energy = true }',
        "{ name = 'sleeper', options = { idle_time = 600 } }",
        ["consumed_energy", "jobs", "machine_states", "pstate_changes", "schedule"],
    ),
    "events, shared hosts and traced states": (
        '{ hosts = 64, events = "outage.txt", compute_sharing = true, machine_states = true }',
        "{ name = 'filler' }",
        ["jobs", "machine_states", "schedule"],
    ),
    "a slow scheduler on the first hosts": (
        '{ file = "power.xml", mmax = 8, reject_larger = true }',
        "{ name = 'fcfs', delay = 12.5 }",
        ["jobs", "schedule"],
    ),
    "PyBatsim": ("{ hosts = 64 }", "{ name = 'pybatsim:easyBackfill' }", ["jobs", "schedule"]),
    "PyBatsim, with a text and profiles for it": (
        "{ hosts = 64 }",
        "{ name = 'pybatsim:easyBackfill', config = 'a \"text\"', forward_profiles = true }",
        ["jobs", "schedule"],
    ),
}


@pytest.fixture(params=RUNS)
def special(request: pytest.FixtureRequest, root: Path, folder: Path) -> list[str]:
    """A plan whose first run is special, with two logs; the tables that it leaves."""
    platform, scheduler, tables = RUNS[request.param]
    if "pybatsim" in scheduler:
        pytest.importorskip("batsim")
    (folder / "power.xml").write_bytes((root / "platforms" / "power16.xml").read_bytes())
    (folder / "outage.txt").write_text(OUTAGE)
    plan = folder / "plan.toml"
    text = plan.read_text().replace("{ hosts = 64 }", platform).replace("fcfs = {}", f"fcfs = {scheduler}")
    plan.write_text(text.replace('"small.swf"', '["small.swf", "small.swf"]'))
    return tables


def test_a_run_of_a_plan_can_be_whatever_run_can(
    folder: Path, special: list[str], first_run: FirstRun, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = first_run()
    assert execute(run).error is None
    place = folder / "results" / "runs" / run.name
    tables = [f"out_{name}.csv" for name in special]
    assert files(place) == [*MANIFEST, "metrics.json", *tables, "windows.json"]
    metrics = json.loads((place / "metrics.json").read_text())
    assert metrics["nb_jobs"] == 120
    assert ("consumed_joules" in metrics) == run.experiment.scenario.energy
    manifest = json.loads((place / "manifest.json").read_text())
    assert manifest["engine"] == "python"
    _, *arguments = shlex.split(manifest["command"])
    elsewhere = tmp_path_factory.mktemp("again")
    subprocess.run([*COMMAND, *arguments], cwd=elsewhere, env=environment(), check=True, capture_output=True)
    for name in special:
        assert (elsewhere / f"{run.name}_{name}.csv").read_bytes() == (place / f"out_{name}.csv").read_bytes()


def test_a_finished_run_is_not_repeated(folder: Path, first_run: FirstRun) -> None:
    run = first_run()
    execute(run)
    before = (run.folder / "manifest.json").read_bytes()
    assert execute(run).error is None
    assert (run.folder / "manifest.json").read_bytes() == before


def test_a_run_that_lost_a_file_is_repeated(folder: Path, first_run: FirstRun) -> None:
    run = first_run()
    execute(run)
    jobs = run.folder / "out_jobs.csv"
    whole = jobs.read_bytes()
    jobs.write_bytes(whole[:100])
    assert execute(first_run()).error is None
    assert jobs.read_bytes() == whole


def test_an_input_that_changes_under_way_is_noticed(folder: Path, first_run: FirstRun) -> None:
    run = first_run()
    with (folder / "small.swf").open("a") as log:
        log.write("; changed\n")
    assert "is not what it was when the campaign began" in str(execute(run).error)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("Broken", "scheduler 'broken' failed at time 0: RuntimeError: I am broken"),
        ("Idle", "deadlock at "),
    ],
)
def test_a_failure_is_told_and_leaves_nothing(
    folder: Path, first_run: FirstRun, policy: str, message: str
) -> None:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("fcfs = {}", f'fcfs = {{ name = "policies.py:{policy}" }}'))
    assert str(execute(first_run()).error).startswith(message)
    assert not (folder / "results" / "runs").exists()
    assert files(folder / "results" / "work") == []


def test_a_run_that_takes_too_long_is_given_up(folder: Path, first_run: FirstRun) -> None:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("fcfs = {}", 'fcfs = { name = "policies.py:Slow" }'))
    result = execute(structs.replace(first_run(), time_limit=0.1))
    assert result.error is not None
    assert result.error.startswith("not finished after 0.1 s, the time limit; scheduler ")


def test_a_policy_that_never_comes_back_is_given_up_in_any_thread(folder: Path, first_run: FirstRun) -> None:
    """Dask's workers do their tasks in threads."""
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("fcfs = {}", 'fcfs = { name = "policies.py:Looping" }'))
    run = structs.replace(first_run(), time_limit=0.3)
    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(execute, run).result(PATIENCE)
    assert result.error is not None
    assert result.error.startswith("not finished after 0.3 s, the time limit; scheduler ")
    assert "policies.py:Looping" in result.error


def test_a_full_disk_leaves_no_half_run(
    folder: Path, first_run: FirstRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files larger than 4 kB cannot be written for a while, which fails in the same place."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would keep a part of a module
    run = first_run()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        result = execute(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "File too large" in str(result.error)
    assert not (folder / "results" / "runs").exists()
    assert execute(run).error is None


def test_a_log_is_read_once_for_many_runs(folder: Path, first_run: FirstRun) -> None:
    results._read.cache_clear()
    while True:
        try:
            run = first_run()
        except IndexError:
            break
        assert execute(run).error is None
    assert len(files(folder / "results" / "runs")) == 4
    assert results._read.cache_info().misses == 1


def test_runs_that_share_a_log_do_not_disturb_each_other(folder: Path, first_run: FirstRun) -> None:
    users = '[users]\nrigid = {}\na60 = { name = "think-time" }\n'
    (folder / "plan.toml").write_text((folder / "plan.toml").read_text() + users)
    run = first_run()
    other = structs.replace(run, campaign=str(folder / "other"))
    execute(run)
    execute(other)
    for name in ("out_jobs.csv", "metrics.json"):
        first, second = ((each.folder / name).read_bytes() for each in (run, other))
        assert first == second
