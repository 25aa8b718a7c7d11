"""Charts as SVG inside a page: they need no script, follow the page's colours, and print well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

LEFT: Final = 54
RIGHT: Final = 22
TOP: Final = 12
BOTTOM: Final = 40

#: Marks of a logarithmic axis of times, in seconds.
TIMES: Final = {
    1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 21600: "6 h", 86400: "1 d",
    604800: "1 w", 2592000: "30 d", 31536000: "1 y",
}  # fmt: skip

Point = tuple[float, float]


@dataclass(frozen=True)
class Scale:
    """Where values lie along an axis, and which of them are marked."""

    low: float
    high: float
    marks: Sequence[tuple[float, str]]
    logarithmic: bool = False
    label: str = ""

    def place(self, value: float) -> float:
        """From 0 at the low end to 1 at the high end."""
        if self.logarithmic:
            value = max(value, self.low)
            return (log10(value) - log10(self.low)) / ((log10(self.high) - log10(self.low)) or 1)
        return (value - self.low) / ((self.high - self.low) or 1)


def linear(low: float, high: float, label: str = "", percent: bool = False, count: int = 5) -> Scale:
    """A scale with round numbers on it."""
    high = high if high > low else low + 1
    raw = (high - low) / count
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    marks = [(number * step, _mark(number * step, percent)) for number in range(first, last + 1)]
    return Scale(low, high, marks, label=label)


def logarithmic(low: float, high: float, label: str = "") -> Scale:
    """A scale with powers of ten on it."""
    low, high = max(low, 1e-12), max(high, low * 10, 1e-11)
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    stride = max(1, len(powers) // 6)
    marks = [(10.0**power, _mark(10.0**power, False)) for power in powers if power % stride == 0]
    return Scale(low, high, [mark for mark in marks if low * 0.999 <= mark[0] <= high * 1.001], True, label)


def times(low: float, high: float, label: str = "") -> Scale:
    """A logarithmic scale of times, in the units that people use."""
    low, high = max(low, 1.0), max(high, 10.0)
    return Scale(low, high, [(at, text) for at, text in TIMES.items() if low <= at <= high], True, label)


def _mark(value: float, percent: bool) -> str:
    if percent:
        return f"{value:.0%}"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if abs(value) >= 1e4 else f"{value:.10g}"


class Chart:
    """A frame with two axes, and what is drawn into it."""

    def __init__(self, across: Scale, up: Scale, width: int = 560, height: int = 270) -> None:
        self.across, self.up = across, up
        self.width, self.height = width, height
        self._parts: list[str] = []

    def x(self, value: float) -> float:
        """Where a value lies from the left."""
        return LEFT + self.across.place(value) * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Where a value lies from the top."""
        return TOP + (1 - self.up.place(value)) * (self.height - TOP - BOTTOM)

    def line(self, points: Sequence[Point], kind: str, tip: str = "") -> None:
        """A line through points."""
        path = "M" + "L".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self._parts.append(f'<path class="line {kind}" d="{path}"{_tip(tip)}/>')

    def steps(self, points: Sequence[Point], kind: str) -> None:
        """A line that goes across before it goes up, as a cumulative distribution does."""
        corners: list[Point] = []
        for before, after in pairwise(points):
            corners += [before, (after[0], before[1])]
        self.line([*corners, points[-1]], kind)

    def area(self, points: Sequence[Point], kind: str) -> None:
        """What lies below a line."""
        base = self.y(self.up.low)
        path = "".join(f"L{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self._parts.append(
            f'<path class="area {kind}" d="M{self.x(points[0][0]):.1f},{base:.1f}{path}'
            f'L{self.x(points[-1][0]):.1f},{base:.1f}Z"/>'
        )

    def bar(self, left: float, right: float, low: float, high: float, kind: str, tip: str = "") -> None:
        """A bar from left to right and from low to high, with a small gap to the next one."""
        x = self.x(left)
        width = self.x(right) - x
        gap = min(1.5, width * 0.12)
        top, bottom = self.y(high), self.y(low)
        place = f'x="{x + gap / 2:.2f}" y="{top:.2f}" width="{max(width - gap, 0.4):.2f}"'
        tall = max(bottom - top, 0)
        self._parts.append(f'<rect class="bar {kind}" {place} height="{tall:.2f}"{_tip(tip)}/>')

    def dot(self, x: float, y: float, kind: str, tip: str = "") -> None:
        """A dot."""
        self._parts.append(
            f'<circle class="dot {kind}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="4"{_tip(tip)}/>'
        )

    def rule(self, y: float, text: str) -> None:
        """A thin line across, with a few words on it."""
        at = self.y(y)
        self._parts.append(
            f'<line class="rule" x1="{LEFT}" x2="{self.width - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
            + _text(self.width - RIGHT - 2, at - 4, "end", text, "remark")
        )

    def __str__(self) -> str:
        return (
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img">{self._frame()}'
            f"<g>{''.join(self._parts)}</g></svg>"
        )

    def _frame(self) -> str:
        bottom, right = self.height - BOTTOM, self.width - RIGHT
        parts = []
        for at, text in self.up.marks:
            y = self.y(at)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_text(LEFT - 6, y + 4, "end", text))
        for at, text in self.across.marks:
            x = self.x(at)
            parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
            parts.append(_text(x, bottom + 17, "middle", text))
        parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
        parts.append(_text((LEFT + right) / 2, self.height - 6, "middle", self.across.label))
        half = (TOP + bottom) / 2
        turned = f'<g transform="rotate(-90 12 {half})">{_text(12, half, "middle", self.up.label)}</g>'
        return "".join([*parts, turned if self.up.label else ""])


def _text(x: float, y: float, anchor: str, text: str, kind: str = "mark") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _tip(text: str) -> str:
    return f' data-tip="{escape(text)}"' if text else ""
