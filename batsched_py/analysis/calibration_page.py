"""The figures of the page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from batsched_py.analysis.calibration import Calibration, Waits
from batsched_py.analysis.pages import (
    Axis,
    Bar,
    Figure,
    Layer,
    Point,
    figure,
    section,
    table,
    tiles,
    time_text,
    write_figures_page,
)

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


_HEADS: Final = (
    "", "jobs", "mean, recorded", "mean, simulated", "median, recorded", "median, simulated",
    "rank correlation", "near",
)  # fmt: skip


def write_calibration_page(path: str | Path, found: Calibration) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"{found.log}, simulated and recorded"
    header = f"""<h1>{html.escape(title)}</h1>
<p class="note">Replayed as it was under {html.escape(found.scheduler)} on {found.hosts:,} hosts.</p>
<div id="tiles">{_tiles(found)}</div>"""
    sections = "\n".join([_verdict(found), _causes(found), _waits(found), *_groups(found)])
    write_figures_page(path, title, header, sections, all_figures(found))


def _tiles(found: Calibration) -> str:
    waits = found.waits
    shown: list[tuple[str, str, str]] = [
        ("trust", found.verdict.trust, "how far a simulation may be trusted")
    ]
    if waits is not None:
        shown += [
            ("jobs compared", f"{waits.jobs:,}", f"of {found.jobs:,}"),
            (
                "mean wait, simulated",
                time_text(waits.mean_simulated),
                f"{time_text(waits.mean_recorded)} recorded",
            ),
            (
                "median wait, simulated",
                time_text(waits.median_simulated),
                f"{time_text(waits.median_recorded)} recorded",
            ),
            ("rank correlation", _number(waits.rank_correlation), "1 is the same order of jobs"),
            ("near", f"{waits.near:.0%}", "within ten minutes or a factor of two"),
            (
                "utilization, simulated",
                _share(found.utilization_simulated),
                f"{_share(found.utilization_recorded)} recorded",
            ),
        ]
    return tiles(shown)


def _verdict(found: Calibration) -> str:
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in found.verdict.reasons)
    return section(
        f"Verdict: {found.verdict.trust}", found.verdict.words, f"<ul>{reasons}</ul>", layout="wide"
    )


def _waits(found: Calibration) -> str:
    note = "There is no job whose recorded wait can be compared."
    if found.waits is not None:
        note = (
            f"{found.waits.only_recorded:.1%} of the jobs waited for long in the log and hardly in the "
            f"simulation; {found.waits.only_simulated:.1%} the other way round. If both waits were the same, "
            "all jobs would lie on the diagonal of the map. Drag across a figure to zoom in, double-click to "
            "see all of it again, hover for values."
        )
    return section(
        "Waits",
        note,
        figure("Share of jobs that wait no longer", "distribution"),
        figure("Jobs by both waits", "map"),
    )


def _groups(found: Calibration) -> list[str]:
    return [
        section(
            f"By {grouping}",
            "Jobs are short up to an hour and narrow up to eight hosts." if grouping == "class" else "",
            figure("Mean wait", "months") if grouping == "month" else "",
            table("", _HEADS, [_row(name, waits) for name, waits in groups.items()]),
            layout="wide",
        )
        for grouping, groups in found.groups.items()
        if len(groups) > 1
    ]


def _row(name: str, waits: Waits) -> list[str]:
    times = (waits.mean_recorded, waits.mean_simulated, waits.median_recorded, waits.median_simulated)
    return [
        html.escape(name),
        f"{waits.jobs:,}",
        *map(time_text, times),
        _number(waits.rank_correlation),
        f"{waits.near:.0%}",
    ]


def _causes(found: Calibration) -> str:
    rows = [(html.escape(cause), f"{count:,}") for cause, count in found.causes.items()]
    return section(
        "What may explain differences",
        "What the log does not tell, and what is not simulated. Most logs say nothing of outages, "
        "reservations, dependencies, holds, limits and priorities either.",
        table("", ("jobs that are or were", "jobs"), rows),
        layout="wide",
    )


def _share(value: float | None) -> str:
    return "?" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"
