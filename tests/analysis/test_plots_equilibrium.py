"""Where the load that users make and the performance that it leaves them match."""

from __future__ import annotations

import pandas as pd
import pytest

from batsched_py.analysis.plots.figures import draw
from batsched_py.analysis.plots.kinds.equilibrium import crossing
from batsched_py.errors import InputError

pytest.importorskip("matplotlib", reason="figures need matplotlib")

HOUR = 3600.0


def row(users: str, platform: str, load: float, throughput: float, hours: float) -> dict[str, object]:
    return {
        "log": "l", "load": load, "platform": platform, "scheduler": "easy", "users": users,
        "throughput": throughput, "mean_turnaround_time": hours * HOUR,
    }  # fmt: skip


#: The response grows from 4 to 8 h as 40 jobs a day become 60; users submit 60 at 4 h and 40 at 8 h.
TABLE = pd.DataFrame(
    [
        row("rigid", "small", 0.8, 40, 4),
        row("rigid", "small", 1.2, 60, 8),
        row("rigid", "large", 1.0, 50, 1),
        row("reacting", "small", 1.0, 40, 8),
        row("reacting", "large", 1.0, 60, 4),
        row("reacting", "large", 1.2, 90, 1),
    ]
)


def test_both_lines_cross_where_load_and_response_match() -> None:
    panel = draw("equilibrium", TABLE).axes[0]
    assert panel.get_title(loc="left") == "they match at 50 jobs a day; simulated: 40"
    machine, users, together, match = panel.get_lines()
    assert machine.get_xydata().tolist() == [[40, 4], [60, 8]]
    assert users.get_xydata().tolist() == [[40, 8], [60, 4]]
    assert together.get_xydata().tolist() == [[40, 8]]
    assert match.get_xydata().tolist() == [[50, 6]]


def test_lines_that_do_not_cross_are_said_to() -> None:
    apart = TABLE.assign(
        mean_turnaround_time=TABLE["mean_turnaround_time"].where(TABLE["users"] == "rigid", 100 * HOUR)
    )
    assert draw("equilibrium", apart).axes[0].get_title(loc="left").startswith("the lines do not cross")
    assert crossing([(0, 0), (1, 1)], [(0, 1), (1, 2)]) is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"users": "rigid"}, "needs users 'rigid'"),
        ({"log": list("abcdef")}, "shows one log, and the campaign has 6"),
        ({"scheduler": ["easy", "fcfs"] * 3}, "one scheduler or other setting, and the campaign has 2"),
        ({"users": ["rigid"] * 3 + ["a", "b", "a"]}, "one kind of users who react, and the campaign has 2"),
    ],
)
def test_what_cannot_be_shown_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        draw("equilibrium", TABLE.assign(**change))
