"""The page about a log."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from batsched_py.analysis.log_page import write_log_page
from batsched_py.analysis.log_page.svg import linear, logarithmic, times
from batsched_py.errors import InputError
from batsched_py.workload.description import describe
from batsched_py.workload.sources import read_log
from batsched_py.workload.swf.log import SwfLog
from tests.logs import log_of


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


def page_of(log: SwfLog, folder: Path) -> str:
    write_log_page(folder / "page.html", describe(log))
    return (folder / "page.html").read_text()


def test_it_needs_nothing_from_elsewhere(root: Path, tmp_path: Path) -> None:
    page = page_of(read_log(root / "workloads" / "sample.swf"), tmp_path)
    assert not re.search(r"(?:src|href)=\"(?!data:)|https?://|@import|url\(", page)
    assert "default-src 'none'" in page


def test_what_is_opened_is_closed(root: Path, tmp_path: Path) -> None:
    parser = Balanced()
    parser.feed(page_of(read_log(root / "workloads" / "sample.swf"), tmp_path))
    assert parser.open == []


def test_it_shows_all_parts(root: Path, tmp_path: Path) -> None:
    page = page_of(read_log(root / "workloads" / "sample.swf"), tmp_path)
    titles = re.findall(r"<h2>(.*?)</h2>", page)
    assert titles == [
        "Week by week", "Cycles", "Distributions", "Bags of tasks", "Burstiness and memory",
        "Run time and size", "Users", "Records", "Header of the log",
    ]  # fmt: skip
    assert page.count("<svg") == 13
    assert "nan" not in page.lower().replace("nano", "")


@pytest.mark.parametrize(
    "log",
    [
        log_of(submit=[0]),
        log_of(submit=[0, 1], requested_processors=[1, 4096], run_time=[1, 10**7]),
        log_of(submit=np.arange(300) * 86400, status=-1),
    ],
    ids=["one job", "two jobs", "little known"],
)
def test_a_log_that_tells_little_has_a_page_too(log: SwfLog, tmp_path: Path) -> None:
    parser = Balanced()
    parser.feed(page_of(log, tmp_path))
    assert parser.open == []


def test_what_a_header_says_is_text(tmp_path: Path) -> None:
    page = page_of(log_of({"Computer": "<script>alert(1)</script>"}, submit=[0, 1]), tmp_path)
    assert "<script>alert" not in page


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_log_page(tmp_path / "file" / "page.html", describe(log_of(submit=[0, 1])))


def test_marks_are_round_and_inside() -> None:
    assert [text for _, text in linear(0, 1, percent=True).marks] == [
        "0%",
        "20%",
        "40%",
        "60%",
        "80%",
        "100%",
    ]
    assert [text for _, text in linear(0, 4700).marks] == ["0", "1000", "2000", "3000", "4000"]
    assert [text for _, text in logarithmic(0.5, 2e5).marks] == ["1", "10", "100", "1000", "10 k", "100 k"]
    assert [text for _, text in times(1, 7200).marks] == ["1 s", "10 s", "1 min", "10 min", "1 h"]


def test_a_place_on_a_logarithmic_scale() -> None:
    scale = logarithmic(1, 100)
    assert [scale.place(value) for value in (1, 10, 100, 0)] == [0, 0.5, 1, 0]
