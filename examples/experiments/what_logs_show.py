"""What logs themselves show of users, which resampling with feedback builds on, by one command.

    python -m examples.experiments.what_logs_show KTH-SP2.swf.gz SDSC-DS.swf.gz --plot logs.svg

Three things of D. Feitelson, "Resampling with Feedback" (JSSPP 2021): whether the response time of a job or
its slowdown tells how long the user thinks before the next one (figure 18); that weeks with large jobs have
few jobs, as users keep out of each other's way (figure 11); and how far estimates are from run times, in the
log and in our model of estimates, the change `estimates` of logs (figures 2 and 3).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.metrics import DAY
from batsched_py.analysis.plots.figures import blank
from batsched_py.analysis.plots.style import PAGE, PALETTE
from batsched_py.users import USERS
from batsched_py.users.resample import Resample, resampled_log
from batsched_py.workload.changes.estimates import Estimates
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.reader import read_swf
from examples.experiments.resampling_tables import put_into

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

#: Who thinks for longer has ended the session, in seconds.
SESSION_BREAK = 20 * 60.0

#: Into how many classes of equal size jobs are divided.
CLASSES = 20

WEEK = 7 * DAY


def thoughts(log: SwfLog) -> pd.DataFrame:
    """The jobs after which users waited before they went on, with response, slowdown and think time."""
    jobs = pd.DataFrame({"user": log.user, "submit": log.submit, "run_time": log.run_time})
    jobs["response"] = log.wait.clip(min=0) + log.run_time
    jobs = jobs[(log.processors > 0) & (log.user >= 0)].sort_values(["user", "submit"], kind="stable")
    following = jobs.groupby("user")["submit"].shift(-1)
    jobs["thought"] = following - jobs["submit"] - jobs["response"]
    jobs["slowdown"] = jobs["response"] / jobs["run_time"].clip(lower=1)
    return jobs[jobs["thought"] >= 0]


def skill(values: pd.Series[float], goes_on: pd.Series[bool]) -> float:
    """How often the smaller one of two values is that of the job after which the user went on.

    One half is no better than chance, and 1 is always.

    >>> skill(pd.Series([1.0, 2.0, 3.0]), pd.Series([True, True, False]))
    1.0
    """
    nb_on, nb_off = int(goes_on.sum()), int((~goes_on).sum())
    ranks = values.rank()[~goes_on].sum()
    return float((ranks - nb_off * (nb_off + 1) / 2) / (nb_on * nb_off))


def weekly(log: SwfLog) -> pd.DataFrame:
    """The jobs of each whole week, and their mean work in host-hours."""
    log = log.select(log.processors > 0)
    since = log.submit - log.submit.min()
    week = (since // WEEK).astype(int)
    work = pd.Series(log.run_time * log.processors / 3600)
    weeks = work.groupby(week).agg(jobs="size", work="mean")
    return weeks[weeks.index < since.max() // WEEK]


def rank_correlation(weeks: pd.DataFrame) -> float:
    """Spearman's, of the number of jobs in a week and their mean work."""
    return float(weeks["jobs"].rank().corr(weeks["work"].rank()))


def resampled(log: SwfLog, seeds: int) -> list[SwfLog]:
    """Populations without feedback, as long as the log."""
    made = [USERS.create("resample", {"seed": str(seed)}) for seed in range(1, seeds + 1)]
    return [resampled_log(log, each) for each in made if isinstance(each, Resample)]


def estimated(log: SwfLog) -> SwfLog:
    """The jobs that say how long they would run, with a number of hosts."""
    return log.select((log.requested_time > 0) & (log.run_time > 0) & (log.processors > 0))


def modelled(log: SwfLog) -> SwfLog:
    """The same jobs with estimates of the model."""
    return Estimates(rule="round").alter(log)[0]


def top_values(log: SwfLog) -> float:
    """The share of jobs that have one of the twenty most popular estimates."""
    _, counts = np.unique(log.requested_time, return_counts=True)
    return float(np.sort(counts)[-20:].sum() / len(log))


