"""A Batsim in a process of its own: the built-in one, installed under that name, and broken ones."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from batsched_py.campaign import batsim
from batsched_py.campaign.batsim import find_simulator
from batsched_py.campaign.executors import execute
from batsched_py.campaign.run import Manifest, Run
from batsched_py.errors import InputError
from tests.campaigns import RESULTS, to_do
from tests.processes import call

#: What simulates, in the shell; ``$@`` are Batsim's options.
GOOD = 'exec "{python}" -m batsched_py batsim "$@"'
#: With options of 5.0.0-rc2 only; each has the number of words that follow it.
BATSIM5 = """
exec "{python}" - "$@" <<'END'
import os, sys
words = {{
    "-p": 1, "-w": 1, "--external-events": 1, "-e": 1, "--trace-machine-state": 0,
    "--trace-pstate-changes": 0, "--edc-socket-str": 2, "-m": 1, "-r": 2, "--mmax": 1,
    "--mmax-workload": 0, "--energy-host": 0, "-q": 0,
}}
place = 1
while place < len(sys.argv):
    if sys.argv[place] not in words:
        sys.exit(f"The following argument was not expected: {{sys.argv[place]}}")
    place += 1 + words[sys.argv[place]]
python = "{python}"
os.execv(python, [python, "-m", "batsched_py", "batsim", "--protocol", "5", *sys.argv[1:]])
END
"""
#: Real Batsims end with 0 after some errors and after a deadlock.
SILENT = "exit 0"
LAZY = "sleep 60"
FORGETFUL = GOOD.removeprefix("exec ") + '; sed -i "\\$d" "$4_jobs.csv"'
TIDY = GOOD.removeprefix("exec ") + '; rm "$4_schedule.csv"'


@pytest.fixture
def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a program called ``batsim`` on the PATH."""

    def install(script: str) -> None:
        name, told = ("batsim5", "5.0.0") if script is BATSIM5 else ("batsim", "4.2.0")
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        version = f'if [ "$1" = --version ]; then echo {told}; exit; fi'
        program.write_text(f"#!/bin/sh\n{version}\n{script.format(python=sys.executable)}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        find_simulator.cache_clear()

    yield install
    find_simulator.cache_clear()


def runs(folder: Path) -> list[Run]:
    return to_do(folder, simulator="batsim")


def test_the_results_are_those_of_the_built_in_batsim(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text() + '[users]\na60 = { name = "think-time" }\n')
    for run in runs(folder)[1:3]:
        (same,) = to_do(folder, [run.name], "built-in")
        for each in (run, same):
            assert execute(each).error is None
        for name in RESULTS:
            assert (run.folder / name).read_bytes() == (same.folder / name).read_bytes()


@pytest.mark.parametrize(
    ("platform", "scheduler", "users"),
    [
        ("{ hosts = 64 }", '"easy"', 'a60 = { name = "think-time" }'),
        ("{ hosts = 64 }", '"easy"', 'a60 = { name = "patience", options = { tolerated = "nothing" } }'),
        (
            '{ file = "power.xml", mmax = 12, energy = true, events = "outage.txt", reject_larger = true }',
            '"sleeper"',
            "",
        ),
    ],
    ids=["users", "notes", "energy-and-events"],
)
def test_the_results_of_a_batsim_5_are_the_same(
    root: Path, folder: Path, install: Callable[[str], None], platform: str, scheduler: str, users: str
) -> None:
    install(BATSIM5)
    (folder / "power.xml").write_bytes((root / "platforms" / "power16.xml").read_bytes())
    (folder / "outage.txt").write_text(OUTAGE)
    plan = folder / "plan.toml"
    text = plan.read_text().replace("{ hosts = 64 }", platform)
    text = text.replace("fcfs = {}", f"fcfs = {{ name = {scheduler} }}")
    plan.write_text(text + (f"[users]\n{users}\n" if users else ""))
    run, same = to_do(folder, simulator="batsim5")[0], to_do(folder, results="built-in")[0]
    for each in (run, same):
        assert execute(each).error is None
    for name in ("metrics.json", "out_jobs.csv"):
        assert (run.folder / name).read_bytes() == (same.folder / name).read_bytes()
    assert (run.folder / "out_schedule.json").is_file()


def test_a_platform_file_is_handed_on(root: Path, folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    plan = folder / "plan.toml"
    (folder / "uneven8.xml").write_bytes((root / "platforms" / "uneven8.xml").read_bytes())
    plan.write_text(
        plan.read_text().replace("{ hosts = 64 }", '{ file = "uneven8.xml", reject_larger = true }')
    )
    run = runs(folder)[0]
    assert execute(run).error is None
    jobs = (run.folder / "out_jobs.csv").read_text()
    assert "COMPLETED_SUCCESSFULLY" in jobs and "REJECTED" in jobs


def test_nodes_are_handed_on_as_a_platform_of_simgrid(folder: Path, install: Callable[[str], None]) -> None:
    """A Batsim reads no other file. Requests are in the workload: here 3 GB a core, on nodes of 8 GB."""
    install(GOOD)
    log, records = folder / "small.swf", []
    for line in log.read_text().splitlines():
        fields = line.split()
        records.append(line if line.startswith(";") else " ".join([*fields[:9], "3145728", *fields[10:]]))
    log.write_text("\n".join(records) + "\n")
    (folder / "nodes.toml").write_text('nodes = [{count = 8, cores = 8, memory = "8 GB"}]')
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("{ hosts = 64 }", '{ file = "nodes.toml" }'))
    run = runs(folder)[0]
    (same,) = to_do(folder, [run.name], "built-in")
    assert execute(run).error is None and execute(same).error is None
    jobs = (run.folder / "out_jobs.csv").read_text()
    assert jobs == (same.folder / "out_jobs.csv").read_text()
    assert ",0-1 8-9 16-17 24-25 32-33 40-41 48-49 56-57," in jobs


OUTAGE = """{"timestamp": 1000, "type": "machine_unavailable", "resources": "0-3"}
{"timestamp": 90000, "type": "machine_available", "resources": "0-3"}
"""


@pytest.mark.parametrize(
    ("platform", "scheduler", "users"),
    [
        (
            '{ file = "power.xml", mmax = 12, energy = true, events = "outage.txt", reject_larger = true }',
            '"sleeper"',
            False,
        ),
        (
            '{ file = "power.xml", energy = true, roles = ["node00:storage"], reject_larger = true, '
            "schedule_trace = true }",
            '"sleeper"',
            True,
        ),
        ("{ hosts = 64, compute_sharing = true, mmax_workload = true }", '"filler", delay = 3', False),
        ("{ hosts = 64 }", '"pybatsim:easyBackfill", config = "text"', False),
    ],
    ids=["energy", "energy-of-users", "sharing-and-delay", "pybatsim"],
)
def test_whatever_a_plan_says_is_handed_on(
    root: Path, folder: Path, install: Callable[[str], None], platform: str, scheduler: str, users: bool
) -> None:
    if "pybatsim" in scheduler:
        pytest.importorskip("batsim")
    install(GOOD)
    (folder / "power.xml").write_bytes((root / "platforms" / "power16.xml").read_bytes())
    (folder / "outage.txt").write_text(OUTAGE)
    plan = folder / "plan.toml"
    text = plan.read_text().replace("{ hosts = 64 }", platform)
    text = text.replace("fcfs = {}", f"fcfs = {{ name = {scheduler} }}")
    text = text.replace('"small.swf"', '["small.swf", "small.swf"]')
    plan.write_text(text + ("[users]\nrigid = {}\n" if users else ""))
    run, same = runs(folder)[0], to_do(folder, results="built-in")[0]
    for each in (run, same):
        assert execute(each).error is None
    names = {path.name for path in run.folder.iterdir()}
    assert names == {path.name for path in same.folder.iterdir()}
    for name in names - {"manifest.json", "manifest.sha256"}:
        assert (run.folder / name).read_bytes() == (same.folder / name).read_bytes(), name
    assert (Manifest.read(run.folder).engine, Manifest.read(same.folder).engine) == ("", "python")


def test_communication_cannot_be_ignored_elsewhere(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("{ hosts = 64 }", "{ hosts = 64, ignore_communication = true }"))
    assert execute(runs(folder)[0]).error == (
        "a Batsim simulates communication; leave out ignore_communication for it"
    )


def test_what_links_carry_cannot_be_recorded_elsewhere(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("{ hosts = 64 }", "{ hosts = 64, links = true }"))
    assert execute(runs(folder)[0]).error == (
        "what links carry is recorded by the built-in simulator only; leave out links"
    )


def test_a_batsim_starts_and_cleans_jobs_in_no_time(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("{ hosts = 64 }", "{ hosts = 64, launch_time = 3 }"))
    assert execute(runs(folder)[0]).error == (
        "a Batsim starts and cleans jobs in no time; leave out launch_time and cleaning_time for it"
    )


def test_the_command_in_the_manifest_makes_the_same_results(
    folder: Path, install: Callable[[str], None]
) -> None:
    install(GOOD)
    run = runs(folder)[0]
    assert execute(run).error is None
    program, *arguments = shlex.split(Manifest.read(run.folder).command)
    assert program == "batsched-py"
    code, _, err = call(arguments, cwd=folder)
    assert (code, err) == (0, "")
    for name in RESULTS:
        again = folder / run.name / "runs" / run.name / name
        assert again.read_bytes() == (run.folder / name).read_bytes()


def failure(folder: Path, policy: str = "fcfs", time_limit: float | None = None) -> str:
    plan = folder / "plan.toml"
    plan.write_text(plan.read_text().replace("fcfs = {}", f'fcfs = {{ name = "{policy}" }}'))
    result = execute(structs.replace(runs(folder)[0], time_limit=time_limit))
    assert not (folder / "results" / "runs").exists()
    return str(result.error)


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batsim, "_GRACE", 2.0)


