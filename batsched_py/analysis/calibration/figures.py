"""The figures of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from batsched_py.analysis.calibration.calibration import Calibration
from batsched_py.analysis.pages.figure import Axis, Bar, Figure, Layer, Point
from batsched_py.analysis.pages.parts import time_text

#: Ticks of an axis of waits, in minutes.
_MINUTES: Final = (
    (0.5, "< 1 min"), (3, "3 min"), (10, "10 min"), (60, "1 h"), (360, "6 h"), (1440, "1 d"), (10080, "1 w"),
    (43200, "30 d"),
)  # fmt: skip


def all_figures(found: Calibration) -> dict[str, Figure | None]:
    """The figures by their names; None where nothing can be compared."""
    if found.waits is None:
        return dict.fromkeys(("distribution", "map", "months"))
    return {
        "distribution": distribution(found.percentiles),
        "map": map_of_waits(found.cells),
        "months": _months(found),
    }


def distribution(percentiles: Sequence[tuple[float, float]]) -> Figure:
    """The share of jobs that wait no longer than so long."""
    highest = max(max(percentiles[-1]) / 60, 1.0)
    layers = []
    for place, name in enumerate(("recorded", "simulated")):
        points = [
            Point(
                max(waits[place] / 60, 0.5),
                percent,
                f"{percent} %",
                f"{name}: at most {time_text(waits[place])}",
            )
            for percent, waits in enumerate(percentiles)
        ]
        layers.append(Layer("steps", points, place, name))
    return Figure(
        Axis("wait", scale="log", ends=(0.5, highest), ticks=_MINUTES),
        Axis("share of jobs", "%", ends=(0, 100)),
        layers,
    )


def map_of_waits(cells: Sequence[tuple[int, int, int]]) -> Figure:
    """A cell for each pair of powers of two, the darker the more jobs it has."""
    total, most = sum(count for *_, count in cells), max(count for *_, count in cells)
    bars = [
        Bar(
            2.0**one,
            2.0 ** (one + 1),
            2.0**two,
            2.0 ** (two + 1),
            f"{count:,} jobs ({count / total:.1%})",
            f"recorded from {_from(one)}, simulated from {_from(two)}",
            0.06 + 0.94 * (count / most) ** 0.5,
        )
        for one, two, count in cells
    ]
    highest = 2.0 ** (1 + max(max(one, two) for one, two, _ in cells))
    diagonal = [Point(0.5, 0.5), Point(highest, highest)]
    return Figure(
        Axis("recorded wait", scale="log", ends=(0.5, highest), ticks=_MINUTES),
        Axis("simulated wait", scale="log", ends=(0.5, highest), ticks=_MINUTES),
        [Layer("bars", bars), Layer("line", diagonal, None)],
    )


def _from(power: int) -> str:
    return "0 s" if power < 0 else time_text(60 * 2.0**power)


def _months(found: Calibration) -> Figure | None:
    """The mean waits of each month, if there are several."""
    months = found.groups["month"]
    if len(months) < 2:
        return None
    layers = []
    for place, (name, field) in enumerate((("recorded", "mean_recorded"), ("simulated", "mean_simulated"))):
        points = [
            Point(number, getattr(waits, field), month, f"{name}: {time_text(getattr(waits, field))}")
            for number, (month, waits) in enumerate(months.items())
        ]
        layers += [Layer("line", points, place, name), Layer("dots", points, place)]
    highest = max(max(waits.mean_recorded, waits.mean_simulated) for waits in months.values())
    ticks = [(number, month) for number, month in enumerate(months)]
    return Figure(
        Axis("month", ends=(-0.5, len(ticks) - 0.5), ticks=ticks),
        Axis("mean wait", "s", ends=(0, max(highest, 1.0))),
        layers,
    )
