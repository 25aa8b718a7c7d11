"""``batsched-py metrics`` as its user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py.analysis.metrics import METRICS, explain
from batsched_py.cli.main import batsched_py

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
SCHEDULE = GOLDEN / "rigid200_fcfs" / "jobs.csv"


def metrics(*arguments: object) -> Result:
    return CliRunner().invoke(batsched_py, ["metrics", *map(str, arguments)])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log in which the 200 jobs were submitted a second apart, by two users."""
    path = tmp_path / "log.swf"
    path.write_text("".join(f"{n} {n} 0 1 1{' -1' * 6} {1 + n % 2}{' -1' * 6}\n" for n in range(1, 201)))
    return path


def test_every_metric_is_shown_with_its_unit() -> None:
    lines = [line.split() for line in metrics(SCHEDULE).output.splitlines() if line.strip()]
    assert [line[0] for line in lines] == [metric.name for metric in METRICS if metric.needs is None]
    assert ["mean_waiting_time", "2,837.844", "s", "47.30", "min"] in lines


def test_json_is_for_machines() -> None:
    figures = json.loads(metrics(SCHEDULE, "--json", "--hosts", 16).output)
    assert list(figures) == ["metrics"]
    assert figures["metrics"]["mean_waiting_time"] == pytest.approx(2837.843855)
    assert figures["metrics"]["nb_jobs"] == 200


def test_what_is_not_defined_is_null_in_json() -> None:
    result = metrics(GOLDEN / "small12_rejecter" / "jobs.csv", "--json")
    assert json.loads(result.output)["metrics"]["utilization"] is None


def test_a_larger_machine_is_used_less() -> None:
    used = [
        json.loads(metrics(SCHEDULE, "--json", "--hosts", hosts).output)["metrics"]["utilization"]
        for hosts in (16, 32)
    ]
    assert used[0] == pytest.approx(2 * used[1])


def test_a_recorded_log_adds_lateness(log: Path) -> None:
    figures = json.loads(metrics(SCHEDULE, "--json", "--recorded", log).output)["metrics"]
    assert figures["additional_lateness"] == pytest.approx(2 * figures["mean_lateness"] / 199)
    assert figures["relative_lateness"] == pytest.approx(1 + figures["mean_lateness"] / 199)


def test_each_user_is_measured(log: Path) -> None:
    users = json.loads(metrics(SCHEDULE, "--json", "--recorded", log, "--per-user").output)["users"]
    assert list(users) == ["1", "2"]
    assert users["1"]["nb_jobs"] == users["2"]["nb_jobs"] == 100
    shown = metrics(SCHEDULE, "--recorded", log, "--per-user").output
    assert "relative" in shown


def test_formulas_are_explained_without_a_schedule() -> None:
    result = metrics("--explain")
    assert (result.exit_code, result.output) == (0, explain() + "\n")


def test_users_without_a_log_are_an_error_of_one_line() -> None:
    result = metrics(SCHEDULE, "--per-user")
    assert result.exit_code == 1
    assert result.stderr == (
        "batsched-py: error: the schedule does not tell its users; give the log with --recorded LOG.swf\n"
    )


def test_schedules_of_feedback_users_need_no_log(tmp_path: Path) -> None:
    path = tmp_path / "out_jobs.csv"
    path.write_text(SCHEDULE.read_text().replace('""', '"user=3 session=0 recorded=0"'))
    report = json.loads(metrics(path, "--json", "--per-user").output)
    assert report["metrics"]["mean_lateness"] == report["users"]["3"]["mean_lateness"] > 0
