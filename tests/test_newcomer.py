"""The newcomer's study: one plan file, one table, one figure, one page, nothing written by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.campaign.plan_file import read_plan
from batsched_py.cli.main import batsched_py

ROOT = Path(__file__).resolve().parents[1]
PLAN = (ROOT / "examples" / "plans" / "newcomer.toml").read_text()
SCHEDULERS = ["fcfs", "easy", "conservative", "easy++", "sjf"]


def command(*arguments: str | Path) -> None:
    done = CliRunner().invoke(batsched_py, list(map(str, arguments)))
    assert done.exit_code == 0, done.output


def study(plan: Path, logs: Path, folder: Path) -> bp.Campaign:
    """Do what the comments of the plan say."""
    results = folder / "newcomer"
    command("campaign", "run", plan, "--logs", logs, "-d", results)
    command(
        "campaign",
        "table",
        results,
        "--output",
        folder / "newcomer.tex",
        "--output",
        folder / "newcomer.parquet",
    )
    command("plot", "load", results, "--output", folder / "newcomer.pdf")
    command("campaign", "report", results, "--output", folder / "newcomer.html")
    return bp.Campaign.open(results)


def check(folder: Path, campaign: bp.Campaign) -> None:
    """The aggregate is that of pandas, in the data and in the table; the figure and the page are there."""
    groups = campaign.table().groupby(["log", "load", "scheduler"], sort=False)
    data = pd.read_parquet(folder / "newcomer.parquet")
    for metric in ("mean_bounded_slowdown", "mean_waiting_time"):
        means = data[data.metric == metric].set_index(["log", "load", "scheduler"])["mean"]
        pd.testing.assert_series_equal(means, groups[metric].mean(), check_names=False)
    text = (folder / "newcomer.tex").read_text()
    slowdowns, waits = text.split(r"\begin{table}")[1:]
    assert "mean waiting time" in waits
    lines = [line.rstrip(" \\") for line in slowdowns.splitlines() if "&" in line and "[" in line]
    rows = [[cell.strip() for cell in line.split("&")] for line in lines]
    shown = [row[3].removeprefix(r"\textbf{").split(" ")[0] for row in rows]
    assert [row[2] for row in rows] == SCHEDULERS * (len(rows) // 5)
    decimals = len(shown[0].partition(".")[2])
    assert [each.rstrip("†") for each in shown] == [
        f"{mean:.{decimals}f}" for mean in groups.mean_bounded_slowdown.mean()
    ]
    assert [row[4] == "" for row in rows] == [row[2] == "easy" for row in rows]
    assert (folder / "newcomer.pdf").read_bytes().startswith(b"%PDF")
    assert "comparisons in pairs" in (folder / "newcomer.html").read_text()


def test_on_the_sample_log(tmp_path: Path) -> None:
    """With the first jobs of the sample log in the place of the two logs, in windows of two days."""
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    log = bp.read_log(ROOT / "workloads" / "sample.swf")
    for name in re.findall(r'file = "(.*)"', PLAN):
        log.period(end="7d").save(tmp_path / name)
    plan = tmp_path / "newcomer.toml"
    plan.write_text(re.sub(r"(url|sha256) = .*", "", PLAN).replace('parts = "28d"', 'parts = "2d"'))
    campaign = study(plan, tmp_path, tmp_path)
    assert len(campaign.finished()) == 2 * 3 * 5
    assert len(campaign.measured()) == 3 * 2 * 3 * 5
    check(tmp_path, campaign)


def test_the_plan_asks_for_what_the_study_needs(shared: Path) -> None:
    plan = read_plan(ROOT / "examples" / "plans" / "newcomer.toml", [shared / "logs"])
    assert not plan.missing
    axes = pd.DataFrame([run.axes for run in plan.runs])
    windows = {run.axes["log"]: len(run.windows) for run in plan.runs}
    assert windows == {"kth-sp2": 9, "sdsc-ds": 11}, "the first part leads in, and the last leads out"
    assert list(axes.load.unique()) == ["0.8", "1", "1.2"]
    assert list(axes.scheduler.unique()) == SCHEDULERS
    assert len(plan.runs) == 2 * 3 * 5


@pytest.mark.slow
def test_on_the_logs_themselves(shared: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in re.findall(r'file = "(.*)"', PLAN):
        (logs / name).symlink_to(shared / "logs" / name)
    campaign = study(ROOT / "examples" / "plans" / "newcomer.toml", logs, tmp_path)
    check(tmp_path, campaign)
    slowdown = campaign.aggregate(metrics=["mean_bounded_slowdown"]).set_index(["log", "load", "scheduler"])
    fcfs = slowdown.xs("fcfs", level="scheduler")
    assert fcfs.loc[("kth-sp2", "1"), "unstable"], "its mean wait is that of a queue that grows for months"
    assert fcfs.loc[("kth-sp2", "1.2"), "unstable"]
    steady = fcfs[~fcfs.unstable]
    assert (steady.difference_mean > 0).all(), "nowhere are slowdowns higher with backfilling"
    assert (steady.loc["sdsc-ds"].difference_low > 0).all(), "and there that is shown"
