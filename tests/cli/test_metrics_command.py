"""``batsched-py metrics`` as its user sees it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from batsched_py.analysis.metrics import METRICS, explain
from batsched_py.cli.main import batsched_py
from tests.runs import Row, write_jobs

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
    shown = [line for line in metrics(SCHEDULE).output.splitlines() if line.strip()]
    assert shown[0].startswith("Measured: ")
    assert shown[1].startswith("No steady state, ")
    lines = [line.split() for line in shown[2:]]
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


def alone(folder: Path, nb_hosts: int | None = None) -> Path:
    """Jobs on four hosts for as long as there is anything to do, beside a summary or not."""
    return write_jobs(folder / "alone_jobs.csv", [Row(1, 0, 0, 100, "0-2"), Row(2, 0, 0, 100, "3")], nb_hosts)


def test_a_larger_machine_is_used_less(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    jobs = alone(tmp_path)
    used = [
        json.loads(metrics(jobs, "--json", "--hosts", hosts).output)["metrics"]["utilization"]
        for hosts in (4, 64)
    ]
    assert used == [1, 4 / 64]
    assert not caplog.records


@pytest.mark.parametrize("more", [(), ("--measure", "0:100s"), ("--by", "class")])
def test_a_machine_that_nothing_tells_of_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, more: tuple[str, ...]
) -> None:
    assert json.loads(metrics(alone(tmp_path), "--json", *more).output)["metrics"]["utilization"] == 1
    (said,) = caplog.messages
    assert said == (
        "nothing tells how large the machine is: it is taken to have 4 hosts, up to the highest that was used"
    )


@pytest.mark.parametrize(
    ("told", "hosts", "reason"),
    [
        (64, 50, "the machine has 64 hosts, as the schedule file beside it says, not 50"),
        (None, 3, "jobs ran on hosts up to number 3, counted from 0: the machine has more than 3 hosts"),
    ],
)
def test_another_machine_than_that_of_the_run_is_refused(
    tmp_path: Path, told: int | None, hosts: int, reason: str
) -> None:
    result = metrics(alone(tmp_path, told), "--hosts", hosts)
    assert (result.exit_code, result.output.splitlines()[-1][-len(reason) :]) == (1, reason)


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


def test_in_a_pipe_nothing_is_cut(tmp_path: Path) -> None:
    """A long name and large figures need more than the 80 columns of a terminal."""
    path = tmp_path / "out_jobs.csv"
    name = "a-user-with-a-name-of-forty-nine-letters-and-digits"
    path.write_text(SCHEDULE.read_text().replace('""', f'"user={name} session=0 recorded=0"'))
    shown = metrics(path, "--per-user").output
    assert name in shown
    heading = next(line for line in shown.splitlines() if line.strip().startswith("user"))
    assert re.split(r"\s{2,}", heading.strip()) == [
        "user",
        "jobs",
        "mean wait",
        "median wait",
        "p95 wait",
        "bounded slowdown",
        "p95 bounded slowdown",
        "mean lateness",
        "relative",
        "additional",
    ]
    assert "…" not in shown


def test_jobs_are_measured_by_class(tmp_path: Path) -> None:
    rows = [
        Row(1, 0, 100, 200, "0-8", 9),
        Row(2, 0, 300, 400, "0-8", 9),
        Row(3, 0, 50, 4000, "9", 1),
        Row(4, 0, size=99),
    ]
    path = write_jobs(tmp_path / "out_jobs.csv", rows)
    classes = json.loads(metrics(path, "--json", "--by", "class").output)["classes"]
    assert {name: (found["nb_jobs"], found["p50_waiting_time"]) for name, found in classes.items()} == {
        "long, narrow": (1, 50.0),
        "short, wide": (2, 200.0),
    }
    assert "mean_lateness" not in classes["short, wide"]


def test_jobs_are_measured_by_partition_and_account(tmp_path: Path) -> None:
    rows = [Row(number, 0, 10 * number, 100, "0") for number in (1, 2, 3)]
    path = write_jobs(tmp_path / "out_jobs.csv", rows)
    fields = [(1, 7, 1), (2, 7, 2), (3, 8, -1)]
    log = tmp_path / "log.swf"
    log.write_text(
        "; Partition: 1 gpu\n; Partition: 2 long\n"
        + "".join(f"{n} 0 0 1 1{' -1' * 6} 5 {group} -1 -1 {part} -1 -1\n" for n, group, part in fields)
    )
    found = json.loads(
        metrics(path, "--json", "--recorded", log, "--by", "partition", "--by", "account").output
    )
    waits = {
        kind: {name: figures["mean_waiting_time"] for name, figures in found[kind].items()}
        for kind in ("partitions", "accounts")
    }
    assert waits == {
        "partitions": {"gpu": 10.0, "long": 20.0, "none": 30.0},
        "accounts": {"7": 15.0, "8": 30.0},
    }
    refused = metrics(path, "--by", "partition")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "batsched-py: error: the schedule does not tell its partitions; give the log with "
        "--recorded LOG.swf\n",
    )


def test_a_metric_of_your_own() -> None:
    own = Path(__file__).parents[2] / "examples" / "own_metric.py"
    found = json.loads(metrics(SCHEDULE, "--json", "--metric", f"{own}:P90", "--by", "class").output)
    waits = pd.read_csv(SCHEDULE)["waiting_time"]
    assert found["metrics"]["p90_waiting_time"] == pytest.approx(waits.quantile(0.9))
    assert all("p90_waiting_time" in figures for figures in found["classes"].values())
    shown = metrics(SCHEDULE, "--metric", f"{own}:P90").output
    assert re.search(r"p90_waiting_time +[\d,.]+ +s +[\d.]+ h", shown)
