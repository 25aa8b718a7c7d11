"""The power that hosts draw, as the properties of a platform tell it to both sides."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

#: Watts of a power state: while nothing runs, at a load of almost nothing, and while all cores are busy.
Watts = tuple[float, float, float]


def read_watts(properties: Mapping[str, str]) -> list[Watts] | None:
    """The watts of each power state of a host; nothing if its properties do not tell.

    >>> read_watts({"wattage_per_state": "90:200, 80:92:130"})
    [(90.0, 90.0, 200.0), (80.0, 92.0, 130.0)]
    """
    name = "wattage_per_state" if "wattage_per_state" in properties else "watt_per_state"
    text = properties.get(name)
    return None if text is None else [_state(name, part) for part in text.split(",")]


def _state(name: str, text: str) -> Watts:
    match [read_number(name, part) for part in text.split(":")]:
        case [idle, full]:
            return idle, idle, full
        case [idle, epsilon, full]:
            return idle, epsilon, full
        case _:
            raise ValueError(f"{name} has {text.strip()!r} where it needs IDLE:FULL or IDLE:EPSILON:FULL")


def read_number(name: str, text: str) -> float:
    """A power in watts, as a property gives it."""
    try:
        watts = float(text)
    except ValueError:
        watts = -1.0
    if watts < 0 or not isfinite(watts):
        raise ValueError(f"{name} has {text.strip()!r} where it needs a power in watts")
    return watts
