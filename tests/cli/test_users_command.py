"""``--users`` in one process and in two over ZeroMQ, and the command ``users``."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py.cli.main import batsched_py
from batsched_py.users import USERS
from tests.processes import call_here, serving, start

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "workloads" / "sample.swf"
MODES = {
    "plain": [],
    "acknowledged": ["--acknowledge-dynamic-jobs"],
    "reuse": ["--enable-profile-reuse"],
    "both": ["--acknowledge-dynamic-jobs", "--enable-profile-reuse"],
}
THINK_TIME = ["--users", "think-time", "--sessions", "last:20"]


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, list(map(str, arguments)))


def run(prefix: Path, *arguments: str | Path) -> None:
    result = invoke("run", "-e", prefix, *arguments)
    assert result.exit_code == 0, result.stderr


def rows(prefix: Path) -> list[dict[str, str]]:
    with Path(f"{prefix}_jobs.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The beginning of the sample log."""
    path = tmp_path_factory.mktemp("log") / "log.swf"
    path.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:400]))
    return path


@pytest.mark.parametrize("scheduler", ["fcfs", "easy"])
def test_rigid_users_give_the_schedule_of_the_static_replay(scheduler: str, tmp_path: Path) -> None:
    run(tmp_path / "static", "-w", SAMPLE, "-s", scheduler)
    run(tmp_path / "rigid", "-w", SAMPLE, "-s", scheduler, "--users", "rigid")
    assert [row | {"metadata": ""} for row in rows(tmp_path / "rigid")] == rows(tmp_path / "static")


@pytest.mark.parametrize("users", [["--users", "rigid"], THINK_TIME], ids=["rigid", "think-time"])
def test_two_processes_write_the_bytes_of_one(users: list[str], log: Path, tmp_path: Path) -> None:
    """In all modes of registration; without reuse the profiles have names of their own."""
    decision = ["-s", "easy", "-w", log, *users]
    run(tmp_path / "run", *decision, "--hosts", "24")
    with serving(*decision, "--keep-alive") as service:
        for mode, options in MODES.items():
            arguments = ["-s", service.endpoint, "--hosts", "24", "--enable-dynamic-jobs", *options]
            assert call_here(["batsim", "-e", tmp_path / mode, *arguments]) == (0, "", "")
    jobs = {name: Path(tmp_path, f"{name}_jobs.csv").read_bytes() for name in ("run", *MODES)}
    assert jobs["reuse"] == jobs["both"] == jobs["run"]
    assert jobs["acknowledged"] == jobs["plain"]
    fresh = [row | {"profile": ""} for row in rows(tmp_path / "plain")]
    assert fresh == [row | {"profile": ""} for row in rows(tmp_path / "run")]


def test_a_batsim_without_dynamic_jobs_is_refused(log: Path, tmp_path: Path) -> None:
    simulator = ["batsim", "--hosts", "24", "-e", tmp_path / "out", "-s"]
    with (
        serving("-s", "fcfs", "-w", log, *THINK_TIME) as service,
        start([*simulator, service.endpoint]) as batsim,
    ):
        code, lines = service.end()
        batsim.kill()
    assert code == 1
    assert lines == [
        "batsched-py: error: users submit jobs while the simulation runs, and this simulator does not accept "
        "that; start it with --enable-dynamic-jobs"
    ]


@pytest.mark.parametrize("mode", ["plain", "reuse"])
def test_what_users_make_of_a_log_is_a_valid_schedule_of_it(mode: str, log: Path, tmp_path: Path) -> None:
    with serving("-s", "easy", "-w", log, *THINK_TIME) as service:
        arguments = ["-s", service.endpoint, "--hosts", "24", "--enable-dynamic-jobs", *MODES[mode]]
        assert call_here(["batsim", "-e", tmp_path / "out", *arguments]) == (0, "", "")
    schedule = tmp_path / "out_jobs.csv"
    assert invoke("validate", schedule, "-w", log, "--hosts", "24", "--policy", "easy").exit_code == 0
    schedule.write_text(schedule.read_text().replace("recorded=", "recorded=1", 1))
    assert "in the workload at" in invoke("validate", schedule, "-w", log, "--hosts", "24").stdout


