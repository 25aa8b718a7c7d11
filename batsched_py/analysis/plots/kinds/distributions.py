"""Figures of how the values of jobs are distributed: waits, slowdowns, work, and differences between runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.analysis.outcome import TAU
from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import SHOWN_TOO, TELLS_USERS, RunsKind, Sheet
from batsched_py.analysis.plots.kinds.campaigns import Box, draw_boxes
from batsched_py.analysis.plots.kinds.gantt import busiest_users
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.analysis.schedule import INSTANT
from batsched_py.errors import InputError
from batsched_py.workload.description.jobs import CLASSES, class_numbers

Measure = Literal["wait", "turnaround", "slowdown"]

#: How many users have a line of their own.
USERS: Final = 4
#: How many classes the histograms of differences and of work have.
DIFFERENCE_CLASSES: Final = 120
WORK_CLASSES: Final = 40

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


def slowdowns(run: Run) -> NDArray[np.float64]:
    """The turnaround of each executed job over its run time."""
    jobs = run.executed
    ran = jobs["finish_time"] - jobs["starting_time"]
    return ((jobs["finish_time"] - jobs["submission_time"]) / ran.clip(lower=INSTANT)).to_numpy()


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
        means = {"marker": "D", "markersize": 4, "markerfacecolor": "white", "markeredgecolor": style.BLACK}
        measures: tuple[Callable[[Run], NDArray[Any]], ...] = (slowdowns, queue_sizes)
        for panel, measure in zip(axes, measures, strict=True):
            values = {run.label: measure(run) for run in everything}
            boxes = {
                name: Box.of(each).for_matplotlib() | {"fliers": [], "mean": float(each.mean())}
                for name, each in values.items()
            }
            draw_boxes(panel, boxes, colours, showmeans=True, meanprops=means)
        axes[0].set_title("slowdown of a job")
        axes[0].set_yscale("log")
        axes[1].set_title("jobs that wait")
        axes[1].set_yscale("symlog", linthresh=1)
        axes[1].set_ylim(bottom=0)
        style.plain_numbers(*(panel.yaxis for panel in axes))


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
        edges = np.histogram_bin_edges(together / unit, DIFFERENCE_CLASSES).tolist()
        axes = sheet.panels([run.label for run in runs], height=1.1)
        colours = sheet.colours(len(runs))
        for run, panel, seconds, colour in zip(runs, axes, differences, colours, strict=True):
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
        tuple[Annotated[float, Meta(gt=0)], ...],
        Meta(
            title="GFLOPS",
            description="What a processor computes in a second, in billions of operations: of all logs and "
            "runs, or of each in the order of the panels.",
        ),
    ] = (1.0,)

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """A panel for each, with equal classes of the logarithm."""
        everything = with_recorded(runs, recorded)
        colours = sheet.colours_with_recorded(runs, recorded)
        given = self.performance * len(everything) if len(self.performance) == 1 else self.performance
        if len(given) != len(everything):
            counts = f"{len(given)} values for {len(everything)} logs and runs"
            raise InputError(f"performance: {counts}; give one for all or one for each")
        amounts = [work(run, gigaflops) for run, gigaflops in zip(everything, given, strict=True)]
        positive = [each[each > 0] for each in amounts]
        if not all(map(len, positive)):
            raise InputError("a log or run has no job that computes anything, so there is nothing to show")
        least, most = min(each.min() for each in positive), max(each.max() for each in positive)
        edges = np.geomspace(0.99 * least, 1.01 * most, WORK_CLASSES + 1)
        axes = sheet.panels([run.label for run in everything], height=1.2)
        for panel, each, colour in zip(axes, positive, colours, strict=True):
            panel.stairs(100 * np.histogram(each, edges)[0] / len(each), edges, fill=True, color=colour)
            panel.set_xscale("log")
        sheet.supxlabel("billions of operations of a job")
        sheet.supylabel("jobs (%)")
