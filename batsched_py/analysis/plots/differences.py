"""How much later or earlier each job is submitted in one run than in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def draw(figure: Figure, runs: Sequence[Run], reference: Run) -> None:
    """A histogram for each run; a line where the median is."""
    differences = [submission_differences(run, reference) for run in runs]
    together = np.concatenate(differences)
    unit, name = style.time_unit(np.abs(together).max())
    edges = np.histogram_bin_edges(together / unit, BINS)
    axes = style.panels(figure, [run.label for run in runs], height=1.1)
    for run, panel, seconds, colour in zip(runs, axes, differences, style.colours(len(runs)), strict=True):
        panel.hist(seconds / unit, edges.tolist(), color=colour)
        panel.axvline(0, color=style.BLACK, linewidth=0.6)
        median = float(seconds.median()) / unit
        panel.axvline(median, color=style.BLACK, linewidth=0.9, linestyle="--")
        panel.set_title(f"{run.label}: median {style.number(median, '+.3g')} {name}")
        style.plain_numbers(panel.xaxis, panel.yaxis)
    figure.supxlabel(f"submission, compared with {reference.label} ({name})")
    figure.supylabel("jobs")
