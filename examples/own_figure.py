"""A figure of your own: how long jobs of each size wait.

batsched-py plot examples/own_figure.py:WaitsBySize EASY=e_jobs.csv FCFS=f_jobs.csv --output waits.svg
easy.plot("examples/own_figure.py:WaitsBySize", fcfs)     # in Python
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.analysis.plots.figures import RunsKind
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.plots.sheet import Sheet


@dataclass(frozen=True)
class WaitsBySize(RunsKind):
    """The mean wait of the jobs of each size, a line for each run."""

    least: Annotated[int, Meta(description="Leave out sizes of which there are fewer jobs.", title="N")] = 1

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Sizes are on a logarithmic scale."""
        axes = sheet.subplots()
        for run, look in zip(runs, sheet.line_looks(len(runs)), strict=True):
            waits = run.executed.groupby("requested_number_of_resources")["waiting_time"].agg(
                ["mean", "size"]
            )
            kept = waits[waits["size"] >= self.least]
            axes.plot(kept.index, kept["mean"] / 3600, label=run.label, **look)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("hosts of a job")
        axes.set_ylabel("mean wait (h)")
        axes.legend()
