"""Submissions by hour, weekday and month: does a generated log have the cycles of its log?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.kinds.weekly import DAYS, local_submissions
from batsched_py.analysis.plots.runs import Run, with_recorded

MONTHS: Final = ("J", "F", "M", "A", "M", "J", "J", "A", "S", "O", "N", "D")

#: What is counted, and how its places are called.
CYCLES: Final = {"hour": tuple(map(str, range(24))), "weekday": DAYS, "month": MONTHS}


def shares(run: Run) -> dict[str, NDArray[np.float64]]:
    """The share of the jobs that are submitted in each hour of the day, weekday and month."""
    moments = local_submissions(run)
    days = moments.astype("datetime64[D]")
    places = {
        "hour": (moments.astype("datetime64[h]") - days.astype("datetime64[h]")).astype(np.int64),
        "weekday": (days.astype(np.int64) + 3) % 7,
        "month": days.astype("datetime64[M]").astype(np.int64) % 12,
    }
    return {
        name: np.bincount(place, minlength=len(CYCLES[name])) / len(place) for name, place in places.items()
    }


@dataclass(frozen=True)
class Cycles(RunsKind):
    """The share of the jobs in each hour of the day, weekday and month, of logs side by side or of runs.

    Below each panel is how far apart the first two are: the share of the jobs that would have to be submitted
    in another hour, on another weekday or in another month to make them equal.
    """

    name = "cycles"
    shows = "Submissions by hour, weekday and month: does a generated log have the cycles of its log?"
    use_of_log: ClassVar[str] = "It is shown, too, and tells the time of the day."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each cycle, with a bar for each log or run in each of its places."""
        everything = with_recorded(runs, recorded)
        colours = sheet.colours_with_recorded(runs, recorded)
        counted = [shares(run) for run in everything]
        sheet.resize(5.4)
        width = 0.8 / len(everything)
        axes = sheet.subplots(3, 1)
        for panel, (name, places) in zip(axes, CYCLES.items(), strict=True):
            for number, (run, colour) in enumerate(zip(everything, colours, strict=True)):
                place = np.arange(len(places)) + (number - (len(everything) - 1) / 2) * width
                panel.bar(place, 100 * counted[number][name], width=width, color=colour, label=run.label)
            panel.set_xticks(range(len(places)), places)
            panel.grid(False, axis="x")
            apart = f"; {distance(counted, name):.1%} apart" if len(everything) > 1 else ""
            panel.set_xlabel(f"{name}{apart}")
        style.shared_legend(sheet, axes[:1])
        sheet.supylabel("submissions (%)")


def distance(counted: Sequence[dict[str, NDArray[np.float64]]], name: str) -> float:
    """The total variation between the first two."""
    first, second = (each[name] for each in counted[:2])
    return float(np.abs(first - second).sum() / 2)
