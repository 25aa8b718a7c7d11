"""A control: the same users on the machine of the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError


@pytest.fixture(scope="module")
def log(root: Path) -> bp.Log:
    return bp.read_log(root / "workloads" / "sample.swf").first(400)


def test_a_control_has_the_machine_of_the_log_and_the_difference_job_by_job(log: bp.Log) -> None:
    half = bp.simulate(log, "easy", hosts=32, users="think-time", progress=False)
    control = half.control()
    same = bp.simulate(log, control.scheduler, users="think-time", progress=False)
    assert control.hosts == same.overview.hosts == 64
    assert control.lateness == half.metrics["mean_lateness"]
    assert control.control_lateness == same.metrics["mean_lateness"]
    later = (
        half.jobs.set_index("job_id")["submission_time"] - same.jobs.set_index("job_id")["submission_time"]
    )
    assert control.mean_difference == pytest.approx(later.mean())
    assert control.p50_difference == pytest.approx(later.median())
    assert control.verdict == bp.calibrate(log, control.scheduler, progress=False).verdict


def test_the_same_machine_and_policy_differ_in_nothing(log: bp.Log) -> None:
    policy = bp.simulate(log, "easy", hosts=32, users="think-time", progress=False).control().scheduler
    control = bp.simulate(log, policy, users="think-time", progress=False).control()
    assert control.mean_difference == control.p95_difference == 0


def test_only_users_who_replay_a_log_have_a_control(log: bp.Log) -> None:
    with pytest.raises(InputError, match="a control is for users who replay a log"):
        bp.simulate(log, "easy", progress=False).control()


def test_the_command_prints_it(log: bp.Log, tmp_path: Path) -> None:
    log.save(tmp_path / "log.swf")
    words = f"run -w {tmp_path}/log.swf --hosts 32 -s easy --users think-time --control -e {tmp_path}/out"
    text = CliRunner().invoke(batsched_py, words.split()).stdout
    assert "later than the control, mean" in text and "makespan" not in text
    told = json.loads(CliRunner().invoke(batsched_py, [*words.split(), "--json"]).stdout)
    assert told["control"]["hosts"] == 64 and told["busy_until"] > 0


@pytest.mark.parametrize(
    ("words", "has_one"),
    [
        ("--hosts 32 -s easy --users think-time", True),
        ("--hosts 64 --speed 2 -s easy --users think-time", True),
        ("-s ljf --users think-time", True),
        ("-s easy --users think-time", False),
        ("--hosts 32 -s easy", False),
        ("--hosts 32 -s easy --users resample", False),
        ("--hosts 32 -s easy --users site-level -u nb_users=4 -u days=1", False),
    ],
)
def test_who_needs_a_control_has_one_unless_told_otherwise(
    log: bp.Log, tmp_path: Path, words: str, has_one: bool
) -> None:
    log.save(tmp_path / "log.swf")
    command = f"run -w {tmp_path}/log.swf {words} --reject-larger -e {tmp_path}/out"
    commands = command, f"{command} --no-control"
    done, without = (CliRunner().invoke(batsched_py, each.split()) for each in commands)
    assert done.exit_code == 0, done.output
    assert ("later than the control, mean" in done.stdout) == has_one
    assert ("none, by --no-control" in without.stdout) == has_one


def test_a_log_without_the_size_of_its_machine_has_no_control(log: bp.Log, tmp_path: Path) -> None:
    log.save(tmp_path / "log.swf")
    text = (tmp_path / "log.swf").read_text()
    (tmp_path / "log.swf").write_text("".join(f"{line}\n" for line in text.splitlines() if "Max" not in line))
    words = f"--hosts 32 -s easy --users think-time --reject-larger -e {tmp_path}/out"
    done = CliRunner().invoke(batsched_py, f"run -w {tmp_path}/log.swf {words}".split())
    assert done.exit_code == 0, done.output
    assert "control" not in done.stdout
