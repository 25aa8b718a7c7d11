"""What is said of the use of a cluster, and how it is drawn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from batsched_py.slurm.usage_tables import _capacities, notes


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (True, "The machine has 64 cores, as its slurm.conf says."),
        (False, "The machine is taken to have 64 cores, the most in use at once: --conf tells."),
    ],
)
def test_it_is_said_where_the_number_of_cores_comes_from(told: bool, text: str) -> None:
    capacity = SimpleNamespace(down=None, reserved=0.1)
    found: Any = SimpleNamespace(
        cores=64,
        cores_told=told,
        begin="1 May",
        end="1 June",
        zone="UTC",
        remarks=["more"],
        capacity=capacity,
    )
    first, *_, last = notes(found)
    assert first == (
        f"From 1 May to 1 June (UTC). {text} Without --events, such hours are among the idle ones."
    )
    assert last == "more"


def test_idle_hours_are_grey() -> None:
    shares = {"used": 0.4, "down": None, "reserved": 0.0, "idle_while_jobs_waited": 0.1, "idle": 0.5}
    found: Any = SimpleNamespace(month_capacity={"May": SimpleNamespace(**shares)})
    figure = _capacities(found)
    assert [layer.colour for layer in figure.layers] == [0, 3, None]
    assert [layer.name for layer in figure.layers] == [
        "used",
        "idle while jobs waited",
        "idle, no job waited",
    ]
