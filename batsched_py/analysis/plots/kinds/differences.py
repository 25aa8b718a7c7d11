"""How much later or earlier each job is submitted in one run than in another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

BINS: Final = 120


def submission_differences(run: Run, reference: Run) -> pd.Series:
    """For each job of both, its submission in ``run`` minus that in ``reference``, in seconds."""
    later, earlier = (_submissions(each) for each in (run, reference))
    differences = (later - earlier.reindex(later.index)).dropna()
    if differences.empty:
        raise InputError(f"{run.label} and {reference.label} have no job in common")
    return differences


def _submissions(run: Run) -> pd.Series:
    submissions = run.jobs.set_index("job_id")["submission_time"]
    again = submissions.index.duplicated()
    if again.any():
        raise InputError(f"{run.label}: job {submissions.index[again][0]} is there twice")
    return submissions


@dataclass(frozen=True)
class Differences(RunsKind):
    """How much later each job is submitted in a run than in the log, or than in the first run.

    A histogram for each run, with a dashed line where the median is. A run whose jobs are all submitted at
    the very same times says so instead.
    """

    name = "differences"
    shows = "How much later or earlier each job is submitted in one run than in another."
    use_of_log: ClassVar[str] = "The runs are compared with it, else with the first of them."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        reference, *runs = [recorded, *runs] if recorded else runs
        if not runs:
            raise InputError(
                "there is nothing to compare the run with; give another one, or --recorded LOG.swf"
            )
        differences = [submission_differences(run, reference) for run in runs]
        together = np.concatenate(differences)
        unit, name = style.time_unit(np.abs(together).max())
        edges = np.histogram_bin_edges(together / unit, BINS).tolist()
        axes = sheet.panels([run.label for run in runs], height=1.1)
        for run, panel, seconds, colour in zip(
            runs, axes, differences, sheet.colours(len(runs)), strict=True
        ):
            panel.axvline(0, color=style.BLACK, linewidth=0.6)
            if seconds.any():
                panel.hist(seconds / unit, edges, color=colour)
                median = float(seconds.median()) / unit
                panel.axvline(median, color=style.BLACK, linewidth=0.9, linestyle="--")
                panel.set_title(f"{run.label}: median {style.number(median, '+.3g')} {name}")
            else:
                panel.set_title(f"{run.label}: every job as in {reference.label}")
            style.plain_numbers(panel.xaxis, panel.yaxis)
        sheet.supxlabel(f"submission, compared with {reference.label} ({name})")
        sheet.supylabel("jobs")
