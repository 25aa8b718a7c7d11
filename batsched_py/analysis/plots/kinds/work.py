"""How much jobs compute: the distribution of their work, of a log beside generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.analysis.plots.figures import RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.errors import InputError

_BINS = 40


def work(run: Run, gigaflops: float) -> NDArray[np.float64]:
    """The billions of operations of each executed job.

    A log that was generated for other units says how much that was, in processor-seconds of the log that it
    is like; elsewhere each host computes as fast as any.
    """
    if run.log is not None and "work" in run.log.more:
        return np.asarray(run.log.more["work"], dtype=np.float64) * gigaflops
    jobs = run.executed
    return np.asarray((jobs["finish_time"] - jobs["starting_time"]) * jobs["held"] * gigaflops)


@dataclass(frozen=True)
class Work(RunsKind):
    """The share of the jobs by the operations that they compute, of logs or runs, one above the other."""

    name = "work"
    shows = "How much jobs compute: the distribution of their work, of a log beside generated ones."

    performance: Annotated[
        float,
        Meta(
            gt=0,
            title="GFLOPS",
            description="What a processor of the log computes in a second, in billions of operations.",
        ),
    ] = 1.0

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each, with equal classes of the logarithm."""
        everything = with_recorded(runs, recorded)
        colours = sheet.colours_with_recorded(runs, recorded)
        amounts = [work(run, self.performance) for run in everything]
        positive = [each[each > 0] for each in amounts]
        if not all(map(len, positive)):
            raise InputError("a log or run has no job that computes anything, so there is nothing to show")
        least, most = min(each.min() for each in positive), max(each.max() for each in positive)
        edges = np.geomspace(0.99 * least, 1.01 * most, _BINS + 1)
        axes = sheet.panels([run.label for run in everything], height=1.2)
        for panel, each, colour in zip(axes, positive, colours, strict=True):
            panel.stairs(100 * np.histogram(each, edges)[0] / len(each), edges, fill=True, color=colour)
            panel.set_xscale("log")
        sheet.supxlabel("billions of operations of a job")
        sheet.supylabel("jobs (%)")
