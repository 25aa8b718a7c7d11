"""The page that shows a calibration."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

from batsched_py.analysis.calibration.calibration import Calibration
from batsched_py.analysis.calibration.figures import all_figures
from batsched_py.analysis.calibration.waits import Waits
from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.parts import figure, section, table, tiles, time_text

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
