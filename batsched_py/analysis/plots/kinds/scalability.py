"""Whether additional lateness depends on how much of a log is replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import TELLS_LATENESS, RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.user_metrics import additional_lateness


def additional_lateness_by_size(runs: Sequence[Run]) -> pd.DataFrame:
    """The label of each ``run``, its number of ``jobs``, and its ``additional_lateness`` in seconds."""
    rows = [(run.label, len(run.jobs), additional_lateness(run.replayed)) for run in runs]
    table = pd.DataFrame(rows, columns=["run", "jobs", "additional_lateness"])
    return table.sort_values("jobs", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class Scalability(RunsKind):
    """Whether additional lateness depends on how much of the log is replayed.

    Give a run for each number of jobs; those with the same LABEL become one line.
    """

    name = "scalability"
    shows = "Whether additional lateness depends on how much of a log is replayed."
    use_of_log: ClassVar[str] = TELLS_LATENESS
    labels_are_distinct: ClassVar[bool] = False

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A line for each label, through the runs that have it: simulations of the first jobs of a log."""
        table = additional_lateness_by_size(runs)
        labels = list(dict.fromkeys(run.label for run in runs))
        sheet.resize(3.0)
        panel = sheet.subplots()
        panel.axhline(0, color=style.BLACK, linewidth=0.6)
        for label, look in zip(labels, sheet.line_looks(len(labels)), strict=True):
            line = table[table["run"] == label]
            panel.plot(line["jobs"], line["additional_lateness"], **look, marker="o", ms=3.5, label=label)
        panel.set_xlim(left=0)
        style.plain_numbers(panel.xaxis, panel.yaxis)
        panel.set_xlabel("jobs replayed, the first ones of the log")
        panel.set_ylabel("additional lateness (seconds)")
        sheet.legend(loc="outside right upper")
