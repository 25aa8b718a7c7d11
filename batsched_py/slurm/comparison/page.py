"""The page that shows a comparison."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

from batsched_py.analysis.calibration.figures import distribution, map_of_waits
from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.parts import figure, section, table, tiles, time_text
from batsched_py.slurm.comparison.comparison import Compared, Comparison
from batsched_py.slurm.comparison.figures import usage_figure

HEADS: Final = (
    "", "jobs", "mean wait, recorded", "simulated", "deviation", "median wait, recorded", "simulated",
    "starts apart, mean", "median", "at most",
)  # fmt: skip


def write_comparison_page(path: str | Path, found: Comparison) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"{found.simulated}, simulated, beside {found.recorded}, recorded"
    header = f'<h1>{html.escape(title)}</h1>\n<div id="tiles">{_tiles(found)}</div>'
    sections = [
        section(
            "Waits",
            "If both waits were the same, all jobs would lie on the diagonal of the map. Drag across a "
            "figure to zoom in, double-click to see all of it again, hover for values.",
            figure("Share of jobs that wait no longer", "distribution"),
            figure("Jobs by both waits", "map"),
        ),
        section("Utilization", "", figure("What jobs have, over time", "utilization"), layout="wide"),
        *(
            section(
                f"By {grouping}",
                "Jobs are short up to an hour and narrow up to eight hosts." if grouping == "class" else "",
                table("", HEADS, [[html.escape(name), *cells(each)] for name, each in groups.items()]),
                layout="wide",
            )
            for grouping, groups in found.groups.items()
            if groups
        ),
    ]
    used = found.utilization
    drawn = {
        "distribution": distribution(found.percentiles),
        "map": map_of_waits(found.cells),
        "utilization": usage_figure(used.edges, {"recorded": used.recorded, "simulated": used.simulated}),
    }
    write_figures_page(path, title, header, "".join(sections), drawn)


def cells(each: Compared) -> list[str]:
    """The cells of a row behind its name."""
    waits = each.waits
    return [
        f"{waits.jobs:,}",
        time_text(waits.mean_recorded),
        time_text(waits.mean_simulated),
        "-" if each.deviation is None else f"{each.deviation:+.1%}",
        time_text(waits.median_recorded),
        time_text(waits.median_simulated),
        time_text(each.start_difference),
        time_text(each.median_start_difference),
        time_text(each.largest_start_difference),
    ]


def _tiles(found: Comparison) -> str:
    shown = cells(found.all)
    return tiles(
        [
            ("jobs compared", shown[0], f"{found.only_recorded} and {found.only_simulated} ran in one only"),
            ("mean wait, simulated", shown[2], f"{shown[1]} recorded"),
            ("deviation of the mean wait", shown[3], ""),
            ("median wait, simulated", shown[5], f"{shown[4]} recorded"),
            ("starts apart in the mean", shown[6], f"median {shown[7]}, at most {shown[8]}"),
        ]
    )
