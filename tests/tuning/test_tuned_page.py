"""The page of a search: it has all figures, and each of their axes has ends or names to be drawn by."""

from __future__ import annotations

from pathlib import Path

from batsched_py.analysis.runs import Estimate
from batsched_py.tuning.held_out import Compared
from batsched_py.tuning.page import _front, _history, _importance, write_tuned_page
from batsched_py.tuning.tune import Finalist, Point, Tuned

COMPARED = Compared(
    objective="mean_waiting_time", unit="s", today=9.0, found=6.0, nb_parts=3, gain=0.3, low=0.1, high=0.5,
    difference=Estimate(-3.0), p_value=0.01, sign_p_value=0.2, holm_p_value=0.02, search_today=8.0,
    search_found=5.0, search_gain=0.4, is_better=True,
)  # fmt: skip

FOUND = Tuned(
    name="page",
    title="",
    objectives=["mean_waiting_time", "utilization"],
    signs=[1.0, -1.0],
    today=[8.0, 0.5],
    trials=[
        Point(0, "whole", {"a": 1.0}, [5.0, 0.6]),
        Point(1, "whole", {"a": 2.0}, [7.0, None]),
        Point(2, "failed", {"a": 3.0}, []),
    ],
    finalists=[Finalist(trial=0, settings={"a": 1.0}, command="run <it>", compared=[COMPARED], groups=[])],
    importance={"a": 1.0},
    search_parts=[2],
    held_out_parts=[3, 4, 5],
    warnings=["Be careful."],
)


def test_the_page_has_what_was_found(tmp_path: Path) -> None:
    write_tuned_page(tmp_path / "page.html", FOUND)
    page = (tmp_path / "page.html").read_text()
    for text in (
        "Be careful.",
        "run &lt;it&gt;",
        "30.0% [10.0%, 50.0%]",
        "parts 3 to 5",
        'data-figure="front"',
    ):
        assert text in page, text


def test_each_axis_can_be_drawn() -> None:
    for drawn in (_history(FOUND), _front(FOUND), _importance(FOUND)):
        assert drawn is not None
        for axis in (drawn.x, drawn.y):
            assert axis.names is not None or (axis.ends is not None and axis.ends[0] < axis.ends[1])
