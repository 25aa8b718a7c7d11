"""What an administrator does first: a dump of sacct, converted and simulated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.processes import call_here

FIELDS = "JobID|User|Submit|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|Account|QOS|Priority"
HOUR = 3600
NB_JOBS, NB_CANCELLED = 300, 20


def dump(path: Path) -> Path:
    """Jobs of an hour on a machine of 8 processors that has a long queue, some of them cancelled in it."""
    lines = [FIELDS]
    for number in range(NB_JOBS):
        submit = 1_700_000_000 + 600 * number
        start = 1_700_000_000 + HOUR * number // 4
        if number % 15 == 14:
            fate = f"Unknown|{submit + 7200}|CANCELLED by 7|0|02:00:00|2|0"
        else:
            fate = f"{start}|{start + HOUR}|COMPLETED|{HOUR}|02:00:00|2|2"
        lines.append(f"{number}|u{number % 5}|{submit}|{fate}|physics|normal|{number}")
    path.write_text("\n".join(lines) + "\n")
    return path


def run(folder: Path, *arguments: object) -> dict[str, float]:
    code, out, err = call_here(["run", "-e", folder / "out", "-s", "fcfs", "--json", *map(str, arguments)])
    assert code == 0, err
    return dict(json.loads(out))


@pytest.fixture
def sacct(tmp_path: Path) -> Path:
    return dump(tmp_path / "jobs.sacct")


@pytest.mark.parametrize("converted", [False, True])
def test_jobs_cancelled_while_they_waited_are_no_successes(
    sacct: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, converted: bool
) -> None:
    file = tmp_path / "jobs.swf" if converted else sacct
    if converted:
        assert call_here(["convert", sacct, file])[0] == 0
    found = run(tmp_path, "-w", file, "--hosts", 8)
    assert found["jobs"] == NB_JOBS - NB_CANCELLED
    assert f"cancelled while they waited: {NB_CANCELLED} of {NB_JOBS} jobs" in caplog.text
    assert found["mean_bounded_slowdown"] < 2 + found["mean_waiting_time"] / HOUR


def test_they_may_leave_the_queue_instead(
    sacct: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = run(tmp_path, "-w", sacct, "--hosts", 8, "--cancelled", "withdraw")
    assert found["jobs"] == NB_JOBS
    assert found["rejected"] + found["killed"] == NB_CANCELLED
    assert found["rejected"] > 0
    assert caplog.text == ""
    assert found["mean_bounded_slowdown"] < 2 + found["mean_waiting_time"] / HOUR


def test_a_conversion_tells_of_cancelled_jobs_and_of_what_is_lost(sacct: Path, tmp_path: Path) -> None:
    _, told, _ = call_here(["convert", sacct, tmp_path / "jobs.swf"])
    assert f"jobs.swf: {NB_JOBS} jobs" in told
    assert f"  kept: {NB_CANCELLED} x job that was cancelled while it waited" in told
    for column in ("account", "qos", "priority"):
        assert f"  lost: {NB_JOBS} x column {column}\n" in told


@pytest.mark.parametrize("arguments", [["few.swf", "--cancelled", "leave-out"], ["few.json"], ["few.pbs"]])
def test_a_conversion_may_leave_them_out(sacct: Path, tmp_path: Path, arguments: list[str]) -> None:
    target, *options = arguments
    _, told, _ = call_here(["convert", sacct, tmp_path / target, *options])
    assert f"{target}: {NB_JOBS - NB_CANCELLED} jobs" in told
    assert f"  left out: {NB_CANCELLED} x job that was cancelled while it waited" in told


def test_what_a_workload_of_batsim_has_no_place_for_is_counted(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(
        "1 0 5 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1\n2 9 5 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 1 30\n"
    )
    _, told, _ = call_here(["convert", tmp_path / "log.swf", tmp_path / "log.json"])
    assert "  lost: 1 x preceding job\n" in told
    assert "  lost: 1 x think time\n" in told


# --- cores taken for hosts -----------------------------------------------------------------------


def sized(path: Path, small: int, large: int) -> Path:
    """A log of jobs of one processor and of 128."""
    sizes = [1] * small + [128] * large
    record = "{n} {n} 0 60 {s} -1 -1 {s} 120 -1 1 7 -1 -1 -1 -1 -1 -1\n"
    path.write_text("".join(record.format(n=number, s=size) for number, size in enumerate(sizes, 1)))
    return path


@pytest.mark.parametrize("kind", ["swf", "json"])
def test_a_log_whose_jobs_are_larger_than_the_machine_is_refused(tmp_path: Path, kind: str) -> None:
    log = sized(tmp_path / "log.swf", small=40, large=60)
    if kind == "json":
        call_here(["convert", log, tmp_path / "log.json"])
    file = tmp_path / f"log.{kind}"
    code, _, err = call_here(["run", "-w", file, "--hosts", "64", "-s", "easy", "-e", tmp_path / "out"])
    assert code == 1
    assert err.count("\n") == 1
    assert "60 of 100 jobs (60.0%) ask for more than the 64 hosts of the machine and can never run" in err
    assert "--reject-larger" in err
    assert not (tmp_path / "out_jobs.csv").exists()


def test_they_are_rejected_when_one_says_so_and_the_summary_tells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = sized(tmp_path / "log.swf", small=40, large=60)
    arguments = ["run", "-w", log, "--hosts", "64", "-s", "easy", "-e", tmp_path / "out", "--reject-larger"]
    code, out, _ = call_here(arguments)
    assert code == 0
    assert "60 (60.0%), in no mean" in out
    assert "60 of 100 jobs (60.0%) ask for more than the 64 hosts" in caplog.text
    found = run(tmp_path, "-w", log, "--hosts", 64, "--reject-larger")
    assert found["mean_slowdown"] == 1
    assert found["mean_bounded_slowdown"] == 1


def test_a_few_are_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = run(tmp_path, "-w", sized(tmp_path / "log.swf", small=95, large=5), "--hosts", 64)
    assert found["rejected"] == 5
    assert "5 of 100 jobs (5.0%) ask for more than the 64 hosts" in caplog.text


# --- small things --------------------------------------------------------------------------------


def test_a_folder_is_called_a_folder(tmp_path: Path) -> None:
    for arguments in (["run", "-w", tmp_path, "-s", "fcfs"], ["describe", tmp_path]):
        code, _, err = call_here(arguments)
        assert code == 1
        assert err == f"batsched-py: error: {tmp_path}: is a folder; give the log in it\n"


def test_tables_with_names_of_their_own_are_run_and_described(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("Queued,Seconds,requested_processors\n0,60,1\n5,30,2\n")
    options = ["-i", "columns=submit:Queued,run_time:Seconds"]
    assert run(tmp_path, "-w", table, "--hosts", 4, *options)["jobs"] == 2
    _, told, _ = call_here(["describe", table, "--json", *options])
    assert json.loads(told)["load"]["jobs"] == 2
    code, _, err = call_here(["run", "-w", table, "--hosts", "4", "-s", "fcfs", "-i", "submit"])
    assert (code, err) == (1, "batsched-py: error: -i 'submit' is not of the form KEY=VALUE\n")
