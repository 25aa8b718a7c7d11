"""The example of users who submit jobs again, and what is measured of its results."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.processes import call_here

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "submit_again.py"

#: The first job needs 100 s and asks for 30; the second is that user's next one.
LOG = """\
; MaxProcs: 4
1 0 0 100 2 -1 -1 2 30 -1 1 7 1 -1 1 1 -1 -1
2 200 0 50 1 -1 -1 1 60 -1 1 7 1 -1 1 1 -1 -1
3 10 0 50 1 -1 -1 1 60 -1 1 8 1 -1 1 1 -1 -1
"""


@pytest.fixture
def jobs(tmp_path: Path) -> dict[str, dict[str, str]]:
    (tmp_path / "log.swf").write_text(LOG)
    command = ["run", "-w", tmp_path / "log.swf", "--walltime", "requested", "-e", tmp_path / "out"]
    users = ["--users", f"{EXAMPLE}:SubmitAgain(think-time)", "--sessions", "arrival:1"]
    code, _, error = call_here([*command, "-s", "easy", *users])
    assert code == 0, error
    with (tmp_path / "out_jobs.csv").open() as file:
        return {row["job_id"]: row for row in csv.DictReader(file)}


def test_a_job_is_submitted_again_until_its_walltime_suffices(jobs: dict[str, dict[str, str]]) -> None:
    tries = [jobs[name] for name in ("1", "1-again1", "1-again2")]
    assert [float(one["requested_time"]) for one in tries] == [30, 60, 120]
    assert [float(one["submission_time"]) for one in tries] == [0, 30, 90]
    states = ["COMPLETED_WALLTIME_REACHED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY"]
    assert [one["final_state"] for one in tries] == states
    assert tries[1]["metadata"] == "user=7 again=1"


def test_what_comes_next_waits_for_the_last_attempt(jobs: dict[str, dict[str, str]]) -> None:
    assert float(jobs["2"]["submission_time"]) == 190 + 100


@pytest.mark.parametrize("with_log", [False, True])
def test_metrics_cope_with_jobs_that_the_log_does_not_have(
    jobs: dict[str, dict[str, str]], with_log: bool, tmp_path: Path
) -> None:
    log = ["--recorded", tmp_path / "log.swf"] if with_log else []
    code, text, error = call_here(
        ["metrics", tmp_path / "out_jobs.csv", *log, "--hosts", "4", "--per-user", "--json"]
    )
    assert code == 0, error
    assert ("2 jobs are not in" in error) is with_log
    found = json.loads(text)
    assert found["metrics"]["nb_jobs"] == len(jobs) == 5
    assert found["metrics"]["mean_lateness"] == pytest.approx((0 + 0 + 90) / 3)
    assert found["users"]["7"]["nb_jobs"] == 4
