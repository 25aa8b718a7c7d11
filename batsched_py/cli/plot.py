"""``batsched-py plot``: figures of schedules, logs and sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from batsched_py.analysis.plots.style import write_figure
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.analysis.plots.gantt import ColourBy
    from batsched_py.analysis.plots.runs import Run
    from batsched_py.workload.swf import SwfLog

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("plot")
def command() -> None:
    """Draw a figure as PNG, SVG or PDF, whichever its name ends in.

    Most kinds compare runs with each other and with the log that they replay. A run is the jobs.csv of a
    simulation, by this or any other Batsim, with or without a name for the figure: LABEL=PREFIX_jobs.csv.
    The size of its machine is read from the PREFIX_schedule.csv beside it.

    \b
    Examples:
      batsched-py plot gantt out_jobs.csv -o gantt.png
      batsched-py plot cumulative EASY=e_jobs.csv FCFS=f_jobs.csv --recorded LOG.swf -o cumulative.pdf
      batsched-py plot graphs LOG.swf --delimit arrival:0 --delimit arrival:60 -o graphs.svg
    """


def _runs_argument(command: Command) -> Command:
    return click.argument("runs", nargs=-1, required=True, metavar="[LABEL=]PREFIX_jobs.csv...")(command)


def _output_option(command: Command) -> Command:
    return click.option(
        "-o",
        "--output",
        metavar="FILE",
        type=click.Path(path_type=Path),
        required=True,
        help="Where the figure goes: FILE.png, FILE.svg or FILE.pdf.",
    )(command)


def _recorded_option(use: str, required: bool = False) -> Callable[[Command], Command]:
    return click.option(
        "--recorded",
        "log_file",
        metavar="LOG.swf",
        type=click.Path(path_type=Path),
        required=required,
        help=f"The log that was replayed (.swf, .swf.gz). {use}",
    )


@command.command(short_help="Which job runs where and when.")
@_runs_argument
@click.option(
    "--colour",
    "colour_by",
    type=click.Choice(["job", "user"]),
    default="job",
    show_default=True,
    help="What a colour stands for.",
)
@_recorded_option("It tells the users; not needed for feedback users, who note it.")
@_output_option
def gantt(runs: Sequence[str], colour_by: ColourBy, log_file: Path | None, output: Path) -> None:
    """A Gantt chart of each run, above the utilization of its hosts.

    Some thousand jobs are drawn one by one. Where there are more, each pixel has the mean colour of the jobs
    in it; the paler it is, the longer its hosts were idle.
    """
    from batsched_py.analysis.plots import gantt

    compared = _read_runs(runs, _read_log(log_file))
    write_figure(output, partial(gantt.draw, runs=compared, colour_by=colour_by))


@command.command(short_help="Submissions over time.")
@_runs_argument
@_recorded_option("It is shown, too.")
@_output_option
def submissions(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """How many jobs are submitted in each hour, day or week."""
    from batsched_py.analysis.plots import submissions

    log = _read_log(log_file)
    draw = partial(submissions.draw, runs=_read_runs(runs, log), recorded=_recorded_run(log))
    write_figure(output, draw)


@command.command(short_help="Submissions and terminations, cumulated.")
@_runs_argument
@_recorded_option("It is shown, too.")
@_output_option
def cumulative(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """How many jobs have been submitted, and how many have finished, by any time."""
    from batsched_py.analysis.plots import cumulative

    log = _read_log(log_file)
    write_figure(output, partial(cumulative.draw, runs=_read_runs(runs, log), recorded=_recorded_run(log)))


@command.command(short_help="Mean lateness of each user.")
@_runs_argument
@_recorded_option("Lateness is against it; not needed for feedback users, who note it.")
@_output_option
def lateness(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """How much later than recorded each user submits on average, against the number of the user's jobs.

    A line shows the median user, a band the users from the 10th to the 90th percentile.
    """
    from batsched_py.analysis.plots import lateness

    write_figure(output, partial(lateness.draw, runs=_read_runs(runs, _read_log(log_file))))


@command.command("additional-lateness", short_help="Additional lateness of each user.")
@_runs_argument
@_recorded_option("Lateness is against it; not needed for feedback users, who note it.")
@_output_option
def additional_lateness(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """By how much each job adds to its user's lateness, against the number of the user's jobs.

    A line shows the median user, a band the users from the 10th to the 90th percentile.
    """
    from batsched_py.analysis.plots import lateness

    write_figure(output, partial(lateness.draw_additional, runs=_read_runs(runs, _read_log(log_file))))


@command.command(short_help="Longest path and arity of session graphs.")
@click.argument("log_file", metavar="LOG.swf", type=click.Path(path_type=Path))
@click.option(
    "--delimit",
    "delimiters",
    metavar="RULE:MINUTES",
    multiple=True,
    default=("arrival:0", "arrival:60"),
    show_default=True,
    help="What opens a new session, as in `batsched-py sessions`; may be given several times.",
)
@_output_option
def graphs(log_file: Path, delimiters: Sequence[str], output: Path) -> None:
    """How long and how wide the session graphs of the users of a log are."""
    from batsched_py.analysis.plots import graphs
    from batsched_py.workload.sessions import Delimiter
    from batsched_py.workload.swf import read_swf, swf_to_workload

    rules = [Delimiter.parse(text) for text in delimiters]
    statistics = graphs.graph_statistics(swf_to_workload(read_swf(log_file)), rules)
    write_figure(output, partial(graphs.draw, statistics=statistics))


@command.command(short_help="How much later jobs are submitted.")
@_runs_argument
@_recorded_option("The runs are compared with it, else with the first of them.")
@_output_option
def differences(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """How much later each job is submitted in a run than in the log, or than in the first run."""
    from batsched_py.analysis.plots import differences

    log = _read_log(log_file)
    compared = _read_runs(runs, log)
    reference = _recorded_run(log) or compared.pop(0)
    if not compared:
        raise InputError("there is nothing to compare the run with; give another one, or --recorded LOG.swf")
    write_figure(output, partial(differences.draw, runs=compared, reference=reference))


@command.command(short_help="Submissions by the hour of the week.")
@_runs_argument
@_recorded_option("It is shown, too, and tells the time of the day.", required=True)
@_output_option
def weekly(runs: Sequence[str], log_file: Path, output: Path) -> None:
    """How many jobs are submitted in each hour of the week, all weeks taken together."""
    from batsched_py.analysis.plots import weekly
    from batsched_py.workload.swf import read_swf

    log = read_swf(log_file)
    write_figure(output, partial(weekly.draw, runs=_read_runs(runs, log), log=log))


@command.command(short_help="Throughput and utilization.")
@_runs_argument
@click.option(
    "--skip",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=14.0,
    show_default=True,
    help="How long after the beginning the windows begin.",
)
@click.option(
    "--window",
    "windows",
    metavar="DAYS",
    type=click.FloatRange(min=0, min_open=True),
    multiple=True,
    default=(120.0, 180.0, 240.0),
    show_default=True,
    help="How long a window is; may be given several times.",
)
@_recorded_option("It is shown, too.")
@_output_option
def throughput(
    runs: Sequence[str], skip: float, windows: Sequence[float], log_file: Path | None, output: Path
) -> None:
    """Jobs finished per day and the share of busy hosts, in windows of time within the simulation.

    The windows leave out the beginning, when the machine is still empty, and should leave out the end.
    """
    from batsched_py.analysis.plots import throughput

    log = _read_log(log_file)
    compared = _read_runs(runs, log)
    recorded = _recorded_run(log)
    if recorded is not None:
        compared.insert(0, recorded)
    figures = throughput.throughput_and_utilization(compared, skip, windows)
    write_figure(output, partial(throughput.draw, figures=figures))


@command.command(short_help="When users come.")
@_runs_argument
@_recorded_option("It is shown, too, and tells the users; not needed for feedback users, who note it.")
@_output_option
def arrivals(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """When each user submits for the first time."""
    from batsched_py.analysis.plots import arrivals

    log = _read_log(log_file)
    write_figure(output, partial(arrivals.draw, runs=_read_runs(runs, log), recorded=_recorded_run(log)))


@command.command(short_help="Additional lateness against the number of jobs.")
@_runs_argument
@_recorded_option("Lateness is against it; not needed for feedback users, who note it.")
@_output_option
def scalability(runs: Sequence[str], log_file: Path | None, output: Path) -> None:
    """Whether additional lateness depends on how much of the log is replayed.

    Give a run for each number of jobs; those with the same LABEL become one line.
    """
    from batsched_py.analysis.plots import scalability

    compared = _read_runs(runs, _read_log(log_file), distinct=False)
    write_figure(output, partial(scalability.draw, runs=compared))


def _read_log(file: Path | None) -> SwfLog | None:
    from batsched_py.workload.swf import read_swf

    return None if file is None else read_swf(file)


def _recorded_run(log: SwfLog | None) -> Run | None:
    from batsched_py.analysis.plots.runs import recorded_run

    return None if log is None else recorded_run(log)


def _read_runs(texts: Sequence[str], log: SwfLog | None, distinct: bool = True) -> list[Run]:
    """The runs that were given; no two have one label, unless it need not be ``distinct``."""
    from batsched_py.analysis.plots.runs import read_run

    runs: list[Run] = []
    for text in texts:
        label, equals, file = text.partition("=")
        if not equals:
            label, file = _default_label(Path(text)), text
        if distinct and label in ("recorded", *(run.label for run in runs)):
            raise InputError(f"{text}: the label {label!r} is taken; give another one, as in LABEL={file}")
        runs.append(read_run(file, label, log))
    return runs


def _default_label(path: Path) -> str:
    """The prefix of a ``PREFIX_jobs.csv``, or the folder of a ``jobs.csv`` without one."""
    return path.name.removesuffix("jobs.csv").removesuffix("_") or path.absolute().parent.name
