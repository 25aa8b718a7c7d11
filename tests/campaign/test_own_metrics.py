"""Metrics of one's own, in plans and in tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from batsched_py.analysis.plots.runs import configurations
from batsched_py.campaign.archive import export_campaign, import_campaign
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.run import State
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from tests.campaigns import conducted, planned

OWN = (Path(__file__).parents[2] / "examples" / "own_metric.py").read_text()
BAD = """
from batsched_py.analysis.own_metrics import OwnMetric

class Raises(OwnMetric):
    def measure(self, outcome):
        return outcome.executed["colour"].mean()

class Word(OwnMetric):
    def measure(self, outcome):
        return "many"

class Taken(OwnMetric):
    name = "makespan"
    def measure(self, outcome):
        return 1.0

class Spaced(OwnMetric):
    name = "my metric"
    def measure(self, outcome):
        return 1.0

class Best(OwnMetric):
    better = "larger"
    def measure(self, outcome):
        return 1.0
"""


@pytest.fixture
def own(folder: Path) -> Path:
    """A folder with a plan that names two metrics of its own."""
    (folder / "own.py").write_text(OWN)
    plan = (folder / "plan.toml").read_text()
    (folder / "plan.toml").write_text(
        'metrics = ["own.py:P90", "mean_waiting_time", "own.py:LongWaits"]\n' + plan
    )
    return folder


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(batsched_py, list(map(str, arguments)))


def test_they_are_measured_beside_ours_and_have_columns(own: Path) -> None:
    campaign = conducted(own)
    table = campaign.table().set_index("run")
    for run in campaign.finished():
        waits = pd.read_csv(run.jobs_file)["waiting_time"]
        assert table.loc[run.name, "p90_waiting_time"] == pytest.approx(waits.quantile(0.9))
        assert table.loc[run.name, "long_waits"] == pytest.approx((waits > 86400).mean())
    shown = invoke("campaign", "table", campaign.folder)
    assert "| p90 waiting time (h) | mean waiting time (h) | long waits |" in shown.output
    page = own / "report.html"
    assert invoke("campaign", "report", campaign.folder, "--output", page).exit_code == 0
    assert "The wait that 90 % of the jobs do not exceed." in page.read_text()


def test_figures_of_the_table_take_them_for_metrics_and_not_for_choices(own: Path) -> None:
    first, file = conducted(own).table(), own / "table.csv"
    again = first.assign(p90_waiting_time=first["p90_waiting_time"] + 1)
    table = pd.concat([each.assign(seed=seed) for seed, each in enumerate((first, again))])
    table.to_csv(file, index=False)
    choices = [f"{machine}, {scheduler}" for machine in ("full", "half") for scheduler in ("fcfs", "easy")]
    for each in (table, pd.read_csv(file)):
        assert {name: len(rows) for name, rows in configurations(each)} == dict.fromkeys(choices, 2)


def test_the_documentation_shows_the_example() -> None:
    document = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    (shown,) = re.findall(r"^```python\n(.*?)^```", document, flags=re.MULTILINE | re.DOTALL)
    assert shown in OWN


def test_another_metric_or_other_code_makes_runs_stale(own: Path) -> None:
    plan, text = own / "plan.toml", (own / "plan.toml").read_text()
    states = [{each.state for each in conducted(own).results()}]
    for file, content in (
        (own / "own.py", OWN.replace("quantile(0.9)", "quantile(0.8)")),
        (own / "own.py", OWN),
        (plan, text.replace(', "own.py:LongWaits"', "")),
        (plan, text),
    ):
        file.write_text(content)
        states.append({each.state for each in planned(own).results()})
    assert states == [{State.DONE}, {State.STALE}, {State.DONE}, {State.STALE}, {State.DONE}]


def test_the_manifest_has_the_code(own: Path) -> None:
    (run,) = conducted(own, ["small_full_fcfs"]).finished()
    assert str(own / "own.py") in [each.path for each in run.manifest.inputs]


def test_groups_of_jobs_are_measured_too(own: Path) -> None:
    campaign = conducted(own)
    found = campaign.aggregated(["platform", "scheduler", "class"], metrics=["long_waits"]).frame()
    jobs = pd.read_csv(campaign.folder / "runs" / "small_half_fcfs" / "out_jobs.csv")
    long = jobs[(jobs.execution_time > 3600) & (jobs.requested_number_of_resources <= 8)]
    row = found.set_index(["platform", "scheduler", "class"]).loc[("half", "fcfs", "long, narrow")]
    assert row["mean"] == pytest.approx((long.waiting_time > 86400).mean())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Taken", "there is a metric 'makespan' already; give yours another name"),
        ("Spaced", "is made of small letters, digits and _, not 'my metric'"),
        ("Best", "metric 'best': `better` is one of lower, higher, neither"),
        ("Nobody", "defines no metric 'Nobody'"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(own: Path, name: str, message: str) -> None:
    (own / "own.py").write_text(BAD)
    (own / "plan.toml").write_text((own / "plan.toml").read_text().replace("own.py:P90", f"own.py:{name}"))
    with pytest.raises(InputError, match=message) as caught:
        read_plan(own / "plan.toml")
    assert str(caught.value).startswith(f"{own / 'plan.toml'}:1: metrics: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raises", "metric 'raises' fails: KeyError('colour') (FILE:6)"),
        ("Word", "metric 'word' gives 'many', which is no number"),
    ],
)
def test_what_fails_is_named_with_its_line(own: Path, name: str, message: str) -> None:
    (own / "own.py").write_text(BAD)
    plan = (own / "plan.toml").read_text().replace("own.py:P90", f"own.py:{name}")
    (own / "plan.toml").write_text(plan.replace(', "own.py:LongWaits"', ""))
    (run, *_) = conducted(own, ["small_full_fcfs"]).results()
    assert run.error == message.replace("FILE", str(own / "own.py"))
    jobs = own / "out_jobs.csv"
    jobs.write_text((Path(__file__).parents[1] / "data/golden/rigid200_fcfs/jobs.csv").read_text())
    result = invoke("metrics", jobs, "--metric", f"{own / 'own.py'}:{name}")
    assert (result.exit_code, result.stderr) == (
        1,
        f"batsched-py: error: {message.replace('FILE', str(own / 'own.py'))}\n",
    )


def test_those_of_others_are_shown_but_not_executed(own: Path) -> None:
    """The values are in the archive; the code that made them is not asked again unless it is trusted."""
    (own / "own.py").write_text(OWN + f"\nopen({str(own / 'executed')!r}, 'w').close()\n")
    export_campaign(conducted(own), own / "archive.zip")
    again = own / "again"
    import_campaign(own / "archive.zip", again)
    (own / "executed").unlink()
    (again / "own.py").write_text((own / "own.py").read_text())
    assert "p90 waiting time (h)" in invoke("campaign", "table", again).output
    assert invoke("campaign", "report", again, "--output", own / "report.html").exit_code == 0
    refused = invoke("campaign", "table", again, "--by", "class", "--by", "scheduler", "--by", "platform")
    assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
    for command in ("plan", "run", "status"):
        refused = invoke("campaign", command, again / "plan.toml")
        assert (refused.exit_code, refused.stderr.count("\n")) == (1, 1)
        assert "this plan was imported; to use" in refused.stderr
    assert not (own / "executed").exists()
    assert "own.py" in json.loads((again / "campaign.json").read_text())["own"]["long_waits"]["source"]


def test_a_population_has_no_partitions(folder: Path) -> None:
    """Its jobs have numbers as those of the log have, but are others."""
    plan = (folder / "plan.toml").read_text().replace("half = { hosts = 32 }", "").replace("fcfs = {}", "")
    (folder / "plan.toml").write_text(
        plan + '[users]\ncrowd = { name = "resample", options = { weeks = 1 } }\n'
    )
    campaign = conducted(folder)
    with pytest.raises(InputError, match="its jobs are not those of the log, so their account is unknown"):
        campaign.aggregated(["scheduler", "account"])