def test_several_logs_are_played_together(log: Path, tmp_path: Path) -> None:
    run(tmp_path / "two", "-w", log, "-w", log, "-s", "easy", "--hosts", "64", *THINK_TIME)
    ids = [(row["workload_name"], row["job_id"]) for row in rows(tmp_path / "two")]
    numbers = [job for workload, job in ids if workload == "w0"]
    assert sorted(ids) == sorted((workload, job) for workload in ("w0", "w1") for job in numbers)


def documented_behaviours(path: Path) -> None:
    """Write the code of the documentation into a file."""
    document = (ROOT / "docs" / "users.md").read_text()
    path.write_text("\n".join(re.findall(r"```python\n(.*?)```", document, re.DOTALL)))


def test_users_of_the_documentation_give_up_after_two_days(tmp_path: Path) -> None:
    """The first job runs for three days on the only host; of the others one is short of two days of wait."""
    documented_behaviours(tmp_path / "mine.py")
    log = tmp_path / "log.swf"
    record = "{} {} 0 {} 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n"
    jobs = [(1, 0, 3 * 86400), (2, 60, 10), (3, 86400 + 60, 10)]
    log.write_text("; MaxProcs: 1\n" + "".join(record.format(*job) for job in jobs))
    run(tmp_path / "out", "-w", log, "-s", "fcfs", "--users", f"{tmp_path / 'mine.py'}:TwoDays(rigid)")
    ended = {row["job_id"]: row["final_state"] for row in rows(tmp_path / "out")}
    assert ended == {"1": "COMPLETED_SUCCESSFULLY", "2": "REJECTED", "3": "COMPLETED_SUCCESSFULLY"}


def test_the_behaviour_in_the_documentation_does_what_it_says(log: Path, tmp_path: Path) -> None:
    documented_behaviours(tmp_path / "mine.py")
    run(tmp_path / "out", "-w", log, "-s", "easy", "--users", f"{tmp_path / 'mine.py'}:OneByOne")
    jobs = {row["job_id"]: row for row in rows(tmp_path / "out")}
    jobs_of: dict[str, list[dict[str, str]]] = {}
    for line in log.read_text().splitlines():
        if not line.startswith(";"):
            jobs_of.setdefault(line.split()[11], []).append(jobs.pop(line.split()[0]))
    assert jobs == {}
    for submitted in jobs_of.values():
        for job, following in itertools.pairwise(submitted):
            assert float(following["submission_time"]) == float(job["finish_time"]) + 3600


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--sessions", "arrival:60"], "sessions: options for users, but no --users was given"),
        (["-u", "edges=all"], "edges: options for users, but no --users was given"),
        (["--users", "lazy"], "there is no user behaviour 'lazy'; known are adjusted, cancelling, "),
        (["--users", "rigid", "--sessions", "max:20"], "user behaviour 'rigid' has no option 'sessions'"),
        (["--users", "think-time", "--sessions", "often"], "session delimiter 'often'"),
        (["--users", "think-time", "-u", "edges=some"], "Invalid enum value 'some' - at `$.edges`"),
        (
            ["--users", "think-time", "--sessions", "max:20", "-u", "sessions=max:1"],
            "both --sessions and -u sessions=... are given; give one of them",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], complaint: str, log: Path, tmp_path: Path) -> None:
    result = invoke("run", "-w", log, "-s", "fcfs", "-e", tmp_path / "out", *arguments)
    assert result.exit_code == 1
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


def test_sessions_need_recorded_finishes(tmp_path: Path) -> None:
    workload = tmp_path / "w.json"
    workload.write_text(
        '{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p"}],'
        ' "profiles": {"p": {"type": "delay", "delay": 1}}}'
    )
    result = invoke("run", "-w", workload, "-s", "fcfs", "-e", tmp_path / "out", "--users", "think-time")
    assert result.exit_code == 1
    assert "does not say when its jobs had finished; sessions need an SWF log" in result.stderr


@pytest.mark.parametrize("arguments", [["--users", "rigid"], ["-w", str(SAMPLE)]])
def test_serve_wants_users_with_a_log(arguments: list[str]) -> None:
    result = invoke("serve", "-s", "fcfs", *arguments)
    assert result.exit_code == 1
    assert "--users submit the jobs of -w FILE; give both, or none of them" in result.stderr


def test_users_lists_the_behaviours() -> None:
    result = invoke("users")
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(USERS.all())


def test_users_describes_a_behaviour_with_its_options() -> None:
    text = " ".join(invoke("users", "think-time").stdout.split())
    assert "-u sessions=str What opens a session" in text
    assert "[default: arrival:60]" in text
