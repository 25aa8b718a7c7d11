"""``batsched-py validate`` as its user sees it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from batsched_py.cli.main import batsched_py
from tests.processes import call_here

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
FCFS = GOLDEN / "rigid200_fcfs"


def validate(*arguments: object) -> Result:
    return CliRunner().invoke(batsched_py, ["validate", *map(str, arguments)])


def test_a_clean_schedule_is_one_line_and_exit_code_0() -> None:
    result = validate(
        FCFS / "jobs.csv", "-w", FCFS / "rigid200.json", "-p", FCFS / "flat16.xml", "--policy", "fcfs"
    )
    assert (result.exit_code, result.output) == (0, f"{FCFS / 'jobs.csv'}: 200 jobs, no violation\n")


def test_the_first_violation_is_named_and_all_are_counted() -> None:
    path = GOLDEN / "rigid200_filler" / "jobs.csv"
    result = validate(path, "--hosts", 16, "--policy", "easy")
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"{path}: easy-backfill at 163.903000: job w0!9 overtakes w0!6, but may run beyond its shadow time "
        "1579.186000 on more than the 0 hosts that are extra then",
        "easy-backfill: 26, easy-reservation: 3",
    ]


def test_workloads_are_named_as_batsim_does() -> None:
    folder = GOLDEN / "two_workloads"
    right = validate(folder / "jobs.csv", "-w", folder / "small12.json", "-w", folder / "rigid200.json")
    wrong = validate(folder / "jobs.csv", "-w", folder / "rigid200.json", "-w", folder / "small12.json")
    assert (right.exit_code, wrong.exit_code) == (0, 1)


def test_a_platform_that_is_too_small_is_noticed() -> None:
    result = validate(FCFS / "jobs.csv", "--hosts", 8)
    assert result.exit_code == 1
    assert "but the last host is 7" in result.output


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    for arguments, message in (
        ([tmp_path / "none.csv"], "cannot be read"),
        ([FCFS / "jobs.csv", "--policy", "easy"], "depend on the number of hosts"),
        ([FCFS / "jobs.csv", "--hosts", 16, "-p", FCFS / "flat16.xml"], "give one of them"),
        ([FCFS / "schedule.csv"], "no column `job_id`"),
    ):
        result = validate(*arguments)
        assert result.exit_code == 1
        assert len(result.stderr.splitlines()) == 1
        assert message in result.stderr


def test_that_hosts_of_another_speed_are_told(tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "workloads" / "sample.swf"
    machine = ["-w", log, "--hosts", "64"]
    run = ["run", *machine, "--speed", "0.5", "-s", "fcfs", "-e", tmp_path / "out"]
    assert call_here(run)[0] == 0
    words = ["validate", tmp_path / "out_jobs.csv", *machine]
    assert call_here([*words, "--speed", "0.5"])[:2] == (0, f"{words[1]}: 3000 jobs, no violation\n")
    code, printed, _ = call_here(words)
    assert code == 1 and "profile: " in printed