@pytest.mark.usefixtures("short_grace")
def test_a_batsim_that_ends_early_is_noticed_whatever_its_exit_code(
    folder: Path, install: Callable[[str], None]
) -> None:
    install(SILENT)
    assert failure(folder).startswith("Batsim ended with exit code 0 before the simulation did")


@pytest.mark.usefixtures("short_grace")
def test_a_deadlock_is_noticed(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    assert "by an error or a deadlock: deadlock at " in failure(folder, "policies.py:Idle")


def test_a_scheduler_that_fails_is_named(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    assert failure(folder, "policies.py:Broken").startswith(
        "the decision process failed: scheduler 'broken' failed at time 0: RuntimeError: I am broken"
    )


def test_a_batsim_that_does_not_end_is_stopped(folder: Path, install: Callable[[str], None]) -> None:
    install(LAZY)
    assert failure(folder, time_limit=0.5) == "not finished after 0.5 s, the time limit"


def test_a_job_that_is_missing_is_noticed(folder: Path, install: Callable[[str], None]) -> None:
    install(FORGETFUL)
    assert failure(folder) == "Batsim's jobs.csv has 59 jobs, the workload 60"


def test_a_file_that_is_missing_is_noticed(folder: Path, install: Callable[[str], None]) -> None:
    install(TIDY)
    assert failure(folder) == "Batsim has not written its schedule.csv"


def test_another_version_makes_another_run(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    before = runs(folder)[0].identity
    install(GOOD)
    program = folder / "bin" / "batsim"
    program.write_text(program.read_text().replace("4.2.0", "4.3.0"))
    assert runs(folder)[0].identity != before


def test_a_batsim_that_is_not_installed(folder: Path, install: Callable[[str], None]) -> None:
    install(GOOD)
    (folder / "bin" / "batsim").unlink()
    with pytest.raises(
        InputError, match="there is no command 'batsim'; install Batsim, or say how it is started"
    ):
        runs(folder)


def test_a_command_that_is_no_batsim() -> None:
    with pytest.raises(InputError, match="'sh -c :' does not tell its version, so it is hardly a Batsim"):
        find_simulator("sh -c :")
