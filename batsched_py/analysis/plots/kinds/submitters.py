"""Figures of users: when they submit, cycles of the day and the week, session graphs, and lateness.

Lateness is how much later than recorded users submit, against the number of jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import numpy as np
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from batsched_py.analysis.plots import style
from batsched_py.analysis.plots.figures import SHOWN_TOO, TELLS_LATENESS, TELLS_USERS, RunsKind, Sheet
from batsched_py.analysis.plots.runs import Run, with_recorded
from batsched_py.analysis.user_metrics import additional_lateness
from batsched_py.errors import InputError
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import session_statistics
from batsched_py.workload.sessions import SessionCutter, cut_workload, session_rule
from batsched_py.workload.swf.log import DAY, HOUR, SwfLog, local_time, start_of, wall_clock
from batsched_py.workload.swf.workload import swf_to_workload


def user_arrivals(run: Run) -> pd.Series:
    """The first submission of each user, in the order of time."""
    return run.replayed.groupby("user")["submission_time"].min().sort_values(kind="stable")


@dataclass(frozen=True)
class Arrivals(RunsKind):
    """When each user submits for the first time: a row of ticks for each run, or log.

    Lines show when the recorded submissions begin and end.
    """

    name = "arrivals"
    shows = "When each user submits for the first time."
    use_of_log: ClassVar[str] = f"{SHOWN_TOO} {TELLS_USERS}"

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        everything = with_recorded(runs, recorded)
        end = max(run.jobs["submission_time"].max() for run in everything)
        unit, name = style.time_unit(end)
        sheet.resize(0.7 + 0.45 * len(everything))
        panel = sheet.subplots()
        for row, run in enumerate(everything):
            times = user_arrivals(run) / unit
            panel.eventplot(times, lineoffsets=row, linelengths=0.7, linewidths=0.6, color=sheet.highlight)
        for border in runs[0].replayed["recorded"].agg(["min", "max"]):
            panel.axvline(border / unit, color=sheet.colours(4)[3], linewidth=1.5)
        panel.set_yticks(range(len(everything)), [run.label for run in everything])
        panel.set_ylim(len(everything) - 0.5, -0.5)
        panel.grid(False)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.set_xlabel(f"first submission of each user ({name}); lines: first and last one in the log")


HOURS: Final = 7 * 24
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def hours_of_week(times: NDArray[np.float64], log: SwfLog) -> NDArray[np.int64]:
    """The hour of the week, from Monday 0:00, in which each time of a simulation of ``log`` lies.

    It is the time on the wall clock where the machine stood, summer time included.
    """
    return (wall_clock(log, _first_submission(log) + times) // HOUR).astype(np.int64) % HOURS


def _first_submission(log: SwfLog) -> float:
    """The time in a log that is 0 in simulations of it."""
    if start_of(log) is None:
        raise InputError(f"{log.path}: the header does not say when the log began (UnixStartTime)")
    return float(log.submit[log.processors > 0].min())


def _log_of(run: Run) -> SwfLog:
    if run.log is None:
        raise InputError(
            f"{run.label}: the schedule does not tell the time of the day; give --recorded LOG.swf"
        )
    return run.log


def submissions_by_hour_of_week(runs: Sequence[Run]) -> pd.DataFrame:
    """How many jobs are submitted in each hour of the week, all weeks taken together, a column a run."""
    counts = {}
    for run in runs:
        hours = hours_of_week(run.jobs["submission_time"].to_numpy(), _log_of(run))
        counts[run.label] = np.bincount(hours, minlength=HOURS)
    return pd.DataFrame(counts, index=pd.RangeIndex(HOURS, name="hour"))


@dataclass(frozen=True)
class Weekly(RunsKind):
    """How many jobs are submitted in each hour of the week, all weeks taken together.

    A panel for each run, or log; weekends are shaded.
    """

    name = "weekly"
    shows = "Submissions by the hour of the week: do users still come by day and leave for the weekend?"
    use_of_log: ClassVar[str] = "It is shown, too, and tells the time of the day."

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        everything = with_recorded(runs, recorded)
        colours = sheet.colours_with_recorded(runs, recorded)
        counts = submissions_by_hour_of_week(everything)
        axes = sheet.panels([run.label for run in everything], height=1.0)
        for run, panel, colour in zip(everything, axes, colours, strict=True):
            panel.axvspan(5 * 24, HOURS, color="#F2F2F2", zorder=0)
            panel.bar(np.arange(HOURS) + 0.5, counts[run.label], width=0.85, color=colour)
            panel.set_xlim(0, HOURS)
            panel.grid(False, axis="x")
            panel.tick_params(axis="x", which="minor", length=0)
            style.plain_numbers(panel.yaxis)
        axes[-1].set_xticks(np.arange(0, HOURS, 24), labels=[])
        axes[-1].set_xticks(np.arange(12, HOURS, 24), DAYS, minor=True)
        sheet.supylabel("submissions in the hour")


MONTHS: Final = ("J", "F", "M", "A", "M", "J", "J", "A", "S", "O", "N", "D")

#: What is counted, and how its places are called.
CYCLES: Final = {"hour": tuple(map(str, range(24))), "weekday": DAYS, "month": MONTHS}


def shares(run: Run) -> dict[str, NDArray[np.float64]]:
    """The share of the jobs that are submitted in each hour of the day, weekday and month."""
    log = _log_of(run)
    moments = local_time(log, _first_submission(log) + run.jobs["submission_time"].to_numpy())
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


def graph_statistics(workload: Workload, delimiters: Sequence[SessionCutter]) -> pd.DataFrame:
    """For each delimiter and user the number of sessions, the longest path and the arity of the graph."""
    rows = []
    for delimiter in delimiters:
        for user, sessions in cut_workload(workload, delimiter).items():
            figures = session_statistics([sessions.graph(reduced=True)])
            rows.append((str(delimiter), user, figures.sessions, figures.longest_path, figures.arity))
    return pd.DataFrame(rows, columns=["delimiter", "user", "sessions", "longest_path", "arity"])


@dataclass(frozen=True)
class Graphs(RunsKind):
    """How long and how wide the session graphs of the users of a log are.

    For each length of the longest path, and for each arity, the share of the users who have no more.
    """

    name = "graphs"
    shows = "What the users' session graphs look like under one or several ways to cut sessions."
    use_of_log: ClassVar[str] = "Its users are shown, too."

    delimit: Annotated[
        tuple[str, ...],
        Meta(title="RULE:MINUTES", description="What opens a new session, as in `batsched-py sessions`."),
    ] = ("arrival:0", "arrival:60")

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        rules = [session_rule(text) for text in self.delimit]
        logs = [run for run in (recorded, *runs) if run is not None]
        curves = []
        for each in logs:
            if each.log is None:
                raise InputError(f"{each.label}: session graphs are those of a log; give LOG.swf")
            statistics = graph_statistics(swf_to_workload(each.log), rules)
            curves += [
                (rule if len(logs) == 1 else f"{each.label}, {rule}", users)
                for rule, users in statistics.groupby("delimiter", sort=False)
            ]
        sheet.resize(2.9)
        axes = sheet.subplots(1, 2, sharey=True)
        for panel, column, label in (
            (axes[0], "longest_path", "longest path of the user's graph (sessions)"),
            (axes[1], "arity", "arity of the user's graph"),
        ):
            for (name, users), line in zip(curves, sheet.line_looks(len(curves)), strict=True):
                panel.ecdf(users[column], **line, label=name)
            panel.set_xscale("symlog", linthresh=1, linscale=0.3)
            panel.set_xlim(left=0)
            panel.set_xlabel(label)
            style.plain_numbers(panel.xaxis)
        axes[0].set_ylabel("share of the users who have no more")
        axes[0].legend(loc="lower right", title="sessions by")


def user_lateness(run: Run) -> pd.DataFrame:
    """For each user the number of ``jobs``, and ``mean_lateness`` and ``additional_lateness`` in seconds.

    The additional lateness of a user with a single job is NaN.
    """
    users = run.replayed.groupby("user")["lateness"].agg(jobs="size", mean_lateness="mean")
    further = (users["jobs"] - 1).where(users["jobs"] > 1)
    return users.assign(additional_lateness=2 * users["mean_lateness"] / further)


@dataclass(frozen=True)
class Lateness(RunsKind):
    """How much later than recorded each user submits on average, against the number of the user's jobs.

    A line shows the median user, a band the users from the 10th to the 90th percentile.
    """

    name = "lateness"
    shows = "How late each user is on average, against how many jobs the user has."
    use_of_log: ClassVar[str] = TELLS_LATENESS

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        draw_users(sheet, runs, "mean_lateness", DAY, "d")
        sheet.supylabel("mean lateness of the user (days)")


def draw_users(sheet: Sheet, runs: Sequence[Run], column: str, unit: float, unit_name: str) -> None:
    """A panel for each run, with a dot for each user, the median user, and a band that holds 80 % of them.

    The scale is logarithmic on both sides of 0, and linear up to a hundredth of ``unit``.
    """
    axes = sheet.panels([run.label for run in runs], columns=3, height=2.1)
    for run, panel, colour in zip(runs, axes, sheet.colours(len(runs)), strict=True):
        users = user_lateness(run).dropna(subset=column)
        late = users[column] / unit
        low, median, high = late.quantile([0.1, 0.5, 0.9])
        panel.set_xscale("log")
        panel.set_yscale("symlog", linthresh=0.01, linscale=0.5)
        panel.axhspan(low, high, color=colour, alpha=0.13, linewidth=0)
        panel.axhline(median, color=colour, linewidth=1)
        panel.axhline(0, color=style.BLACK, linewidth=0.6)
        panel.scatter(users["jobs"], late, s=9, color=colour, alpha=0.6, linewidths=0)
        panel.set_title(f"{run.label}: median {style.number(median, '+.3g')} {unit_name}")
    for panel in axes:
        style.plain_numbers(panel.xaxis, panel.yaxis)
    sheet.supxlabel("jobs of the user")


@dataclass(frozen=True)
class AdditionalLateness(RunsKind):
    """By how much each job adds to its user's lateness, against the number of the user's jobs.

    Users with a single job are left out. A line shows the median user, a band the users from the 10th to the
    90th percentile.
    """

    name = "additional-lateness"
    shows = "By how much each further job adds to the lateness of its user."
    use_of_log: ClassVar[str] = TELLS_LATENESS

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        draw_users(sheet, runs, "additional_lateness", HOUR, "h")
        sheet.supylabel("additional lateness of the user (hours)")


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
