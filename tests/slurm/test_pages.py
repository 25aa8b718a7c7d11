"""The pages in a real browser: every figure is drawn, and nothing is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import headless
from tests.processes import call_here
from tests.slurm import test_compare, test_forecast, test_usage
from tests.slurm.test_what_if import twin

__all__ = ["twin"]


@pytest.mark.slow
def test_pages_draw_their_figures(tmp_path: Path, twin: Path) -> None:
    test_compare.compared(tmp_path)
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "slurm.conf").write_text(test_forecast.CONF)
    (tmp_path / "live" / "jobs.txt").write_text(test_forecast.QUEUE)
    (tmp_path / "jobs.sacct").write_text(test_usage.LOG)
    change = ["--set", "PartitionName=short PriorityJobFactor=1", "--users", "rigid"]
    for name, arguments in {
        "compare": ["compare", tmp_path / "a.csv", tmp_path / "b.csv"],
        "what-if": ["what-if", twin, *change],
        "usage": ["usage", tmp_path / "jobs.sacct"],
        "forecast": ["forecast", tmp_path / "live" / "slurm.conf", tmp_path / "live" / "jobs.txt"],
    }.items():
        assert call_here(["slurm", *arguments, "--output", tmp_path / f"{name}.html"])[0] == 0
    with headless(tmp_path / "profile") as browser:
        for name, figures in {"compare": 3, "what-if": 1, "forecast": 1, "usage": 2}.items():
            browser.get((tmp_path / f"{name}.html").as_uri())
            assert len(browser.find_elements("css selector", "figure[data-figure] canvas")) == figures
            assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
