"""The page that ``batsched-py compare --output`` writes: a log beside logs of models."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.image import imread

from batsched_py.analysis.likeness_page import all_figures
from batsched_py.analysis.pages import Bar
from batsched_py.cli.main import batsched_py
from batsched_py.workload.description.jobs import distributions, jobs_that_ran
from batsched_py.workload.description.over_time import burstiness
from batsched_py.workload.sources import read_log
from tests.browser import headless
from tests.logs import log_of
from tests.processes import PATIENCE

FIGURES = [
    "shapes_0", "shapes_1", "shapes_2", "gaps", "durations", "bag_sizes", "bag_run_times",
    "entropies", "run_times", "sizes",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about the sample and two models, as the command writes it."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    sample = root / "workloads" / "sample.swf"
    words = ["compare", str(sample), "slots", "naive", "--seeds", "1", "--output", str(path)]
    result = CliRunner().invoke(batsched_py, words)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(path)
    return path


def test_it_has_every_check_and_every_figure_and_needs_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text()
    sections = ["Checks", "Sizes and run times", "Bags of tasks", "Burstiness", "Distributions"]
    assert re.findall(r"<h2>(.*?)</h2>", text) == sections
    assert len(re.findall(r"[✓✗]", text)) == 2 * 23
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text)
    assert found is not None
    assert list(json.loads(found[1])) == re.findall(r'data-figure="(\w+)"', text) == FIGURES
    assert not re.search(r"(?:src|href)=\"(?!data:)|https?://|@import|url\(", text)


@pytest.mark.parametrize("name", ["sample", "one job", "no bags", "of 0 s"])
def test_every_mark_lies_between_the_ends_of_the_axes(root: Path, name: str) -> None:
    logs = {
        "sample": read_log(root / "workloads" / "sample.swf"),
        "one job": log_of(submit=[0]),
        "no bags": log_of(submit=np.arange(5) * 86400),
        "of 0 s": log_of(run_time=[0, 0, 5]),
    }
    for title, figure in all_figures({"log": logs[name], "model": logs["sample"]}).items():
        assert figure.x.ends is not None and figure.y.ends is not None
        for layer in figure.layers:
            for mark in layer.marks:
                assert not isinstance(mark, Bar)
                assert figure.x.ends[0] <= mark.x <= figure.x.ends[1], title
                assert figure.y.ends[0] <= mark.y <= figure.y.ends[1], title


def test_burstiness_and_distributions_are_those_of_the_jobs(root: Path) -> None:
    log = read_log(root / "workloads" / "sample.swf")
    poisson = log_of(submit=np.random.default_rng(1).random(20_000).cumsum())
    drawn = all_figures({"log": log, "poisson": poisson})
    lines = {layer.name: layer.marks for layer in drawn["entropies"].layers if layer.name}
    ran = jobs_that_ran(log)
    known = distributions(ran)
    assert [mark.y for mark in lines["log"]] == list(burstiness(ran).temporal.values())
    assert lines["poisson"][0].y > 0.99 > lines["log"][0].y
    shown = next(layer.marks for layer in drawn["run_times"].layers if layer.name == "log")
    assert np.interp(50, [mark.y for mark in shown], [mark.x for mark in shown]) == pytest.approx(
        known.run_time.median, rel=0.02
    )
    shown = next(layer.marks for layer in drawn["sizes"].layers if layer.name == "log")
    assert shown[-1].x == known.size.percentiles[-1]


@pytest.mark.slow
def test_a_browser_draws_the_page_and_tells_what_the_pointer_is_on(page: Path, tmp_path: Path) -> None:
    with headless(tmp_path / "profile") as browser:
        from selenium.webdriver import ActionChains

        browser.get(page.as_uri())
        deadline = time.monotonic() + PATIENCE
        canvases = browser.find_elements("css selector", "figure canvas")
        assert len(canvases) == len(FIGURES)
        for canvas in canvases:
            while np.std(imread(io.BytesIO(canvas.screenshot_as_png))[:, :, :3]) < 0.03:
                assert time.monotonic() < deadline
        captions = browser.find_elements("css selector", "[data-figure] figcaption")
        assert [each.text.splitlines() for each in captions] == [
            ["log"], ["slots"], ["naive"],
            ["Times between similar jobs", "log", "slots"],  # a naive log has no similar jobs
            ["Submitting a bag", "log", "slots"],
            ["Jobs of a bag", "log", "slots", "naive"],
            ["Mean run time of a bag", "log", "slots"],
            ["Temporal burstiness", "log", "slots", "naive"],
            ["Run time", "log", "slots", "naive"],
            ["Processors", "log", "slots", "naive"],
        ]  # fmt: skip
        (figure,) = browser.find_elements("css selector", "[data-figure=gaps]")
        ActionChains(browser).move_to_element(figure.find_element("css selector", "canvas")).perform()
        while not (tip := figure.find_element("css selector", ".tip").text):
            assert time.monotonic() < deadline
        assert re.search(r"\d+ %", tip) and "at most" in tip
        assert browser.get_log("browser") == []
