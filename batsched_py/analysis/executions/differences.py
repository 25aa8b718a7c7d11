"""What differs between two executions of one workload: for each job, when and where it ran."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import pandas as pd

from batsched_py.analysis.plots.runs import Run
from batsched_py.errors import InputError

#: Batsim writes times with six decimals; a difference in the last one is none.
SAME: Final = 2e-6

#: In the bounded slowdown, shorter jobs count as if they ran for so many seconds.
BOUND: Final = 10.0

#: What is known of a job in each execution, and the column of a schedule that tells it.
_KNOWN: Final = {
    "submission": "submission_time",
    "start": "starting_time",
    "finish": "finish_time",
    "size": "held",
    "hosts": "allocated_resources",
}


@dataclass(frozen=True, eq=False)
class Executions:
    """Two executions, and the jobs that ran in both."""

    first: Run
    second: Run
    jobs: pd.DataFrame
    """A row for each job that ran in both, those first whose starts differ most.

    ``later`` is how much later it starts in the second execution, ``longer_wait`` and ``longer_run`` how much
    longer it waits and runs there, in seconds. ``first_submission``, ``first_start``, ``first_finish``,
    ``first_size`` and ``first_hosts`` are what they were in the first one, and so on; a log does not tell
    hosts.
    """
    only_first: list[str]
    """The jobs that ran in the first one only."""
    only_second: list[str]

    @property
    def runs(self) -> tuple[Run, Run]:
        """Both."""
        return self.first, self.second

    @property
    def tells_workloads(self) -> bool:
        """Whether the names of jobs have their workloads in front; a log has none."""
        return all("workload_name" in run.jobs for run in self.runs)

    @cached_property
    def is_moved(self) -> pd.Series[bool]:
        """Whether the start of each job differs."""
        return self.jobs["later"].abs() > SAME

    @cached_property
    def has_other_hosts(self) -> pd.Series[bool]:
        """Whether each job ran on other hosts, where that is known."""
        known = (self.jobs["first_hosts"] != "") & (self.jobs["second_hosts"] != "")
        return known & (self.jobs["first_hosts"] != self.jobs["second_hosts"])

    @cached_property
    def has_other_size(self) -> pd.Series[bool]:
        """Whether each job held another number of hosts; if many did, these are two workloads."""
        return self.jobs["first_size"] != self.jobs["second_size"]

    @cached_property
    def differs(self) -> pd.Series[bool]:
        """Whether anything of each job differs."""
        return self.is_moved | self.has_other_hosts | (self.jobs["longer_run"].abs() > SAME)

    @cached_property
    def first_difference(self) -> float | None:
        """The earliest start, in either execution, of a job that differs; none if no job does."""
        starts = self.jobs.loc[self.differs, ["first_start", "second_start"]]
        return None if starts.empty else float(starts.to_numpy().min())

    def measured(self) -> dict[str, tuple[float, float]]:
        """Makespan of both, and means over the jobs that ran in both: times in seconds."""
        one, two = (self._means(which) for which in ("first", "second"))
        return {"makespan": (self.first.end, self.second.end)} | {
            name: (one[name], two[name]) for name in one
        }

    def _means(self, which: str) -> dict[str, float]:
        submission, start, finish = (
            self.jobs[f"{which}_{name}"] for name in ("submission", "start", "finish")
        )
        turnaround = finish - submission
        slowdown = (turnaround / (finish - start).clip(lower=BOUND)).clip(lower=1.0)
        return {
            "mean wait": float((start - submission).mean()),
            "mean turnaround": float(turnaround.mean()),
            "mean bounded slowdown": float(slowdown.mean()),
        }

    def save(self, path: str | Path) -> None:
        """Write a page, or the table of jobs as CSV or Parquet; the name tells which by its ending."""
        path = Path(path)
        if path.suffix == ".html":
            from batsched_py.analysis.executions.page import write_executions_page

            write_executions_page(path, self)
            return
        if path.suffix not in (".csv", ".parquet"):
            raise InputError(f"{path}: give a name that ends in .html, .csv or .parquet")
        try:
            if path.suffix == ".csv":
                self.jobs.to_csv(path, float_format="%.6f")
            else:
                self.jobs.to_parquet(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def compare_executions(first: Run, second: Run) -> Executions:
    """Compare two executions; jobs are known by their names, and by their workloads if both tell these."""
    with_workload = all("workload_name" in run.jobs for run in (first, second))
    before, after = (_executed(run, with_workload) for run in (first, second))
    names = before.index.intersection(after.index, sort=False)
    if names.empty:
        raise InputError(f"no job ran both in {first.label} and in {second.label}")
    one, two = before.loc[names], after.loc[names]
    differences = {
        "later": two["start"] - one["start"],
        "longer_wait": (two["start"] - two["submission"]) - (one["start"] - one["submission"]),
        "longer_run": (two["finish"] - two["start"]) - (one["finish"] - one["start"]),
    }
    rounded = pd.DataFrame(differences).round(6) + 0.0
    jobs = pd.concat([rounded, one.add_prefix("first_"), two.add_prefix("second_")], axis=1)
    order = jobs["later"].abs().sort_values(ascending=False, kind="stable").index
    return Executions(
        first,
        second,
        jobs.loc[order].rename_axis("job"),
        before.index.difference(names, sort=False).to_list(),
        after.index.difference(names, sort=False).to_list(),
    )


def names_of_jobs(run: Run, with_workload: bool) -> pd.Series[str]:
    """The names of the jobs of a run, by the labels of their rows."""
    return run.jobs["workload_name"] + "!" + run.jobs["job_id"] if with_workload else run.jobs["job_id"]


def _executed(run: Run, with_workload: bool) -> pd.DataFrame:
    """What is compared of the jobs that ran, by their names."""
    jobs = run.executed
    if "allocated_resources" not in jobs:
        jobs = jobs.assign(allocated_resources="")
    known = jobs[list(_KNOWN.values())].set_axis(list(_KNOWN), axis=1)
    known.index = pd.Index(names_of_jobs(run, with_workload).loc[jobs.index])
    if (again := known.index.duplicated()).any():
        raise InputError(f"{run.label}: job {known.index[again][0]} is there twice")
    return known
