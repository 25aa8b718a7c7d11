"""A figure that a page draws from its data: layers of marks over two axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple


@dataclass(frozen=True)
class Axis:
    """What lies along a side of a figure."""

    label: str
    unit: str = ""
    """``s`` and ``/s`` are shown in the unit of time that fits, ``week`` as its days, others as they are."""
    scale: Literal["linear", "log", "symlog"] = "linear"
    ends: tuple[float, float] | None = None
    """Without them, the axis covers what is drawn."""
    ticks: Sequence[tuple[float, str]] | None = None
    """The page shows as many of them as there is room for; without any it chooses round numbers."""
    names: Sequence[str] | None = None
    """The values of an axis of names, which are at 0, 1, 2 and so on."""


class Point(NamedTuple):
    """A point of a line, or a dot."""

    x: float
    y: float
    heading: str = ""
    text: str = ""
    """What it tells under its heading when the pointer is near; nothing without a heading."""


class Bar(NamedTuple):
    """A rectangle."""

    left: float
    right: float
    base: float
    top: float
    heading: str
    text: str
    """What it tells under its heading when the pointer is on it."""
    shade: float = 1.0
    """How full its colour is, from 0 to 1."""


@dataclass(frozen=True)
class Layer:
    """Marks of one kind and one colour."""

    kind: Literal["line", "steps", "area", "dots", "bars", "rule"]
    """``steps`` rise from 0, an ``area`` lies below a line, a ``rule`` is a horizontal line at one point."""
    marks: Sequence[Point] | Sequence[Bar]
    colour: int | None = 0
    """A place in the palette; None is grey."""
    name: str = ""
    """Its name in the legend, or what is written on a rule."""


@dataclass(frozen=True)
class Figure:
    """Layers over two axes, the last one on top."""

    x: Axis
    y: Axis
    layers: Sequence[Layer]
