"""Putting the page together."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from batsched_py.analysis.likeness_page.figures import all_figures
from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.parts import figure, section, table
from batsched_py.workload.swf.log import SwfLog


def write_likeness_page(
    path: str | Path,
    title: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    logs: Mapping[str, SwfLog],
) -> None:
    """Write the page: the table of all checks, and figures of the log beside one log of each model."""
    sections = [
        section(
            "Checks",
            "The mean over all seeds and, in brackets, the largest distance to the log. A cross says that "
            "some seed is farther away than is tolerated. KS is the Kolmogorov-Smirnov distance.",
            table("", heads, [[html.escape(cell) for cell in row] for row in rows]),
            layout="wide",
        ),
        section(
            "Sizes and run times",
            "Up to 2,000 jobs of the log, and of the first log of each model (figure 1 of Minh and Wolters).",
            *(figure(name, f"shapes_{place}") for place, name in enumerate(logs)),
        ),
        section(
            "Bags of tasks",
            "Times between successive similar jobs, and how long it takes to submit a bag (figures 2 and 3): "
            "the share that is at most so long. Jobs of a bag and its mean run time (figure 5): the share "
            "that is at least so large. All but the sizes are of bags of two jobs or more.",
            figure("Times between similar jobs", "gaps"),
            figure("Submitting a bag", "durations"),
            figure("Jobs of a bag", "bag_sizes"),
            figure("Mean run time of a bag", "bag_run_times"),
        ),
    ]
    header = f"<h1>{html.escape(title)}</h1>"
    write_figures_page(path, title, header, "".join(sections), all_figures(logs))
