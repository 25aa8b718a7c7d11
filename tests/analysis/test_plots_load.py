"""A metric against the load."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from batsched_py.analysis.plots.figures import draw
from batsched_py.analysis.plots.kinds.campaigns import estimates_by_load
from batsched_py.analysis.plots.style import Look

TABLE = pd.DataFrame(
    [
        (log, load, part, scheduler, base * float(load) * int(part))
        for log, base in (("kth", 10.0), ("ctc", 100.0))
        for load in ("0.8", "1", "1.2")
        for part in ("1", "2", "3")
        for scheduler, base in (("fcfs", 7 * base), ("easy", base))
    ],
    columns=["log", "load", "part", "scheduler", "mean_bounded_slowdown"],
)


@pytest.mark.parametrize("log", ["kth", "ctc"])
@pytest.mark.parametrize("scheduler", ["easy", "fcfs"])
def test_a_line_goes_through_the_means_over_parts(log: str, scheduler: str) -> None:
    rows = TABLE[(TABLE.log == log) & (TABLE.scheduler == scheduler)]
    estimates = estimates_by_load(rows, "mean_bounded_slowdown")
    wanted = rows.astype({"load": float}).groupby("load").mean_bounded_slowdown
    assert estimates["mean"].to_dict() == pytest.approx(wanted.mean().to_dict())
    above = wanted.mean() - 1
    widths = above * np.exp(wanted.sem() * 4.302652729911275 / above) - above
    assert estimates["above"].to_dict() == pytest.approx(widths.to_dict()), "no slowdown is below 1"
    assert (estimates["below"] < above).all()


def test_the_scale_is_logarithmic_where_means_are_far_apart() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    sheet = draw("load", TABLE)
    assert sheet.axes[0].get_yscale() == "log", "fcfs of ctc is seventy times as slow as easy of kth"
    assert draw("load", TABLE[TABLE.log == "kth"]).axes[0].get_yscale() == "linear"


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("mean_bounded_slowdown", "mean bounded slowdown, 95% confidence"),
        ("area_weighted_turnaround_time", "area weighted turnaround time (minutes), 95%\nconfidence"),
    ],
)
@pytest.mark.parametrize("width", ["page", "column"])
def test_its_label_is_in_the_figure_and_crosses_in_its_legend(metric: str, label: str, width: str) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    table = TABLE[TABLE.log == "kth"].rename(columns={"mean_bounded_slowdown": metric})
    sheet = draw("load", table.assign(unstable=table.load == "1.2"), look=Look(width=width), metric=metric)
    sheet.draw_without_rendering()
    (shown,) = (text for text in sheet.texts if text.get_text() == label)
    box = shown.get_window_extent()
    assert sheet.bbox.y0 <= box.y0 < box.y1 <= sheet.bbox.y1
    assert sheet.bbox.x0 <= box.x0
    assert [text.get_text() for text in sheet.legends[0].get_texts()] == ["no steady state", "fcfs", "easy"]


def test_each_load_has_a_tick_and_nothing_else_has() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    for panel in draw("load", TABLE).axes:
        assert panel.get_xticks().tolist() == [0.8, 1.0, 1.2]
