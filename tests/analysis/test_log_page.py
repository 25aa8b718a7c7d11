"""The page about a log."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

from batsched_py.analysis.log_page import all_figures, write_log_page
from batsched_py.analysis.pages import Bar, Figure
from batsched_py.errors import InputError
from batsched_py.workload.description import describe
from batsched_py.workload.sources import read_log
from batsched_py.workload.swf.log import SwfLog
from tests.browser import headless
from tests.logs import log_of

LOGS = {
    "one job": log_of(submit=[0]),
    "two jobs": log_of(submit=[0, 1], requested_processors=[1, 4096], run_time=[1, 10**7]),
    "of 0 s": log_of(run_time=[0, 0, 5], requested_processors=[1, 1, 4]),
    "little known": log_of(submit=np.arange(300) * 86400, status=-1),
}


class Balanced(HTMLParser):
    """Checks that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        """Such a tag opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def sample(root: Path) -> SwfLog:
    return read_log(root / "workloads" / "sample.swf")


def page_of(log: SwfLog, folder: Path) -> str:
    write_log_page(folder / "page.html", describe(log))
    return (folder / "page.html").read_text()


def test_it_needs_nothing_from_elsewhere(sample: SwfLog, tmp_path: Path) -> None:
    page = page_of(sample, tmp_path)
    assert not re.search(r"(?:src|href)=\"(?!data:)|https?://|@import|url\(", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("name", ["sample", *LOGS])
def test_what_is_opened_is_closed(name: str, sample: SwfLog, tmp_path: Path) -> None:
    parser = Balanced()
    parser.feed(page_of(LOGS.get(name, sample), tmp_path))
    assert parser.open == []


def test_it_shows_all_parts(sample: SwfLog, tmp_path: Path) -> None:
    page = page_of(sample, tmp_path)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "Week by week", "Cycles", "Distributions", "Bags of tasks", "Burstiness and memory",
        "Run time and size", "Users", "Records", "Header of the log",
    ]  # fmt: skip
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page)
    assert found is not None
    figures = json.loads(found[1])
    assert re.findall(r'data-figure="(\w+)"', page) == list(figures)
    assert len(figures) == 13
    assert None not in figures.values()


def test_what_a_header_says_is_text(tmp_path: Path) -> None:
    page = page_of(log_of({"Computer": "<script>alert(1)</script>"}, submit=[0, 1]), tmp_path)
    assert "<script>alert" not in page


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_log_page(tmp_path / "file" / "page.html", describe(log_of(submit=[0, 1])))


# --- the figures ---------------------------------------------------------------------------------


def drawn(log: SwfLog) -> dict[str, Figure]:
    return {name: figure for name, figure in all_figures(describe(log)).items() if figure is not None}


@pytest.mark.parametrize("name", ["sample", *LOGS])
def test_every_mark_lies_between_the_ends_of_the_axes(name: str, sample: SwfLog) -> None:
    for title, figure in drawn(LOGS.get(name, sample)).items():
        (left, right), (low, high) = (
            axis.ends or (-0.5, len(axis.names or ()) - 0.5) for axis in (figure.x, figure.y)
        )
        assert left < right and low < high, title
        assert figure.x.scale == "linear" or left > 0, title
        assert figure.y.scale == "linear" or low > 0, title
        for layer in figure.layers:
            for mark in layer.marks:
                if isinstance(mark, Bar):
                    assert left <= mark.left < mark.right <= right, title
                    assert low <= mark.base <= mark.top <= high, title
                else:
                    assert layer.kind == "rule" or left <= mark.x <= right, title
                    assert low <= mark.y <= high, title


def test_a_short_log_does_not_tell_about_memory() -> None:
    assert not {"memory", "interarrival"} & drawn(LOGS["one job"]).keys()


def test_the_bars_of_a_week_are_its_jobs(sample: SwfLog) -> None:
    figure = drawn(sample)["weekly_jobs"]
    heights = [0.0] * len(describe(sample).load.weeks)
    for layer in figure.layers:
        for bar in layer.marks:
            assert isinstance(bar, Bar)
            heights[int(bar.left)] += bar.top - bar.base
    assert sum(heights) == len(sample)
    assert figure.y.ends == (0, max(heights))
    assert [layer.name for layer in figure.layers][-1] == "all others"


def test_the_map_of_a_week_has_a_cell_for_each_hour() -> None:
    monday = 345600  # 1970-01-05
    log = log_of({"UnixStartTime": f"{monday}"}, submit=[0, 1800, 25 * 3600])
    (cells,) = drawn(log)["cycle"].layers
    told = {bar.heading: bar.text for bar in cells.marks if isinstance(bar, Bar) and "0 jobs" not in bar.text}
    assert len(cells.marks) == 168
    assert told == {"Mon 0:00": "2 jobs (66.67%)", "Tue 1:00": "1 jobs (33.33%)"}


def test_a_distribution_rises_to_all_jobs(sample: SwfLog) -> None:
    (steps,) = drawn(sample)["size"].layers
    assert [mark[1] for mark in steps.marks] == list(range(101))
    assert [mark[0] for mark in steps.marks] == sorted(mark[0] for mark in steps.marks)
    assert steps.marks[-1][3] == f"at most {max(sample.requested_processors)}"


# --- in a real browser ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(sample: SwfLog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with the page in it."""
    with headless(tmp_path_factory.mktemp("profile")) as chromium:
        folder = tmp_path_factory.mktemp("page")
        page_of(sample, folder)
        chromium.get((folder / "page.html").as_uri())
        painted(chromium)
        yield chromium


def painted(browser: Any) -> None:
    """Wait until the browser has shown the page as it is now."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )


def test_the_browser_draws_every_figure_and_complains_about_nothing(browser: Any) -> None:
    canvases = browser.find_elements("css selector", "figure canvas")
    assert len(canvases) == 13
    for canvas in canvases:
        assert np.std(imread(io.BytesIO(canvas.screenshot_as_png))[:, :, :3]) > 0.03
    assert browser.get_log("browser") == []


def test_the_pointer_is_told_what_it_is_on(browser: Any) -> None:
    from selenium.webdriver import ActionChains

    (figure,) = browser.find_elements("css selector", "[data-figure=cycle]")
    ActionChains(browser).move_to_element(figure.find_element("css selector", "canvas")).perform()
    painted(browser)
    tip = figure.find_element("css selector", ".tip").text
    assert re.fullmatch(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d+:00\n[\d,]+ jobs \([\d.]+%\)", tip)
