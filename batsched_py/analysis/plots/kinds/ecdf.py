"""How waits, turnarounds or slowdowns are distributed, over jobs, their classes or users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

import pandas as pd
from msgspec import Meta

from batsched_py.analysis.job_groups import CLASSES, class_numbers
from batsched_py.analysis.metrics import TAU
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import SHOWN_TOO, TELLS_USERS, RunsKind, Sheet
from batsched_py.analysis.plots.kinds.gantt import busiest_users
from batsched_py.analysis.plots.runs import Run

Measure = Literal["wait", "turnaround", "slowdown"]

#: How many users have a line of their own.
USERS: Final = 4

_LABELS: Final[dict[Measure, str]] = {
    "wait": "wait",
    "turnaround": "turnaround",
    "slowdown": f"bounded slowdown ({TAU:g} s)",
}


def measured(run: Run, measure: Measure) -> pd.Series:
    """What is measured of each executed job, in seconds or as a factor."""
    jobs = run.executed
    if measure == "wait":
        return jobs["starting_time"] - jobs["submission_time"]
    turnaround = jobs["finish_time"] - jobs["submission_time"]
    if measure == "turnaround":
        return turnaround
    ran = jobs["finish_time"] - jobs["starting_time"]
    return (turnaround / ran.clip(lower=TAU)).clip(lower=1.0)


def job_classes(run: Run) -> pd.Series:
    """The class of each executed job: short or long by its run time, narrow or wide by its hosts."""
    jobs = run.executed
    codes = class_numbers(jobs["finish_time"] - jobs["starting_time"], jobs["held"])
    return pd.Series(pd.Categorical.from_codes(codes, CLASSES), index=jobs.index)


def job_owners(run: Run) -> pd.Series:
    """The user of each executed job; all but the busiest are ``others``."""
    users = run.replayed.loc[run.executed.index, "user"]
    return ("user " + users).where(users.isin(busiest_users(run)[:USERS]), "others")


@dataclass(frozen=True)
class Ecdf(RunsKind):
    """The share of the jobs that wait no longer, or are slowed down no more, than so much.

    One panel compares runs; by class or by user there is a panel for each run. A job is short up to an hour
    and narrow up to 8 hosts; the users are those whose jobs took the most host-seconds.
    """

    name = "ecdf"
    shows = "How waits, turnarounds or slowdowns are distributed, over jobs, their classes or users."
    use_of_log: ClassVar[str] = f"{SHOWN_TOO} {TELLS_USERS}"

    of: Annotated[Measure, Meta(description="What is measured of each job.")] = "wait"
    by: Annotated[
        Literal["run", "class", "user"],
        Meta(description="What has a line of its own: runs or parts of them."),
    ] = "run"

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        panels = self._panels([*runs, recorded] if recorded else runs)
        names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
        looks = dict(zip(names, sheet.line_looks(len(names)), strict=True))
        if recorded and recorded.label in looks:
            looks[recorded.label] = style.RECORDED
        longest = max(float(values.max()) for lines in panels.values() for values in lines.values())
        unit, unit_name = (1.0, "") if self.of == "slowdown" else style.time_unit(longest)
        axes = sheet.panels(list(panels), columns=2, height=2.2)
        for panel, lines in zip(axes, panels.values(), strict=True):
            for name, values in lines.items():
                panel.ecdf(values / unit, **looks[name], label=name)
            if self.of == "slowdown":
                panel.set_xscale("log")
            else:
                panel.set_xscale("symlog", linthresh=0.01, linscale=0.3)
                panel.set_xlim(left=0)
            style.plain_numbers(panel.xaxis)
            panel.set_xlabel(_LABELS[self.of] + (f" ({unit_name})" if unit_name else ""))
        sheet.supylabel("share of the jobs with no more")
        style.shared_legend(sheet, axes)

    def _panels(self, runs: Sequence[Run]) -> dict[str, dict[str, pd.Series]]:
        """What each line of each panel shows, by their names."""
        values = {run.label: measured(run, self.of) for run in runs}
        if self.by == "run":
            return {"": values}
        parts = job_classes if self.by == "class" else job_owners
        return {run.label: dict(list(values[run.label].groupby(parts(run), observed=True))) for run in runs}
