"""A metric against the load."""

from __future__ import annotations

import pandas as pd
import pytest

from batsched_py.analysis.plots.figures import draw
from batsched_py.analysis.plots.kinds.load import means_by_load
from batsched_py.errors import InputError

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


def test_a_line_goes_through_the_means_over_parts() -> None:
    means = means_by_load(TABLE, "mean_bounded_slowdown").set_index(["log", "line", "load"])
    wanted = TABLE.astype({"load": float}).groupby(["log", "scheduler", "load"]).mean_bounded_slowdown
    assert means["mean"].to_dict() == pytest.approx(wanted.mean().to_dict())
    widths = wanted.sem() * 4.302652729911275
    assert means["half_width"].to_dict() == pytest.approx(widths.to_dict())


def test_each_log_has_a_panel_and_each_scheduler_a_line() -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    sheet = draw("load", TABLE)
    assert [panel.get_title(loc="left") for panel in sheet.axes] == ["kth", "ctc"]
    assert [len(panel.containers) for panel in sheet.axes] == [2, 2]
    assert sheet.axes[0].get_yscale() == "log", "fcfs of ctc is seventy times as slow as easy of kth"
    assert draw("load", TABLE[TABLE.log == "kth"]).axes[0].get_yscale() == "linear"


def test_what_there_is_not_is_named() -> None:
    with pytest.raises(InputError, match="no run of the campaign has a load"):
        means_by_load(TABLE.drop(columns="load"), "mean_bounded_slowdown")
    with pytest.raises(InputError, match="no run has the metric 'makespan'"):
        means_by_load(TABLE, "makespan")