def table(logs: dict[str, SwfLog], seeds: int) -> Iterator[str]:
    """All three things in figures."""
    yield f"| | {' | '.join(logs)} |"
    yield f"| --- |{' ---: |' * len(logs)}"
    found = {name: thoughts(log) for name, log in logs.items()}
    for column in ("response", "slowdown"):
        skills = [skill(each[column], each["thought"] < SESSION_BREAK) for each in found.values()]
        yield f"| figure 18: skill of the {column} in telling who goes on | {_cells(skills, 2)} |"
    own = [rank_correlation(weekly(log)) for log in logs.values()]
    yield f"| figure 11: rank correlation of a week's jobs and their mean work, log | {_cells(own, 2)} |"
    mixed = [
        float(np.mean([rank_correlation(weekly(new)) for new in resampled(log, seeds)]))
        for log in logs.values()
    ]
    yield f"| the same, users mixed without feedback, mean of {seeds} | {_cells(mixed, 2)} |"
    for title, change in (("log", estimated), ("model", lambda log: modelled(estimated(log)))):
        changed = [change(log) for log in logs.values()]
        accuracy = [float(np.mean(np.minimum(log.run_time / log.requested_time, 1))) for log in changed]
        yield f"| figure 2: mean share of its estimate that a job runs, {title} | {_cells(accuracy, 2)} |"
        popular = [top_values(log) for log in changed]
        yield f"| figure 3: share of the 20 commonest estimates, {title} | {_cells(popular, 2)} |"


def _cells(values: Sequence[float], decimals: int) -> str:
    return " | ".join(f"{value:.{decimals}f}" for value in values)


def draw_thoughts(axes: Axes, log: SwfLog, column: str, label: str) -> None:
    """How likely users go on, by classes of equal size."""
    jobs = thoughts(log)
    place = pd.qcut(jobs[column].rank(method="first"), CLASSES, labels=False)
    on = (jobs["thought"] < SESSION_BREAK).groupby(place).mean()
    axes.plot(jobs[column].groupby(place).median(), on, marker="o", color=PALETTE[0])
    axes.set(xscale="log", ylim=(0, 1), xlabel=label, ylabel="next job within 20 min")


def draw_weeks(axes: Axes, log: SwfLog) -> None:
    """A dot for each week, of the log and of one population."""
    for weeks, label, colour in (
        (weekly(resampled(log, 1)[0]), "users mixed", PALETTE[1]),
        (weekly(log), "log", PALETTE[0]),
    ):
        axes.scatter(weeks["jobs"], weeks["work"], s=8, color=colour, label=label)
    axes.set(xlabel="jobs in a week", ylabel="mean work [host-hours]", yscale="log")
    axes.legend()


def draw_estimates(axes: Axes, log: SwfLog) -> None:
    """The distribution functions of run times and estimates."""
    log = estimated(log)
    lines = {
        "run time": log.run_time,
        "estimate": log.requested_time,
        "estimate, model": modelled(log).requested_time,
    }
    for (label, values), colour in zip(lines.items(), PALETTE, strict=False):
        axes.plot(np.sort(values) / 3600, np.arange(1, len(log) + 1) / len(log), color=colour, label=label)
    axes.set(xscale="log", xlabel="hours", ylabel="share of jobs")
    axes.legend()


@click.command()
@click.argument("log_files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--seeds", default=30, show_default=True)
@click.option("--plot", type=click.Path(), help="Draw what is to be seen into this file, .svg or .png.")
@click.option("--page", type=click.Path(exists=True, path_type=Path), help="Put the table into this page.")
def main(log_files: tuple[str, ...], seeds: int, plot: str | None, page: Path | None) -> None:
    """Print a table of what LOG_FILES show."""
    logging.getLogger("batsched_py").setLevel(logging.ERROR)
    logs = {Path(file).name.split("-")[0]: read_swf(file) for file in log_files}
    lines = list(table(logs, seeds))
    click.echo("\n".join(lines))
    if page is not None:
        put_into(page, "logs", lines)
    if plot:
        sheet = blank(PAGE)
        with sheet.styled():
            sheet.set_size_inches(PAGE.inches, 2.4 * len(logs) * 2)
            for (name, log), row in zip(
                logs.items(), sheet.subplots(2 * len(logs), 2).reshape(-1, 4), strict=True
            ):
                draw_thoughts(row[0], log, "response", f"response [s], {name}")
                draw_thoughts(row[1], log, "slowdown", f"slowdown, {name}")
                draw_weeks(row[2], log)
                draw_estimates(row[3], log)
        sheet.save(plot)


if __name__ == "__main__":
    main()
