"""Controls of a campaign: the same users on the machine of their log, beside its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.campaign.review import review
from batsched_py.campaign.review.facts import of_campaign

SAMPLE = Path(__file__).parents[2] / "workloads" / "sample.swf"


def plan(**words: object) -> bp.Plan:
    given = {
        "logs": {"sample": SAMPLE},
        "schedulers": ["easy"],
        "platforms": {"full": {"hosts": 64}, "half": {"hosts": 32, "reject_larger": True}},
        "users": {"think": {"name": "think-time"}, "rigid": {}},
        "parts": "7d",
        "metrics": ["mean_lateness"],
    }
    return bp.Plan(**(given | words))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> bp.Campaign:
    return plan().run(tmp_path_factory.mktemp("controls"), workers=1, progress=False)


def test_tables_have_the_control_and_the_difference_job_by_job(campaign: bp.Campaign) -> None:
    """As the control of one simulation says, over the jobs that were recorded in the window."""
    half = bp.simulate(
        SAMPLE, "easy", hosts=32, reject_larger=True, users="think-time", measure="7d:14d", progress=False
    )
    control = half.control()
    same = bp.simulate(SAMPLE, control.scheduler, users="think-time", measure="7d:14d", progress=False)
    (window,) = (each.metrics for each in campaign.measured() if each.name == "sample_half_easy_think/2")
    assert window["control_lateness"] == pytest.approx(same.metrics["mean_lateness"])
    times = [each.jobs.set_index("job_id")["submission_time"] for each in (half, same)]
    inside = half.outcome.schedule["job_id"]
    assert window["later_than_control"] == pytest.approx((times[0] - times[1]).reindex(inside).mean())
    table = campaign.aggregate()
    later = table[(table["metric"] == "later_than_control") & (table["platform"] == "half")]
    assert list(later["users"]) == ["think", "rigid"]
    assert list(later["units"]) == [6, 0]
    assert list(later["low"].notna()) == [True, False]


def test_its_verdict_is_told_and_the_review_passes(campaign: bp.Campaign) -> None:
    (remark,) = (each for each in campaign.remarks if "control" in each)
    assert remark.startswith("sample: the control is conservative on 64 hosts, which fits the log: good.")
    (check,) = (each for each in review(of_campaign(campaign)) if each.name == "control")
    assert (check.verdict, check.found) == (
        "ok",
        "the same users were simulated under conservative on 64 hosts, too",
    )


def test_other_files_are_as_without_it(campaign: bp.Campaign, tmp_path: Path) -> None:
    without = plan(control=False).run(tmp_path, workers=1, progress=False)
    assert not (tmp_path / "control.json").exists()
    assert (tmp_path / "metrics.csv").read_bytes() == (campaign.folder / "metrics.csv").read_bytes()
    assert "later_than_control" not in pd.unique(without.aggregate()["metric"])


def test_a_control_says_nothing_about_a_run_that_was_made_anew(campaign: bp.Campaign, tmp_path: Path) -> None:
    told = json.loads((campaign.folder / "control.json").read_text())
    for each in told["runs"].values():
        each["identity"] = "0" * 64
    kept = (campaign.folder / "control.json").read_bytes()
    (campaign.folder / "control.json").write_text(json.dumps(told))
    assert all("later_than_control" not in each.metrics for each in campaign.measured())
    (campaign.folder / "control.json").write_bytes(kept)


def test_users_on_their_own_machine_need_none(tmp_path: Path) -> None:
    plan(platforms={"full": {"hosts": 64}}).run(tmp_path, workers=1, progress=False)
    assert not (tmp_path / "control").exists()


def test_populations_have_none(tmp_path: Path) -> None:
    users = {"many": {"name": "resample", "options": {"weeks": 1}}}
    plan(users=users, parts=None).run(tmp_path, workers=1, progress=False)
    assert not (tmp_path / "control").exists()
