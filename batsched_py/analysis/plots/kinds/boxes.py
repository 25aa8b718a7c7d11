"""Box plots of the slowdown of jobs and of how many wait, run beside run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.kinds.repetitions import Box
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.analysis.schedule import INSTANT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]


def slowdowns(run: Run) -> Floats:
    """The turnaround of each executed job over its run time."""
    jobs = run.executed
    turnaround, ran = (
        (jobs["finish_time"] - jobs[since]).to_numpy() for since in ("submission_time", "starting_time")
    )
    return np.asarray(turnaround / np.maximum(ran, INSTANT))


def queue_sizes(run: Run) -> NDArray[np.int64]:
    """How many jobs wait each time that one is submitted or ends, before any is started then."""
    jobs = run.executed
    submissions, starts = np.sort(jobs["submission_time"]), np.sort(jobs["starting_time"])
    times = np.union1d(submissions, jobs["finish_time"])
    return np.searchsorted(submissions, times, side="right") - np.searchsorted(starts, times, side="left")


@dataclass(frozen=True)
class Boxes(RunsKind):
    """Box plots of the slowdown of each job, and of how many jobs wait when one is submitted or ends.

    A box reaches from one quartile to the other with a line at the median, and whiskers to the furthest value
    within one and a half times the length of the box. A diamond is at the mean. What is beyond the whiskers
    is not drawn: there are thousands of jobs. Rejected jobs are left out.
    """

    name = "boxes"
    shows = "Box plots of the slowdown of jobs and of how many wait, run beside run."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each of both, with a box for each run, and for what was recorded in grey."""
        everything = with_recorded(runs, recorded)
        colours = sheet.colours_with_recorded(runs, recorded)
        sheet.resize(3.2)
        axes = sheet.subplots(1, 2)
        _draw_boxes(axes[0], {run.label: slowdowns(run) for run in everything}, colours)
        axes[0].set_title("slowdown of a job")
        axes[0].set_yscale("log")
        _draw_boxes(axes[1], {run.label: queue_sizes(run) for run in everything}, colours)
        axes[1].set_title("jobs that wait")
        axes[1].set_yscale("symlog", linthresh=1)
        axes[1].set_ylim(bottom=0)
        for panel in axes:
            style.plain_numbers(panel.yaxis)


def _draw_boxes(panel: Axes, values: dict[str, NDArray[Any]], colours: Sequence[str]) -> None:
    boxes = [
        Box.of(each).for_matplotlib() | {"fliers": [], "mean": float(each.mean())} for each in values.values()
    ]
    drawn = panel.bxp(
        boxes,
        positions=range(len(boxes)),
        widths=0.6,
        patch_artist=True,
        showmeans=True,
        medianprops={"color": style.BLACK},
        meanprops={
            "marker": "D",
            "markersize": 4,
            "markerfacecolor": "white",
            "markeredgecolor": style.BLACK,
        },
    )
    for box, colour in zip(drawn["boxes"], colours, strict=True):
        box.set(facecolor=colour, alpha=0.75)
    style.name_bars(panel, list(values))
