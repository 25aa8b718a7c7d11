"""The figures of a campaign for a paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from batsched_py.analysis.runs import Estimate, Paired
from batsched_py.analysis.runs.comparisons import Comparison, findings
from batsched_py.campaign.store import Campaign
from batsched_py.cli.main import batsched_py

pytest.importorskip("matplotlib")

PLAN = """
baseline = "fcfs"
repetitions = 3
metrics = ["mean_waiting_time", "utilization"]
[logs]
sample = {{ file = "{log}", changes = ["first jobs=300"] }}
[platforms]
full = {{ hosts = 64 }}
half = {{ hosts = 32 }}
[schedulers]
fcfs = {{}}
random = {{}}
"""


@pytest.fixture(scope="module")
def campaign(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a campaign has been run: its results."""
    place = tmp_path_factory.mktemp("figures")
    (place / "plan.toml").write_text(PLAN.format(log=root / "workloads" / "sample.swf"))
    arguments = ["campaign", "run", str(place / "plan.toml"), "-d", str(place / "out"), "-j", "1"]
    result = CliRunner().invoke(batsched_py, arguments)
    assert result.exit_code == 0, result.output
    return place / "out"


def test_there_is_a_figure_for_each_metric_and_the_same_bytes_again(campaign: Path, tmp_path: Path) -> None:
    written = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        result = CliRunner().invoke(
            batsched_py, ["campaign", "figures", str(campaign), "--output", str(folder)]
        )
        assert result.exit_code == 0, result.output
        written.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert written[0] == written[1]
    assert sorted(written[0]) == ["figures.tex", "mean_waiting_time.pdf", "utilization.pdf"]
    assert written[0]["utilization.pdf"].startswith(b"%PDF")


def test_captions_say_over_how_many_what_interval_and_what_correction(campaign: Path, tmp_path: Path) -> None:
    from batsched_py.analysis.plots.means import MeanFigures

    results = Campaign.open(campaign).aggregated()
    caption = MeanFigures(results).caption("mean_waiting_time")
    assert caption.startswith("Mean waiting time (")
    counts = sorted({measured["mean_waiting_time"].units for _, measured in results.rows})
    assert f"n = {counts[0]} to {counts[-1]} seeds" in caption or f"n = {counts[-1]} seeds" in caption
    assert "95% confidence intervals (Student's t" in caption
    if results.nb_tests:
        assert f"Holm's method over {results.nb_tests} tests" in caption


def test_a_scheduler_has_the_same_colour_in_all_figures(campaign: Path) -> None:
    from batsched_py.analysis.plots.means import MeanFigures

    figures = MeanFigures(Campaign.open(campaign).aggregated())
    seen: dict[str, set[str]] = {}
    for metric in ("mean_waiting_time", "utilization"):
        sheet = figures.draw(metric)
        names = [label.get_text() for label in sheet.axes[0].get_yticklabels()]
        for panel in sheet.axes:
            for line in (each for each in panel.lines if each.get_marker() != "x"):
                seen.setdefault(names[int(line.get_ydata()[0])], set()).add(str(line.get_color()))
    assert {name: len(colours) for name, colours in seen.items()} == {"fcfs": 1, "random": 1}
    assert len(set.union(*seen.values())) == 2


def test_a_page_opens_with_what_it_found(campaign: Path, tmp_path: Path) -> None:
    """In the words of its table: what differs, by how much, and what does not."""
    page = tmp_path / "page.html"
    result = CliRunner().invoke(batsched_py, ["campaign", "report", str(campaign), "--output", str(page)])
    assert result.exit_code == 0, result.output
    text = page.read_text()
    assert text.index("What it found") < text.index("<h2>Results")


def test_findings_name_the_surest_difference_first_and_what_does_not_differ() -> None:
    def compared(worse: str, mean: float, p_value: float) -> Comparison:
        estimate = Estimate(mean, mean - 1, mean + 1)
        paired = Paired(estimate, p_value, 0.06, 5, -2.0)
        return Comparison({"log": "kth"}, "makespan", "s", "easy", worse, paired, p_value=p_value)

    found = [compared("fcfs", -9.0, 0.01), compared("ljf", -20.0, 0.001), compared("sjf", -0.5, 0.7)]
    assert list(findings(found, ["makespan"])) == [
        "makespan differs in 2 of 3 comparisons: easy is better than ljf by 20 ± 1 s (kth); easy is better "
        "than fcfs by 9 ± 1 s (kth).",
        "makespan: no difference is shown between easy and sjf (kth).",
    ]
    assert "means, which chance may have ordered" in next(findings([], ["makespan"]))
